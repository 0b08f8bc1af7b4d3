import type { Random } from '../core/random.ts';

/** A pause is random between 0 and a limit, which doubles up to the maximum. */
const FIRST_MS = 200;
const MAX_MS = 5_000;

/** Full jitter, so that clients that failed together do not retry together. */
export function backoffMs(
  failures: number,
  random: Pick<Random, 'next'>,
  firstMs: number = FIRST_MS,
): number {
  return random.next() * Math.min(MAX_MS, firstMs * 2 ** Math.min(failures - 1, 30));
}
