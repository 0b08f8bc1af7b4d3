import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { draw, MIXED_STATES, PAIR, pairCoverage, simulate } from '../../../testing/sim/index.ts';

/** So many are lived through here; `npm run sim -- --kind mixed` has more. */
const WORLDS = 12;
/** Of the seeds that reach the most, `sim/corpus.json`: the first ones. */
const KEPT = JSON.parse(
  readFileSync(new URL('../../../sim/corpus.json', import.meta.url), 'utf8'),
) as { hours: number; seeds: number[] };
const SAMPLE = 6;
const MOST_KEPT = 200;
const LONG = { timeout: 120_000 };

describe('a mixed world', () => {
  it(
    'K-01 K-15 B-01 keeps every promise, whatever its clients are configured with',
    LONG,
    async () => {
      const counts = new Map<string, number>();
      for (let seed = 1; seed <= WORLDS; seed++) {
        const report = await simulate({ seed, hours: 0.1, kind: 'mixed' });
        expect(report.violation, `seed ${seed}\n${draw(report)}`).toBeNull();
        for (const [name, count] of report.counters) counts.set(name, count);
      }
      const met = MIXED_STATES.filter((state) => counts.has(state));
      expect(met.length).toBeGreaterThan(MIXED_STATES.length / 2);
      expect(met).toContain('examined');
      expect([...counts.keys()].some((name) => name.startsWith(PAIR))).toBe(true);
    },
  );

  it(
    'K-01 K-10 B-05 B-09 B-10 keeps every promise in the worlds that reach the most',
    LONG,
    async () => {
      expect(new Set(KEPT.seeds).size).toBe(KEPT.seeds.length);
      expect(KEPT.seeds.length).toBeLessThanOrEqual(MOST_KEPT);
      const counts = new Set<string>();
      for (const seed of KEPT.seeds.slice(0, SAMPLE)) {
        const report = await simulate({ seed, hours: KEPT.hours, kind: 'mixed' });
        expect(report.violation, `seed ${seed}\n${draw(report)}`).toBeNull();
        for (const [name] of report.counters) counts.add(name);
      }
      const met = MIXED_STATES.filter((state) => counts.has(state));
      expect(met.length).toBeGreaterThan(MIXED_STATES.length * 0.7);
    },
  );

  it('is the same for the same seed, and another for another', LONG, async () => {
    const of = (seed: number) => simulate({ seed, hours: 0.05, kind: 'mixed' });
    const [first, again, other] = [await of(3), await of(3), await of(4)];
    expect([again.digest, again.steps]).toEqual([first.digest, first.steps]);
    expect(again.draw).toEqual(first.draw);
    expect(other.digest).not.toBe(first.digest);
  });

  it('names the pairs of drawn values that no world has reached', () => {
    const none = pairCoverage(new Map());
    expect(none.every(({ possible, missing }) => missing.length === possible)).toBe(true);
    const name = 'ttls = two with loss = flush';
    const some = pairCoverage(new Map([[PAIR + name, 1]]));
    const missing = (of: typeof none) => of.flatMap((pair) => pair.missing);
    expect(missing(none)).toContain(name);
    expect(missing(some)).not.toContain(name);
    expect(missing(none)).not.toContain('classes = workflow with prefixes = one key of two');
  });
});
