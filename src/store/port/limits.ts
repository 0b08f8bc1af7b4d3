/**
 * How large what is kept in a store may be: the same in every store, and looked at before anything
 * is sent. One large value costs all who share the store: Redis serves nobody else while a script
 * copies it, and no process that reads it does anything else until it has been taken apart.
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
