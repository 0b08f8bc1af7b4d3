import type { Finding } from '../../support/source-tree.ts';

/**
 * The fenced blocks of a page, and the comments that steer them. Readers do not see these:
 *
 * `<!-- before … -->`  code in front of the block; shell lines in front of a console block
 * `<!-- after … -->`   code behind it: what must be true then, and closing what was opened
 * `<!-- continues -->` same module, or same shell, as the block before; same folder in any case
 * `<!-- file: NAME -->` the block is that file, there for every block behind it on the page
 * `<!-- background -->` its last command goes on running once the output shown has appeared
 * `<!-- not run: REASON -->` code is only held to its types, anything else is not looked at
 */
export interface Block {
  readonly path: string;
  /** Of the fence. Its text begins on the next one. */
  readonly line: number;
  readonly language: string;
  readonly text: string;
  readonly before: readonly Piece[];
  readonly after: readonly Piece[];
  readonly continues: boolean;
  readonly background: boolean;
  readonly file: string | undefined;
  readonly notRun: string | undefined;
}

/** Text that stands on a page from this line on. */
export interface Piece {
  readonly line: number;
  readonly text: string;
}

export interface Page {
  readonly path: string;
  readonly blocks: readonly Block[];
  /** What can not be made sense of. */
  readonly findings: readonly Finding[];
}

const LANGUAGES = [
  ...['ts', 'js', 'console', 'sh', 'json', 'yaml', 'ini', 'conf', 'sql', 'lua', 'go', 'python'],
  ...['vue', 'text'],
] as const;

/** A reason has to say something. */
const MIN_REASON_WORDS = 3;

const STEERING = /^(before|after|continues|background|file|not run)\b/;

type Steering = Omit<Block, 'path' | 'line' | 'language' | 'text'>;

export function readPage(path: string, text: string): Page {
  return new Reader(path, text).read();
}

class Reader {
  readonly #path: string;
  readonly #lines: readonly string[];
  readonly #blocks: Block[] = [];
  readonly #findings: Finding[] = [];
  /** Comments that a block may follow. */
  #pending: Piece[] = [];
  #at = 0;

  constructor(path: string, text: string) {
    this.#path = path;
    this.#lines = text.split('\n');
  }

  read(): Page {
    while (this.#at < this.#lines.length) {
      const line = this.#lines[this.#at] ?? '';
      const fence = /^(\s*)(`{3,}|~{3,})(.*)$/.exec(line);
      if (fence) this.#readBlock(fence[1] ?? '', fence[2] ?? '', fence[3] ?? '');
      else if (line.trimStart().startsWith('<!--')) this.#readComment();
      else this.#readText(line);
    }
    this.#forgetComments();
    return { path: this.#path, blocks: this.#blocks, findings: this.#findings };
  }

  #readText(line: string): void {
    // Blank lines and the containers of vitepress stand between a comment and its block without harm.
    if (line.trim() !== '' && !line.trimStart().startsWith(':::')) this.#forgetComments();
    this.#at += 1;
  }

  #readComment(): void {
    const from = this.#at;
    while (this.#at < this.#lines.length && !this.#lines[this.#at]?.includes('-->')) this.#at += 1;
    const text = this.#lines.slice(from, this.#at + 1).join('\n');
    this.#at += 1;
    this.#pending.push({ line: from + 1, text: text.replace(/^\s*<!--|-->.*$/g, '') });
  }

  #readBlock(indent: string, fence: string, info: string): void {
    const from = this.#at;
    const isEnd = (line: string) => line.trim().startsWith(fence) && /^[`~]+$/.test(line.trim());
    this.#at += 1;
    while (this.#at < this.#lines.length && !isEnd(this.#lines[this.#at] ?? '')) this.#at += 1;
    if (this.#at === this.#lines.length) this.#find(from + 1, 'opens a block that has no end');
    const text = this.#lines
      .slice(from + 1, this.#at)
      .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line.trimStart()))
      .join('\n');
    this.#at += 1;
    const language = /^\s*([\w+#-]*)/.exec(info)?.[1] ?? '';
    if (!(LANGUAGES as readonly string[]).includes(language)) {
      const said = language === '' ? 'no language' : `the language '${language}'`;
      this.#find(from + 1, `has ${said}: say one of ${LANGUAGES.join(', ')}`);
    }
    const steering = this.#steering();
    this.#blocks.push({ path: this.#path, line: from + 1, language, text, ...steering });
  }

  #steering(): Steering {
    const comments = this.#pending;
    this.#pending = [];
    const [before, after] = [[] as Piece[], [] as Piece[]];
    let steering: Steering = {
      ...{ before, after, continues: false, background: false, file: undefined },
      notRun: undefined,
    };
    for (const { line, text } of comments) {
      const word = text.trim();
      const [, which, gap = '', code = ''] = /^\s*(before|after)(\s+)([\s\S]*)$/.exec(text) ?? [];
      const file = /^file:\s*(\S+)$/.exec(word)?.[1];
      if (which) {
        const skipped = text.slice(0, text.indexOf(which)) + gap;
        const piece = { line: line + skipped.split('\n').length - 1, text: code.trimEnd() };
        (which === 'before' ? before : after).push(piece);
      } else if (file) steering = { ...steering, file };
      else if (word === 'continues' || word === 'background')
        steering = { ...steering, [word]: true };
      else if (word.startsWith('not run')) {
        const reason = word.replace(/^not run:?\s*/, '');
        steering = { ...steering, notRun: reason };
        if (reason.split(/\s+/).length < MIN_REASON_WORDS)
          this.#find(line, 'does not say why: <!-- not run: REASON -->, in a few words');
      } else this.#find(line, `is no comment that steers a block: '${word.split('\n')[0]}'`);
    }
    return steering;
  }

  /** Anything may be said in a comment, but what looks as if it steered a block has to do so. */
  #forgetComments(): void {
    for (const { line, text } of this.#pending)
      if (STEERING.test(text.trim())) this.#find(line, 'steers nothing: no block follows it');
    this.#pending = [];
  }

  #find(line: number, what: string): void {
    this.#findings.push({ path: this.#path, line, what });
  }
}
