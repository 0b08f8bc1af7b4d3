import { describe, expect, it } from 'vitest';
import { draw, simulate } from '../../../testing/sim/index.ts';

/** So many are lived through here; `npm run sim -- --kind records` has more. */
const WORLDS = 4;
const LONG = { timeout: 120_000 };

describe('a world of records', () => {
  it(
    'P-02 ends with every process knowing every session, and none that is gone',
    LONG,
    async () => {
      const counts = new Map<string, number>();
      for (let seed = 1; seed <= WORLDS; seed++) {
        const report = await simulate({ seed, hours: 0.1, kind: 'records' });
        expect(report.violation, `seed ${seed}\n${draw(report)}`).toBeNull();
        for (const [name, count] of report.counters) counts.set(name, count);
      }
      expect(counts.get('records: many were gone')).toBeGreaterThan(0);
      expect(counts.get('records: written by another program')).toBeGreaterThan(0);
    },
  );

  it('is the same for the same seed, and another for another', LONG, async () => {
    const of = (seed: number) => simulate({ seed, hours: 0.05, kind: 'records' });
    const [first, again, other] = [await of(3), await of(3), await of(4)];
    expect([again.digest, again.steps]).toEqual([first.digest, first.steps]);
    expect(other.digest).not.toBe(first.digest);
  });
});
