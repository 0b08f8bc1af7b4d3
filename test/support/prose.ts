/** The prose of a Markdown page: what a person reads, without code blocks, comments, pictures and front matter. */

export interface Sentence {
  readonly line: number;
  readonly text: string;
  readonly words: number;
}

/** Stands for a piece of inline code, which counts as one word however long it is. */
const CODE_WORD = 'Code';

/** The words of a page. A table counts, cell by cell; a link counts as its text. */
export function wordsOf(page: string): number {
  return partsOf(page).reduce((sum, { text }) => sum + countWords(text), 0);
}

/** Every sentence of a page. Headings, list items and table cells end one, too. */
export function sentencesOf(page: string): Sentence[] {
  return partsOf(page).flatMap(({ line, text }) =>
    text
      .split(/(?<=[.!?]["”)*]*)\s+(?=[A-Z`"“(*[])/)
      .map((sentence) => ({ line, text: sentence.trim(), words: countWords(sentence) }))
      .filter(({ words }) => words > 0),
  );
}

interface Part {
  /** Counted from 1. */
  readonly line: number;
  readonly text: string;
}

/** Paragraphs, list items, headings and table cells, each as one line. */
function partsOf(page: string): Part[] {
  const parts: Part[] = [];
  let open: { line: number; text: string } | undefined;
  for (const [index, line] of bare(page).split('\n').entries()) {
    const text = line.trim();
    const isTable = text.startsWith('|');
    const startsAnew = /^([-*+] |\d+\. |#{1,6} |> |:::|$)/.test(text) || isTable;
    if (startsAnew) open = undefined;
    if (isTable) {
      parts.push(...cellsOf(text).map((cell) => ({ line: index + 1, text: cell })));
      continue;
    }
    const words = text.replace(/^([-*+]|\d+\.|#{1,6}|>|:::.*)\s*/, '');
    if (words === '') continue;
    if (open) open.text += ` ${words}`;
    else {
      open = { line: index + 1, text: words };
      parts.push(open);
    }
    if (/^#{1,6} /.test(text)) open = undefined;
  }
  return parts;
}

function cellsOf(row: string): string[] {
  if (/^[|\s:-]+$/.test(row)) return [];
  return row.replace(/^\||\|$/g, '').split(/(?<!\\)\|/);
}

/** The page with its lines in place and everything blanked that is not prose. */
function bare(page: string): string {
  const blank = (part: string) => part.replace(/[^\n]/g, '');
  return page
    .replace(/^---\n[\s\S]*?\n---\n/, blank)
    .replace(/^( *)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^ *\2 *$/gm, blank)
    .replace(/<!--[\s\S]*?-->/g, blank)
    .replace(/(`+)(?!`)[^\n]*?[^`]\1(?!`)/g, CODE_WORD)
    .replace(/!\[[^\]]*\]\([^)]*\)/g, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/<[^>\n]+>/g, ' ');
}

function countWords(text: string): number {
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}
