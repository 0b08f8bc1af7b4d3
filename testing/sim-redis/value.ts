import { type Reply, ReplyError } from '../../src/store/redis/client/wire.ts';

/** A short text such as `OK`: on the wire like any other, but not for a script. */
export class Status {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export const OK = new Status('OK');

/** What a command gives. */
export type Value = string | number | null | Status | ReplyError | Value[];

/** As a client sees it. */
export function asReply(value: Value): Reply {
  if (value instanceof Status) return value.text;
  return Array.isArray(value) ? value.map(asReply) : value;
}

export const WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value';
const NOT_AN_INTEGER = 'ERR value is not an integer or out of range';
const INTEGER = /^(?:0|-?[1-9]\d{0,18})$/;
/** Beyond 2⁵³ numbers are only about right here; nothing of ours is that large. */
const MOST = 2 ** 63;

export function syntaxError(): ReplyError {
  return new ReplyError('ERR syntax error');
}

/** A whole number as Redis accepts it: without a plus, spaces or zeros before it. */
export function readInteger(text: string | undefined): number {
  const number = text !== undefined && INTEGER.test(text) ? Number(text) : Number.NaN;
  if (number >= -MOST && number < MOST) return number;
  throw new ReplyError(NOT_AN_INTEGER);
}

/**
 * In the order of their bytes. That of UTF-16 is another one, but only beyond the plane of all
 * common scripts.
 */
export function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  return SURROGATE.test(a) || SURROGATE.test(b)
    ? Buffer.compare(Buffer.from(a), Buffer.from(b))
    : a < b
      ? -1
      : 1;
}

const SURROGATE = /[\ud800-\udfff]/;
