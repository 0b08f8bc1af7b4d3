import { expect, it } from 'vitest';
import { deriveTimings, LEASE_CLASSES, workTimings } from '../../src/lease/timings.ts';
import { LONGEST_TTL_MS } from '../../src/store/port/keyspaces.ts';
import fc from '../support/fast-check.ts';

it('K-12 without options the timings are those of class resource, with a grace of 5 s', () => {
  expect(workTimings()).toEqual({
    ttl: 30_000,
    renewEvery: 10_000,
    stop: 5_000,
    guard: 7_000,
    operationTimeout: 4_000,
  });
  expect(deriveTimings(workTimings(), {}, LONGEST_TTL_MS)).toEqual(
    deriveTimings({}, LEASE_CLASSES.resource.timings, LONGEST_TTL_MS),
  );
});

it('a short lease shortens the grace, and a long grace shortens store operations', () => {
  expect(workTimings({ ttl: '6s' })).toMatchObject({ stop: 1_000, operationTimeout: 900 });
  expect(workTimings({ grace: '10s' })).toMatchObject({ guard: 11_500, operationTimeout: 2_833 });
});

it.each([
  [{ ttl: '500ms' }, /^ttl is "500ms": a lease lasts from 600ms to 12h/],
  [{ ttl: 'soon' }, /^ttl is "soon": a duration is/],
  [{ grace: '13s' }, /^grace is "13s": with ttl 30s at most 12500ms leave time .* lower grace/],
  [{ ttl: '3s', grace: 5_000 }, /^grace is 5000: with ttl 3s at most 1250ms/],
])('what does not fit is refused with the numbers: %j', (times, expected) => {
  expect(() => workTimings(times)).toThrow(expected);
});

it('K-06 the shortest and the longest lease and the longest grace are accepted', () => {
  expect(workTimings({ ttl: 600 }).ttl).toBe(600);
  expect(workTimings({ ttl: LONGEST_TTL_MS }).ttl).toBe(LONGEST_TTL_MS);
  expect(() => workTimings({ ttl: LONGEST_TTL_MS + 1 })).toThrow(/a lease lasts from 600ms to 12h/);
  expect(workTimings({ grace: 12_500 }).stop).toBe(12_500);
  expect(() => workTimings({ grace: 12_501 })).toThrow(/at most 12500ms/);
});

it('K-06 an operation of a short lease with a short grace takes a sixth of the TTL', () => {
  expect(workTimings({ ttl: '6s', grace: 10 }).operationTimeout).toBe(1_000);
});

it('K-06 all results are valid timings, and the guard covers the grace', () => {
  const times = fc.record({
    ttl: fc.integer({ min: 600, max: LONGEST_TTL_MS }),
    share: fc.double({ min: 0, max: 0.3, noNaN: true }),
  });
  fc.assert(
    fc.property(times, ({ ttl, share }) => {
      const timings = workTimings({ ttl, grace: Math.floor(ttl * share) });
      const { guardMs } = deriveTimings(timings, {}, LONGEST_TTL_MS);
      expect(guardMs).toBeGreaterThanOrEqual(timings.stop + 100);
    }),
  );
});
