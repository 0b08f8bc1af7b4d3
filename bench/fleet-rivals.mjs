/** Other ways to say who should own what, set up as fast as they go: each gives the index of a member per target. */
import { fnv1a64, hashMember, hashTarget } from '../dist/fleet/plan/hash.js';

const PRIME_LOW = 0x1b3;
const TWO_32 = 2 ** 32;
/** Per member, on the ring. */
const POINTS = 100;

/** What the seeds ask for: the member with the highest FNV-1a 64 of its id and the target's, one after the other. */
export function seedsOwners(members, targets) {
  // FNV takes byte after byte: what it has made of the member's id is the same for every target.
  const starts = members.map(({ id }) => fnv1a64(id));
  const owners = new Int32Array(targets.length);
  for (let t = 0; t < targets.length; t++) {
    const bytes = Buffer.from(targets[t].id, 'latin1');
    let [bestHi, bestLo] = [-1, -1];
    for (let m = 0; m < starts.length; m++) {
      let { hi, lo } = starts[m];
      for (let i = 0; i < bytes.length; i++) {
        const mixed = (lo ^ bytes[i]) >>> 0;
        const low = mixed * PRIME_LOW;
        hi = (Math.imul(hi, PRIME_LOW) + Math.floor(low / TWO_32) + (mixed << 8)) >>> 0;
        lo = low >>> 0;
      }
      if (hi < bestHi || (hi === bestHi && lo <= bestLo)) continue;
      [bestHi, bestLo] = [hi, lo];
      owners[t] = m;
    }
  }
  return owners;
}

/** A consistent ring: the first point at or after the target's hash. With our hash, which spreads similar ids. */
export function ringOwners(members, targets) {
  const ring = members.flatMap(({ id }, m) =>
    Array.from({ length: POINTS }, (_, i) => ({ at: hashMember(`${id}#${i}`).hi >>> 0, m })),
  );
  ring.sort((a, b) => a.at - b.at);
  const points = Uint32Array.from(ring, ({ at }) => at);
  const owners = new Int32Array(targets.length);
  for (let t = 0; t < targets.length; t++) {
    const at = hashTarget(targets[t].id).hi >>> 0;
    let [low, high] = [0, points.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle] < at) low = middle + 1;
      else high = middle;
    }
    owners[t] = ring[low % ring.length].m;
  }
  return owners;
}
