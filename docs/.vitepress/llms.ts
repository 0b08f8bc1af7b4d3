/** `llms.txt` (llmstxt.org): the list of pages with a line about each, for programs that read documentation. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isGroup, type Page, type PageGroup, pageGroups, pagePaths } from './pages.ts';

const ABOUT =
  'Holdfast gives every piece of ongoing work one owner, and stops the old owner before a new one starts. A TypeScript library, server and command line for Node: leases with fences on SQLite or Redis, shared polling, workflows, and work that clients start over HTTP.';

/** Groups that a reader can do without, as the format has it. */
const OPTIONAL = new Set(['Decisions']);

/** Comments steer tests; links that begin so lead out of the site. */
const COMMENT = /<!--[\s\S]*?-->\n?/g;

export function llmsText(docs: string): string {
  const groups = pageGroups(docs);
  const optional = groups.flatMap(nestedIn).filter(({ title }) => OPTIONAL.has(title));
  const sections = groups.map(({ title, pages }) =>
    section(
      docs,
      title,
      pages.filter((one) => !isGroup(one) || !OPTIONAL.has(one.title)),
    ),
  );
  const rest = optional.length > 0 ? [section(docs, 'Optional', optional)] : [];
  return `# Holdfast\n\n> ${ABOUT}\n\n${[...sections, ...rest].join('\n')}`;
}

/** Writes `llms.txt` into the site, and the pages it links to as Markdown beside their HTML. */
export function writeLlmsText(docs: string, outDir: string): void {
  writeFileSync(join(outDir, 'llms.txt'), llmsText(docs));
  for (const path of pagePaths(pageGroups(docs))) {
    const file = join(outDir, `${path}.md`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, readFileSync(join(docs, `${path}.md`), 'utf8').replace(COMMENT, ''));
  }
}

function nestedIn({ pages }: PageGroup): PageGroup[] {
  return pages.filter(isGroup);
}

function section(docs: string, title: string, pages: PageGroup['pages']): string {
  return `## ${title}\n\n${pages.map((one) => linesOf(docs, one)).join('')}`;
}

function linesOf(docs: string, one: Page | PageGroup): string {
  if (isGroup(one)) return one.pages.map((page) => linesOf(docs, page)).join('');
  const [path, title] = one;
  const about = firstSentence(readFileSync(join(docs, `${path}.md`), 'utf8'));
  return `- [${title}](${path}.md)${about === '' ? '' : `: ${about}`}\n`;
}

/** Of the first paragraph: what a page is about, without Markdown's links and stars. */
export function firstSentence(page: string): string {
  const paragraphs = page
    .replace(/^---\n[\s\S]*?\n---\n/, '')
    .replace(COMMENT, '')
    .replace(/^( *)(`{3,})[^\n]*\n[\s\S]*?^ *\2 *$/gm, '')
    .split(/\n\s*\n/);
  const first = paragraphs.find((text) => /^[\p{L}`*[“]/u.test(text.trim())) ?? '';
  const plain = first
    .replace(/\s+/g, ' ')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\*\*/g, '')
    .trim();
  return /^.*?[.!?](?=\s|$)/.exec(plain)?.[0] ?? plain;
}
