/** RESP2, the protocol of Redis. */
import { REPLY_MOST_BYTES } from '../../port/limits.ts';

/** Redis answered with an error: nothing was done. `name` is what node-redis calls it. */
export class ReplyError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ErrorReply';
  }
}

/** A text, a number, null, an error, or a list of these. */
export type Reply = string | number | null | ReplyError | Reply[];

/** What stands before an argument, by its length: the end of the one before it, and the length. */
const PREFIXES = Array.from({ length: 512 }, (_, length) => `\r\n$${length}\r\n`);

export function encodeCommand(args: readonly string[]): string {
  const text = encoded(args, (arg) => arg.length);
  return isAscii(text) ? text : encoded(args, Buffer.byteLength);
}

/** One question about a long text costs as much as one about each of its arguments. */
export function isAscii(text: string): boolean {
  return Buffer.byteLength(text) === text.length;
}

function encoded(args: readonly string[], lengthOf: (arg: string) => number): string {
  let text = `*${args.length}`;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] as string;
    const length = lengthOf(arg);
    text += (PREFIXES[length] ?? `\r\n$${length}\r\n`) + arg;
  }
  return `${text}\r\n`;
}

interface List {
  readonly items: Reply[];
  readonly length: number;
}

/** A bulk reply whose end has not arrived yet. */
interface Partial {
  readonly bytes: Buffer;
  filled: number;
}

const CR = 13;
const ZERO = 48;
/** As many as every safe integer has at most. */
const MAX_DIGITS = 16;
const LINE_END = 2;
/** The first byte of each kind of reply. */
const [TEXT, ERROR, NUMBER, BULK, LIST] = [43, 45, 58, 36, 42];

/**
 * The longest line: a status, an error, or the length of what follows. A longer one is not Redis.
 */
const MAX_LINE_BYTES = 65_536;

/**
 * Reads replies from chunks of any size. A chunk may be reused after `feed`. Every byte is copied
 * at most twice, however large its reply is: while a reply is read, nothing else in this process
 * runs.
 */
export class ReplyReader {
  readonly #onReply: (reply: Reply) => void;
  /** The beginning of a line. */
  #rest: Buffer | null = null;
  #partial: Partial | null = null;
  /** Lists begun and not yet full, the outermost first. */
  readonly #open: List[] = [];

  constructor(onReply: (reply: Reply) => void) {
    this.#onReply = onReply;
  }

  /** Throws if this is not RESP2, or too large. Then the following bytes cannot be trusted. */
  feed(chunk: Buffer, length = chunk.length): void {
    let at = this.#partial === null ? 0 : this.#fill(this.#partial, chunk.subarray(0, length));
    let bytes = chunk;
    let end = length;
    if (this.#rest !== null) {
      bytes = Buffer.concat([this.#rest, chunk.subarray(0, length)]);
      end = bytes.length;
      this.#rest = null;
    }
    while (at < end) {
      const next = this.#token(bytes, at, end);
      if (next === -1) break;
      at = next;
    }
    if (at >= end) return;
    if (end - at > MAX_LINE_BYTES) throw new Error(`a line of more than ${MAX_LINE_BYTES} bytes`);
    // A copy: the bytes of a chunk are valid during this call only.
    this.#rest = Buffer.from(bytes.subarray(at, end));
  }

  /** Reads the token at an index. Returns its end, or -1 if its line has not arrived yet. */
  #token(bytes: Buffer, at: number, end: number): number {
    // Lines are short: a search of the whole buffer takes longer.
    let lineEnd = at;
    while (lineEnd < end && bytes[lineEnd] !== CR) lineEnd++;
    // The line feed behind it has to be there, too.
    if (lineEnd + 1 >= end) return -1;
    const kind = bytes[at];
    const begin = lineEnd + LINE_END;
    if (kind === BULK) return this.#bulk(bytes, { begin, end }, lengthAt(bytes, at + 1, lineEnd));
    if (kind === LIST) this.#list(lengthAt(bytes, at + 1, lineEnd));
    else if (kind === NUMBER) this.#value(numberAt(bytes, at + 1, lineEnd));
    else if (kind === TEXT) this.#value(bytes.toString('utf8', at + 1, lineEnd));
    else if (kind === ERROR) this.#value(new ReplyError(bytes.toString('utf8', at + 1, lineEnd)));
    else throw new Error('the server does not speak the protocol of Redis');
    return begin;
  }

  #bulk(bytes: Buffer, { begin, end }: { begin: number; end: number }, length: number): number {
    if (length === -1) {
      this.#value(null);
      return begin;
    }
    const valueEnd = begin + length;
    if (valueEnd + LINE_END <= end) {
      this.#value(bytes.toString('utf8', begin, valueEnd));
      return valueEnd + LINE_END;
    }
    if (length > REPLY_MOST_BYTES)
      throw new Error(`a value of ${length} bytes, and Holdfast reads at most ${REPLY_MOST_BYTES}`);
    const partial: Partial = { bytes: Buffer.allocUnsafe(length + LINE_END), filled: 0 };
    this.#partial = partial;
    this.#fill(partial, bytes.subarray(begin, end));
    return end;
  }

  /** Fills the partial reply from a chunk. Returns the index after it. */
  #fill(partial: Partial, chunk: Buffer): number {
    const { bytes } = partial;
    const taken = chunk.copy(bytes, partial.filled);
    partial.filled += taken;
    if (partial.filled < bytes.length) return taken;
    this.#partial = null;
    this.#value(bytes.toString('utf8', 0, bytes.length - LINE_END));
    return taken;
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
    this.#onReply(whole);
  }
}

/** A length. A wrong one would make everything behind it unreadable. */
function lengthAt(bytes: Buffer, from: number, to: number): number {
  const length = numberAt(bytes, from, to);
  if (!Number.isSafeInteger(length) || length < -1)
    throw new Error('a length is not a valid number');
  return length;
}

/** The digits as a number, or -1 if there is more than digits, or none, or too many for a loop. */
function digitsAt(bytes: Buffer, from: number, to: number): number {
  if (to === from || to - from > MAX_DIGITS) return -1;
  let number = 0;
  for (let at = from; at < to; at++) {
    const digit = (bytes[at] as number) - ZERO;
    if (digit < 0 || digit > 9) return -1;
    number = number * 10 + digit;
  }
  return number <= Number.MAX_SAFE_INTEGER ? number : -1;
}

/**
 * Redis counts to 2^63. A number that another program wrote may be that large: then it is rounded.
 */
function numberAt(bytes: Buffer, from: number, to: number): number {
  const digits = digitsAt(bytes, from, to);
  if (digits !== -1) return digits;
  const text = bytes.toString('latin1', from, to);
  const number = Number(text);
  if (Number.isSafeInteger(number) && text !== '') return number;
  if (!/^[+-]?\d{1,19}$/.test(text)) throw new Error('an integer reply is not a number');
  return number;
}
