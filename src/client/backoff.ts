import type { Random } from '../core/random.ts';

/** Pauses are anywhere from nothing up to a limit, which doubles from the first to the second. */
const FIRST_MS = 200;
const MOST_MS = 5_000;

/** How long to wait after so many failures. Anything up to the limit: those who failed together do not come back together. */
export function backoffMs(
  failures: number,
  random: Pick<Random, 'next'>,
  firstMs: number = FIRST_MS,
): number {
  return random.next() * Math.min(MOST_MS, firstMs * 2 ** Math.min(failures - 1, 30));
}
