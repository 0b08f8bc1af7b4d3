/**
 * The files of the page, read and compressed once and then served from memory. A requested name is
 * looked up in this list and never opened as a path.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { memoizeBase } from './http/mount.ts';

export type Encoding = 'br' | 'gzip' | 'identity';

export interface PageFile {
  readonly type: string;
  /** Changes with its content. */
  readonly etag: string;
  /** Always has `identity`. */
  readonly bodies: Readonly<Partial<Record<Encoding, Uint8Array>>>;
}

interface Page {
  /** The HTML for a page that is mounted at `base`; empty for the root. */
  index(base: string): Promise<PageFile>;
  readonly assets: ReadonlyMap<string, PageFile>;
}

export type PageReader = () => Promise<Page | null>;

/** Text is compressed, other types are not. */
const TEXT_TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
};
const OTHER_TYPES: Readonly<Record<string, string>> = {
  '.woff2': 'font/woff2',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
};
/** Nearly as small as the maximum quality, in a tenth of the time. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
/** Long enough to be unique. */
const ETAG_CHARACTERS = 22;
/** Relative links in the built HTML. */
const RELATIVE_LINK = /(\b(?:src|href)=")\.\//g;

const compressed = { br: promisify(brotliCompress), gzip: promisify(gzip) };

/** Beside the compiled server, or in `dist/` when the sources run. */
export function builtPage(): string {
  const beside = fileURLToPath(new URL('../dashboard/', import.meta.url));
  return existsSync(beside)
    ? beside
    : fileURLToPath(new URL('../../dist/dashboard/', import.meta.url));
}

/** Reads the page once. Null where the page was not built: then the next call tries again. */
export function pageReader(folder: string): PageReader {
  let reading: Promise<Page | null> | null = null;
  return async () => {
    reading ??= readPage(folder);
    const page = await reading;
    if (page === null) reading = null;
    return page;
  };
}

async function readPage(folder: string): Promise<Page | null> {
  try {
    const html = await readFile(`${folder}/index.html`, 'utf8');
    const names = await readdir(`${folder}/assets`);
    const files = names.map(async (name): Promise<[string, PageFile]> => {
      const content = await readFile(`${folder}/assets/${name}`);
      return [name, await pageFile(content, extname(name))];
    });
    const index = memoizeBase((base) => {
      const link = (_: string, before: string) => `${before}${escapeAttribute(base)}/`;
      return pageFile(Buffer.from(html.replace(RELATIVE_LINK, link)), '.html');
    });
    return { index, assets: new Map(await Promise.all(files)) };
  } catch {
    // An incomplete page counts as none.
    return null;
  }
}

/** `base` comes from a request, so it must not be able to end the attribute. */
function escapeAttribute(text: string): string {
  return text.replace(/[^A-Za-z0-9/._~%-]/g, (character) => encodeURIComponent(character));
}

async function pageFile(content: Buffer, extension: string): Promise<PageFile> {
  const text = TEXT_TYPES[extension];
  const type = text ?? OTHER_TYPES[extension] ?? 'application/octet-stream';
  const etag = createHash('sha256').update(content).digest('base64url').slice(0, ETAG_CHARACTERS);
  if (text === undefined) return { type, etag, bodies: { identity: content } };
  const [br, gz] = await Promise.all([compressed.br(content, BROTLI), compressed.gzip(content)]);
  return { type, etag, bodies: { identity: content, br, gzip: gz } };
}
