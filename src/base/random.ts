import { randomBytes } from 'node:crypto';

/** Chance, injected like time: a seeded one makes a run repeatable. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** `digits` lowercase hexadecimal digits. */
  hex(digits: number): string;
}

export const systemRandom: Random = {
  next: () => Math.random(),
  hex: (digits) =>
    randomBytes(Math.ceil(digits / 2))
      .toString('hex')
      .slice(0, digits),
};

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

/** `ms`, shortened by up to a tenth: loops that started together drift apart, and none is ever late for it. */
export function jittered(ms: number, random: Random): number {
  return ms * (1 - random.next() / 10);
}
