/** RESP2, the language of Redis: words out, values in. */

/** Redis answered with an error: nothing was done. */
export class ErrorReply extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ErrorReply';
  }
}

/** A text, a number, nothing, an error, or a list of these. An error inside of a list is a value of it. */
export type Reply = string | number | null | ErrorReply | Reply[];

export function encodeCommand(args: readonly string[]): string {
  let text = `*${args.length}\r\n`;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] as string;
    text += `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`;
  }
  return text;
}

interface List {
  readonly items: Reply[];
  readonly length: number;
}

const CR = 13;
const LINE_END = 2;
/** The first byte of each kind of reply. */
const [TEXT, ERROR, NUMBER, BULK, LIST] = [43, 45, 58, 36, 42];

/** Reads replies from what arrives, in pieces of any size. What is read once is not read again. */
export class ReplyReader {
  readonly #hear: (reply: Reply) => void;
  #rest: Buffer = Buffer.alloc(0);
  /** Lists begun and not yet full, the outermost first. */
  readonly #open: List[] = [];

  constructor(hear: (reply: Reply) => void) {
    this.#hear = hear;
  }

  /** Throws if this is not RESP2: then nothing that follows can be trusted. */
  feed(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    for (let next = this.#token(bytes, at); next !== -1; next = this.#token(bytes, at)) at = next;
    this.#rest = bytes.subarray(at);
  }

  /** Reads what begins here; gives where it ends, or -1 if that has not arrived yet. */
  #token(bytes: Buffer, at: number): number {
    const lineEnd = bytes.indexOf(CR, at);
    // The line feed behind it has to be there, too.
    if (lineEnd === -1 || lineEnd + 1 >= bytes.length) return -1;
    const kind = bytes[at];
    const begin = lineEnd + LINE_END;
    if (kind === BULK) return this.#bulk(bytes, at + 1, lineEnd);
    if (kind === LIST) this.#list(numberAt(bytes, at + 1, lineEnd));
    else if (kind === NUMBER) this.#value(numberAt(bytes, at + 1, lineEnd));
    else if (kind === TEXT) this.#value(bytes.toString('utf8', at + 1, lineEnd));
    else if (kind === ERROR) this.#value(new ErrorReply(bytes.toString('utf8', at + 1, lineEnd)));
    else throw new Error('the server does not speak the language of Redis');
    return begin;
  }

  #bulk(bytes: Buffer, at: number, lineEnd: number): number {
    const length = numberAt(bytes, at, lineEnd);
    const begin = lineEnd + LINE_END;
    if (length === -1) {
      this.#value(null);
      return begin;
    }
    if (begin + length + LINE_END > bytes.length) return -1;
    this.#value(bytes.toString('utf8', begin, begin + length));
    return begin + length + LINE_END;
  }

  #list(length: number): void {
    if (length === -1) this.#value(null);
    else if (length === 0) this.#value([]);
    else this.#open.push({ items: [], length });
  }

  #value(value: Reply): void {
    let whole = value;
    for (let list = this.#open.at(-1); list !== undefined; list = this.#open.at(-1)) {
      list.items.push(whole);
      if (list.items.length < list.length) return;
      this.#open.pop();
      whole = list.items;
    }
    this.#hear(whole);
  }
}

function numberAt(bytes: Buffer, from: number, to: number): number {
  const number = Number(bytes.toString('latin1', from, to));
  if (!Number.isSafeInteger(number)) throw new Error('a number that is none');
  return number;
}
