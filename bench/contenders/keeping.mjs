import { monotonicMs } from '../statistics.mjs';

/** The TTL of what is acquired and released at once. */
export const PAIR_TTL_MS = 30_000;
/** The TTL of what is only held to be renewed by hand: longer than the whole run. */
export const KEPT_MS = 600_000;
/** Acquired at once while many are taken to be held. */
const LANES = 256;

/** Holds all the keys of a library that has a call to extend one lock. */
export async function keepEach(keys, { acquire, extend }) {
  const held = new Array(keys.length);
  await each(keys.length, LANES, async (at) => {
    held[at] = await acquire(keys[at]);
  });
  return {
    renew: ({ lanes, redisCpuUs }) =>
      timed(redisCpuUs, () =>
        each(held.length, lanes, async (at) => {
          held[at] = await extend(held[at]);
        }),
      ),
  };
}

/** Runs `work(0 … count - 1)`, so many at a time. */
export async function each(count, lanes, work) {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: Math.min(lanes, count) }, lane));
}

/** How long the work took, and how much of Redis' processor time. */
export async function timed(redisCpuUs, work) {
  const cpuBefore = await redisCpuUs();
  const startMs = monotonicMs();
  await work();
  const ms = monotonicMs() - startMs;
  return { ms, redisUs: (await redisCpuUs()) - cpuBefore };
}
