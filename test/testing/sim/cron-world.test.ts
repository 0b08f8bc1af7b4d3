import { describe, expect, it } from 'vitest';
import { draw, simulate } from '../../../testing/sim/index.ts';

/** So many are lived through here; `npm run sim -- --kind cron` has more. */
const WORLDS = 6;
const LONG = { timeout: 120_000 };

describe('a cron world', () => {
  it(
    'B-09 has one run per fire on hosts with clocks ± 30 s: at most one with kills and skip, at least one with retry',
    LONG,
    async () => {
      const counts = new Map<string, number>();
      for (let seed = 1; seed <= WORLDS; seed++) {
        const report = await simulate({ seed, hours: 20, kind: 'cron' });
        expect(report.violation, `seed ${seed}\n${draw(report)}`).toBeNull();
        for (const [name, count] of report.counters)
          counts.set(name, (counts.get(name) ?? 0) + count);
      }
      for (const name of ['ran', 'done', 'running', 'started over'])
        expect(counts.get(`cron: ${name}`) ?? 0, name).toBeGreaterThan(0);
    },
  );

  it('is the same for the same seed, and another for another', LONG, async () => {
    const of = (seed: number) => simulate({ seed, hours: 3, kind: 'cron' });
    const [first, again, other] = [await of(2), await of(2), await of(5)];
    expect([again.digest, again.steps]).toEqual([first.digest, first.steps]);
    expect(other.digest).not.toBe(first.digest);
  });
});
