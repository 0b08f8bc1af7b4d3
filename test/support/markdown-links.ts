/** The links of Markdown pages, and whether they lead somewhere. What is on the network is not asked: its address only has to be one. */
import { posix } from 'node:path';
import { slug } from '../../docs/.vitepress/slug.ts';
import type { Finding, SourceText } from './source-tree.ts';

/** What is where a link leads to. */
export interface Ground {
  /** Whether there is such a file, or folder, in the repository. */
  has(path: string): boolean;
  /** What can be linked to in a page. */
  anchors(path: string): ReadonlySet<string>;
}

interface Link {
  readonly target: string;
  readonly line: number;
}

const INLINE =
  /(?<!!)\[(?:[^[\]]|\[[^\]]*\])*\]\(\s*<?([^()\s>]*(?:\([^()\s]*\)[^()\s>]*)*)>?(?:\s+"(?:[^"\\]|\\.)*")?\s*\)/g;
const IMAGE = /!\[[^\]]*\]\(\s*<?([^)\s>]+)/g;
const DEFINITION = /^\[[^\]]+\]:\s+<?([^\s>]+)/gm;
const HTML = /<(?:a|img)\s[^>]*?(?:href|src)="([^"]*)"/g;
/** Of the front page, whose links stand in its front matter. */
const FRONT = /^\s*(?:- )?link: (\S+)/gm;

export function linkFindings(pages: readonly SourceText[], ground: Ground): Finding[] {
  return pages.flatMap(({ path, text }) =>
    linksOf(text).flatMap(({ target, line }) => {
      const what = wrongWith(target, path, ground);
      return what === null ? [] : [{ path, line, what: `${target}: ${what}` }];
    }),
  );
}

export function linksOf(text: string): Link[] {
  const [front, body] = parted(bare(text));
  const found = (pattern: RegExp, within: string) =>
    [...within.matchAll(pattern)].map((match) => {
      const line = text.slice(0, match.index).split('\n').length;
      return { target: match[1] ?? '', line };
    });
  return [
    ...[INLINE, IMAGE, DEFINITION, HTML].flatMap((pattern) => found(pattern, body)),
    ...found(FRONT, front),
  ];
}

/** What the headings of a page are called in links. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  const seen = new Map<string, number>();
  const [, body] = parted(bare(text, 'with inline code'));
  for (const [, heading = ''] of body.matchAll(/^#{1,6} (.*?)(?: #+)?$/gm)) {
    const name = slug(heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/[`*]/g, ''));
    const before = seen.get(name);
    seen.set(name, (before ?? 0) + 1);
    anchors.add(before === undefined ? name : `${name}-${before}`);
  }
  for (const [, id = ''] of body.matchAll(/<a\s+(?:id|name)="([^"]*)"/g)) anchors.add(id);
  return anchors;
}

function wrongWith(target: string, from: string, ground: Ground): string | null {
  if (/^[a-z][a-z0-9+.-]*:/i.test(target))
    return isAddress(target) ? null : 'it is no address of the web';
  const [file = '', anchor] = target.split('#');
  if (file.startsWith('/') && from !== 'docs/index.md') return 'it has to be relative';
  const path = pathOf(file, from);
  if (path.startsWith('..')) return 'it leads out of the repository';
  if (!ground.has(path)) return `there is no ${path}`;
  if (anchor === undefined || !path.endsWith('.md')) return null;
  const isKnown = ground.anchors(path).has(decodeURIComponent(anchor));
  return isKnown ? null : `${path} has no heading of that name`;
}

function pathOf(file: string, from: string): string {
  if (file === '') return from;
  // As the front page names pages: from the root of the site, without what their files end with.
  if (file.startsWith('/')) return `docs${file}.md`;
  return posix.join(posix.dirname(from), decodeURI(file)).replace(/\/$/, '');
}

function isAddress(target: string): boolean {
  const isWeb = /^(https?:\/\/[^/]+|mailto:.+@.+)/.test(target);
  return isWeb && URL.canParse(target);
}

/** Without code and comments, in which nothing is a link; every line stays where it is. */
function bare(text: string, inline?: 'with inline code'): string {
  const blank = (part: string) => part.replace(/[^\n]/g, ' ');
  const blocks = text
    .replace(/^( *)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^ *\2 *$/gm, blank)
    .replace(/<!--[\s\S]*?-->/g, blank);
  return inline === undefined ? blocks.replace(/(`+)(?!`)[^\n]*?[^`]\1(?!`)/g, blank) : blocks;
}

function parted(text: string): [front: string, body: string] {
  const front = /^---\n[\s\S]*?\n---\n/.exec(text)?.[0] ?? '';
  return [front, front.replace(/[^\n]/g, ' ') + text.slice(front.length)];
}
