import { hostname } from 'node:os';
import { ConfigError } from './errors.ts';
import type { Random } from './random.ts';

export { shortName } from './short-name.ts';

/**
 * Longest lease key and holder, in bytes of UTF-8: far above any sensible name, far below what
 * hurts a store.
 */
const MAX_NAME_BYTES = 256;

/**
 * Control characters would break logs; braces decide the slot on a Redis Cluster and are ours to
 * set.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
const UNSAFE = /[\u0000-\u001f\u007f-\u009f{}]/;

// biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

const PLAIN = /^[A-Za-z0-9._:~/@-]{1,256}$/;

export const NAME_RULE = `1 to ${MAX_NAME_BYTES} bytes of well-formed text without control characters or braces`;

/** Throws unless `key` may name a lease. */
export function checkKey(key: unknown, field = 'key'): asserts key is string {
  if (!isName(key)) throw new ConfigError({ field, value: key, rule: `a key is ${NAME_RULE}` });
}

/**
 * Throws unless `holder` may name a holder. A leading `!` marks a tombstone in the store, so no
 * holder has one.
 */
export function checkHolder(holder: unknown, field = 'holder'): asserts holder is string {
  if (!isName(holder) || holder.startsWith('!')) {
    throw new ConfigError({
      field,
      value: holder,
      rule: `a holder is ${NAME_RULE}, and does not begin with '!'`,
    });
  }
}

const TARGET_ID = /^[A-Za-z0-9._:~-]{1,128}$/;

export const TARGET_ID_RULE = 'an id is 1 to 128 of the characters A-Z a-z 0-9 . _ : ~ -';

/** Narrower than a key: ids of targets also stand in signals, in URLs and on command lines. */
export function isTargetId(id: unknown): id is string {
  return typeof id === 'string' && TARGET_ID.test(id);
}

/** Throws unless `id` may name a target. */
export function checkTargetId(id: unknown, field = 'id'): asserts id is string {
  if (!isTargetId(id)) throw new ConfigError({ field, value: id, rule: TARGET_ID_RULE });
}

/** A random UUID (version 4), as text. */
export function randomUuid(random: Random): string {
  const hex = random.hex(32);
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 3) | 8).toString(16);
  const end = `${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${end}`;
}

/** Whether it may name a lease, a record or a member. */
export function isName(name: unknown): name is string {
  if (typeof name !== 'string') return false;
  if (PLAIN.test(name)) return true;
  return (
    name.length > 0 &&
    name.length <= MAX_NAME_BYTES &&
    !UNSAFE.test(name) &&
    Buffer.byteLength(name) <= MAX_NAME_BYTES &&
    // A lone surrogate would reach the store as U+FFFD, and two different keys would be one there.
    Buffer.from(name).toString() === name
  );
}

/**
 * When the process of an instance id started, in milliseconds since 1970; null for any other text.
 */
export function startedAtOf(id: string): number | null {
  const nanoseconds = /-(\d{16,19})-[0-9a-f]{8}$/.exec(id)?.[1];
  return nanoseconds === undefined ? null : Math.floor(Number(nanoseconds) / 1e6);
}

/**
 * `{name}-{boot ns}-{8 hex}`: a readable name, the start of this process, and random digits. A
 * restarted process has a new id, so it can never renew its predecessor's leases. Parse it from the
 * right: the name may contain dashes.
 */
export function instanceId(random: Random, startedAtMs: number, name = hostname()): string {
  const safeName = name.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 100) || 'node';
  const bootMicros = BigInt(Math.round(startedAtMs * 1_000));
  return `${safeName}-${bootMicros * 1_000n}-${random.hex(8)}`;
}

/**
 * A name that another system chose: well-formed text without control characters. Keys contain it
 * only encoded.
 */
export function isForeignText(text: unknown, mostBytes: number): text is string {
  if (typeof text !== 'string' || text.length === 0 || text.length > mostBytes) return false;
  return !CONTROL.test(text) && text.isWellFormed() && Buffer.byteLength(text) <= mostBytes;
}
