import { describe, expect, it } from 'vitest';
import { runSoak } from '../../chaos/soak-run.ts';

// A slice of `npm run soak`, which has more seeds and more time.
const SECONDS = 15;
/** Starting the processes, and waiting for one that was frozen last, come on top. */
const TIMEOUT_MS = 120_000;

function soak(store: 'redis' | 'sqlite', { isNaive = false } = {}) {
  const { signal } = new AbortController();
  return runSoak({ store, isNaive, seed: 7, seconds: SECONDS, signal, onProgress: () => {} });
}

describe('mixed clients with mixed timings that are frozen and disconnected', () => {
  it.each(['redis', 'sqlite'] as const)(
    'K-01 K-02 on %s: never two of them believe in one key at one moment, and fences grow',
    async (store) => {
      const { violations, broken, beliefs } = await soak(store);
      expect(violations).toEqual([]);
      expect(broken).toEqual([]);
      expect(beliefs).toBeGreaterThan(0);
    },
    TIMEOUT_MS,
  );

  it(
    'a lock as people first write it is found out by the same judge',
    async () => {
      const { violations } = await soak('redis', { isNaive: true });
      expect(violations).not.toEqual([]);
    },
    TIMEOUT_MS,
  );
});
