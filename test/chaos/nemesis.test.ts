import { expect, it } from 'vitest';
import { LINK_FAULTS, PROCESS_FAULTS } from '../../chaos/faults.ts';
import { planFaults } from '../../chaos/nemesis.ts';
import { seededRandom } from '../../src/core/random.ts';

const KINDS = [...PROCESS_FAULTS, ...LINK_FAULTS];
const planned = (seed: number) => planFaults(KINDS, seededRandom(seed), 60_000);

it('the same seed plans the same faults, and another one others', () => {
  expect(planned(1)).toEqual(planned(1));
  expect(planned(1)).not.toEqual(planned(2));
});

it('every kind has its turn before one comes again', () => {
  const names = planned(3).map(({ kind }) => kind.name);
  expect(new Set(names.slice(0, KINDS.length)).size).toBe(KINDS.length);
  expect(names.length).toBeGreaterThan(KINDS.length);
});

it('faults last as long as their kind may, and some begin before the last one has ended', () => {
  const faults = planned(4);
  for (const { kind, lastsMs } of faults) {
    expect(lastsMs).toBeGreaterThanOrEqual(kind.lastsMs[0]);
    expect(lastsMs).toBeLessThanOrEqual(kind.lastsMs[1]);
  }
  const overlaps = faults.filter(({ startMs, lastsMs }, i) => {
    const next = faults[i + 1];
    return next !== undefined && next.startMs < startMs + lastsMs;
  });
  expect(overlaps.length).toBeGreaterThan(0);
});
