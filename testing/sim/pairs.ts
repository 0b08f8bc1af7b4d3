/** Which pairs of drawn values a run has reached: a pair that never met has proven nothing. */
import type { Counters } from './counters.ts';
import {
  DIMENSION_NAMES,
  DIMENSIONS,
  type Dimension,
  type Draw,
  isPossible,
} from './mixed-setting.ts';

export const PAIR = 'pair: ';

/** Counts each pair of the values that took effect in a world. */
export function countPairs(
  draw: Draw,
  counters: Counters,
  isReached: (of: Dimension) => boolean,
): void {
  const reached = DIMENSION_NAMES.filter(isReached);
  for (const [i, a] of reached.entries())
    for (const b of reached.slice(i + 1)) counters.add(nameOf([a, draw[a]], [b, draw[b]]));
}

/**
 * For each two dimensions how many pairs of their values there are, and which of them were never
 * reached.
 */
export function pairCoverage(
  counts: ReadonlyMap<string, number>,
): { a: Dimension; b: Dimension; possible: number; missing: string[] }[] {
  return DIMENSION_NAMES.flatMap((a, i) =>
    DIMENSION_NAMES.slice(i + 1).map((b) => {
      const all = DIMENSIONS[a].flatMap((x) =>
        DIMENSIONS[b].flatMap((y) => (isPossible([a, x], [b, y]) ? nameOf([a, x], [b, y]) : [])),
      );
      const missing = all.filter((name) => !counts.get(name));
      return {
        a,
        b,
        possible: all.length,
        missing: missing.map((name) => name.slice(PAIR.length)),
      };
    }),
  );
}

function nameOf(a: readonly [Dimension, string], b: readonly [Dimension, string]): string {
  return `${PAIR}${a.join(' = ')} with ${b.join(' = ')}`;
}
