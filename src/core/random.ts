import { randomBytes, randomFillSync } from 'node:crypto';

/** Chance, injected like time: a seeded one makes a run repeatable. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** `digits` lowercase hexadecimal digits. */
  hex(digits: number): string;
}

/**
 * Random bytes are fetched in blocks of this size, because a few bytes cost as much as many. Each
 * is used once.
 */
const POOL_BYTES = 4_096;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

function randomHex(digits: number): string {
  const bytes = Math.ceil(digits / 2);
  if (bytes > POOL_BYTES) return randomBytes(bytes).toString('hex').slice(0, digits);
  if (used + bytes > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  const text = pool.toString('hex', used - bytes, used);
  return text.length === digits ? text : text.slice(0, digits);
}

export const systemRandom: Random = { next: () => Math.random(), hex: randomHex };

/** A repeatable source (mulberry32): the same seed gives the same sequence. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const hex = (digits: number) => {
    let text = '';
    while (text.length < digits) text += Math.floor(next() * 16).toString(16);
    return text;
  };
  return { next, hex };
}

/**
 * `ms`, shortened by up to a tenth, so that loops that started together drift apart and none is
 * late.
 */
export function jittered(ms: number, random: Random): number {
  return ms * (1 - random.next() / 10);
}
