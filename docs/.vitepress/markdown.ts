/** What stands between pages as repositories show them and pages as VitePress shows them. */
import { statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { MarkdownOptions } from 'vitepress';
import { slug } from './slug.ts';

type MarkdownIt = Parameters<NonNullable<MarkdownOptions['config']>>[0];
type Token = ReturnType<MarkdownIt['parse']>[number];

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Comments, which steer the tests that run the pages' code. */
const COMMENT = /<!--[\s\S]*?-->/g;

export const markdown: MarkdownOptions = {
  anchor: { slugify: slug },
  // `{ … }` behind a word is a set of facts here, not attributes of HTML.
  attrs: { disable: true },
  theme: { light: 'github-light', dark: 'github-dark' },
  languageAlias: { conf: 'ini' },
  config(md) {
    // A name such as `errors.md` in a sentence is a file, not a host in Moldova.
    md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
    // And `8)` is the end of a list, not a face.
    md.core.ruler.disable('emoji');
    md.core.ruler.push('links_out', ({ tokens, env }) => {
      for (const token of tokens) linksOut(token.children ?? [], relativePathOf(env));
    });
    // Pages are texts, not templates: Vue must not read anything into them. (Blocks of code it does not look at.)
    change(md, ['text', 'code_inline'], (html) =>
      html.replaceAll('{{', '&#123;&#123;').replaceAll('}}', '&#125;&#125;'),
    );
    change(md, ['html_block', 'html_inline'], (html) => html.replace(COMMENT, ''));
  },
};

/** Has what these rules give changed before it is shown. */
function change(
  { renderer: { rules } }: MarkdownIt,
  names: readonly string[],
  to: (html: string) => string,
): void {
  for (const name of names) {
    const before = rules[name];
    rules[name] = (...args) => to(before?.(...args) ?? '');
  }
}

/**
 * A link to a file of the repository that is no page, or to a folder, has nowhere to lead to: it becomes text that says which one it is.
 * The test of links sees to it that it is there.
 */
function linksOut(tokens: readonly Token[], page: string): void {
  let isOut = false;
  for (const token of tokens) {
    if (token.type === 'link_open') {
      const path = fileOutside(token.attrGet('href') ?? '', page);
      isOut = path !== null;
      if (path === null) continue;
      const title = token.attrGet('title');
      token.attrs = [
        ['class', 'in-repository'],
        ['title', title === null ? path : `${path}: ${title}`],
      ];
    }
    if (isOut && (token.type === 'link_open' || token.type === 'link_close')) token.tag = 'span';
    // Not by VitePress's rule for links any more.
    if (isOut && token.type === 'link_open') token.type = 'span_open';
    if (isOut && token.type === 'link_close') {
      token.type = 'span_close';
      isOut = false;
    }
  }
}

/** Where in the repository it leads to, or null where that is a file below `docs/`, or nothing of the repository at all. */
function fileOutside(href: string, page: string): string | null {
  if (href === '' || /^([a-z][a-z0-9+.-]*:|\/\/|#)/i.test(href)) return null;
  const path = posix.join('docs', posix.dirname(page), decodeURI(href).replace(/[?#].*$/, ''));
  const isOnSite = path.startsWith('docs/') && !isFolder(path);
  return isOnSite ? null : path;
}

function isFolder(path: string): boolean {
  return statSync(join(root, path), { throwIfNoEntry: false })?.isDirectory() === true;
}

function relativePathOf(env: unknown): string {
  return (env as { relativePath?: string } | undefined)?.relativePath ?? 'index.md';
}
