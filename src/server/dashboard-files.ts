/**
 * The page's files, as the build has left them: read once, compressed once, and served from memory. What is not among them is not there,
 * whatever a path says: names are looked up, never opened.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';

export type Encoding = 'br' | 'gzip' | 'identity';

export interface PageFile {
  readonly type: string;
  /** Changes with its content. */
  readonly etag: string;
  /** `identity` is always there. */
  readonly bodies: Readonly<Partial<Record<Encoding, Uint8Array>>>;
}

export interface Page {
  /** For a page that is mounted at `base`, empty for the root. */
  index(base: string): Promise<PageFile>;
  readonly assets: ReadonlyMap<string, PageFile>;
}

/** Text, which is worth compressing, and the rest. */
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
/** Nearly as small as it gets, in a tenth of the time. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } };
/** Assets are told apart by their names; an etag of this many characters tells contents apart. */
const ETAG_CHARACTERS = 22;
/** How the build refers to files beside it. */
const BESIDE = /(\b(?:src|href)=")\.\//g;

const compressed = { br: promisify(brotliCompress), gzip: promisify(gzip) };

/** Beside the compiled server; or, for who runs the sources, where the build puts it. */
export function builtPage(): string {
  const beside = fileURLToPath(new URL('../dashboard/', import.meta.url));
  return existsSync(beside)
    ? beside
    : fileURLToPath(new URL('../../dist/dashboard/', import.meta.url));
}

export class DashboardFiles {
  readonly #folder: string;
  #page: Promise<Page | null> | null = null;

  constructor(folder: string) {
    this.#folder = folder.endsWith('/') ? folder : `${folder}/`;
  }

  /** Null where it was not built; then it is looked for again by the next who asks. */
  async page(): Promise<Page | null> {
    this.#page ??= this.#read();
    const page = await this.#page;
    if (page === null) this.#page = null;
    return page;
  }

  async #read(): Promise<Page | null> {
    try {
      const html = await readFile(`${this.#folder}index.html`, 'utf8');
      const names = await readdir(`${this.#folder}assets`);
      const files = names.map(async (name): Promise<[string, PageFile]> => {
        const content = await readFile(`${this.#folder}assets/${name}`);
        return [name, await pageFile(content, extname(name))];
      });
      return { index: remembered(html), assets: new Map(await Promise.all(files)) };
    } catch {
      // Half a page is none: what is missing is said in the same words.
      return null;
    }
  }
}

/** Where it is mounted is known only from a request, and then is the same for all: so the last one is kept. */
function remembered(html: string): Page['index'] {
  let last: { readonly base: string; readonly file: Promise<PageFile> } | null = null;
  return (base) => {
    if (last?.base !== base) {
      const based = html.replace(BESIDE, (_, before: string) => `${before}${attribute(base)}/`);
      last = { base, file: pageFile(Buffer.from(based), '.html') };
    }
    return last.file;
  };
}

/** It comes from a request: nothing in it may end the attribute. */
function attribute(text: string): string {
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
