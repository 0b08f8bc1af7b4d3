/**
 * How much a target prefers a member: rendezvous hashing. Each id is hashed once, to 64 bits kept
 * as two halves of 32 (no BigInt: a plan compares millions of pairs); a pair costs two
 * multiplications. Members and targets are hashed differently, so that no two pairs are made of the
 * same text.
 *
 * FNV-1a alone is not enough: its last bytes hardly reach the high bits, so ids that differ only
 * there (`device-000001`) would all prefer the same member. The finaliser spreads them.
 */
export interface Hashed {
  readonly id: string;
  /** The two halves, as signed integers. */
  readonly hi: number;
  readonly lo: number;
}

const OFFSET_HI = 0xcbf29ce4;
const OFFSET_LO = 0x84222325;
/** The prime is 2^40 + 0x1b3. */
const PRIME_LOW = 0x1b3;
const TWO_32 = 2 ** 32;

/** FNV-1a 64 over the text's bytes. A character beyond Latin-1 counts as two bytes. */
export function fnv1a64(text: string): { hi: number; lo: number } {
  let hi = OFFSET_HI;
  let lo = OFFSET_LO;
  const take = (byte: number) => {
    const mixed = (lo ^ byte) >>> 0;
    const low = mixed * PRIME_LOW;
    hi = (Math.imul(hi, PRIME_LOW) + Math.floor(low / TWO_32) + (mixed << 8)) >>> 0;
    lo = low >>> 0;
  };
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    take(code & 0xff);
    if (code > 0xff) take(code >>> 8);
  }
  return { hi, lo };
}

export function hashMember(id: string): Hashed {
  return hashed('member', id);
}

export function hashTarget(id: string): Hashed {
  return hashed('target', id);
}

/** The cost of a pair, as an unsigned integer of 32 bits: the lower, the better. */
export function cost(
  memberHi: number,
  memberLo: number,
  targetHi: number,
  targetLo: number,
): number {
  let mixed = Math.imul(memberHi ^ targetHi, 0x9e3779b1);
  mixed = Math.imul((mixed ^ (mixed >>> 15)) + (memberLo ^ targetLo), 0x85ebca77);
  return (mixed ^ (mixed >>> 14)) >>> 0;
}

/** Whether `a` comes first where costs are equal: by hash, and by id for the one case in 2^64. */
export function before(a: Hashed, b: Hashed): boolean {
  if (a.hi !== b.hi) return a.hi < b.hi;
  return a.lo === b.lo ? a.id < b.id : a.lo < b.lo;
}

function hashed(kind: string, id: string): Hashed {
  const { hi: rawHi, lo: rawLo } = fnv1a64(`${kind}\n${id}`);
  // Three rounds, each half stirring the other: a permutation in which every bit reaches every
  // other.
  let hi = rawHi ^ stir(rawLo);
  const lo = rawLo ^ stir(hi);
  hi ^= stir(lo);
  return { id, hi: hi | 0, lo: lo | 0 };
}

function stir(bits: number): number {
  let mixed = bits ^ (bits >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
