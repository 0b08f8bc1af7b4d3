/**
 * The largest values of a store: the same in every store, and checked before a request is sent. One
 * large value costs every process of the store: Redis serves no other request while a script copies
 * it, and a process that reads it does nothing else until it is parsed.
 */
import { ValueTooLargeError } from '../../core/errors.ts';

const KIB = 1_024;
const MIB = 1_024 * KIB;

/**
 * In bytes of JSON as UTF-8. More is refused with `VALUE_TOO_LARGE`, and nothing of the call is
 * done.
 */
export const SIZE_LIMITS = {
  record: MIB,
  /** What an instance says of itself: every instance reads those of all others, all the time. */
  heartbeat: 64 * KIB,
  'workflow state': MIB,
  action: MIB,
  result: MIB,
  'workflow input': MIB,
  'workflow step': MIB,
  'workflow signal': MIB,
  'stream entry': MIB,
  session: MIB,
  'log entry': 64 * KIB,
} as const;

export type SizedKind = keyof typeof SIZE_LIMITS;

/**
 * The most that is read as one value: other programs may have written more. Its connection is
 * ended.
 */
export const REPLY_MOST_BYTES = 64 * MIB;

/** A UTF-16 unit is at most so many bytes of UTF-8. */
const MOST_BYTES_PER_UNIT = 3;

/** The text, unless it is too large. */
export function sized(kind: SizedKind, id: string, text: string): string {
  const mostBytes = SIZE_LIMITS[kind];
  if (text.length * MOST_BYTES_PER_UNIT <= mostBytes) return text;
  const bytes = Buffer.byteLength(text);
  if (bytes > mostBytes) throw new ValueTooLargeError({ kind, id, bytes, mostBytes });
  return text;
}
