// Markdown, for the pages that are generated: prose that cannot be taken for HTML, tables, and links to headings.

/** What stands at the top of every page that is generated. */
export function page({ title, from, byHand, intro, body }) {
  const twin = byHand === undefined ? '' : ` ${byHand}`;
  const notice = `<!-- Written by npm run docs:reference from ${from}: change that, not this. -->`;
  return `${notice}\n\n# ${title}\n\n${intro}${twin}\n\n${body.trim()}\n`;
}

/** Doc comments as Markdown. Tags are escaped, and headings become text. */
export function prose(text) {
  return text
    .replace(/^#+ (.*)$/gm, '**$1**')
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : part.replaceAll('<', '\\<')))
    .join('')
    .trim();
}

/** The same on one line, for tables and lists. */
export function line(text) {
  return prose(text).replace(/\s+/g, ' ');
}

export function code(text) {
  const fence = text.includes('`') ? '``' : '`';
  return text === '' ? '' : `${fence}${text.replace(/\s+/g, ' ')}${fence}`;
}

/** A column without a word in it is left out. */
export function table(titles, lines) {
  const isSaid = (_, at) => titles[at] !== '' || lines.some((cells) => cells[at] !== '');
  const head = titles.filter(isSaid);
  const rows = lines.map((cells) => cells.filter(isSaid));
  const row = (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [row(head), `|${'---|'.repeat(head.length)}`, ...rows.map(row)].join('\n');
}

/** What headings are called in links; the same as docs/.vitepress/slug.ts, and a number where there are several. */
export class Anchors {
  #taken = new Map();

  of(heading) {
    const slug = slugOf(heading);
    const before = this.#taken.get(slug);
    this.#taken.set(slug, (before ?? 0) + 1);
    return before === undefined ? slug : `${slug}-${before}`;
  }
}

export function slugOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '')
    .replaceAll(' ', '-');
}
