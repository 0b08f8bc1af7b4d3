import { expect, it } from 'vitest';
import { censusOf } from '../../src/lease/census.ts';
import type { Tenure } from '../../src/lease/tenure.ts';
import { deriveTimings, LEASE_CLASSES } from '../../src/lease/timings.ts';

const tenure = (name: keyof typeof LEASE_CLASSES, deadlineMs: number, ttl: number) =>
  ({
    deadlineMs,
    policy: { leaseClass: LEASE_CLASSES[name], timings: deriveTimings({ ttl }, {}) },
  }) as unknown as Tenure;

it('K-14 a census counts leases by class, with the first deadline and the shortest TTL of each', () => {
  const tenures = [
    tenure('poll', 5_000, 30_000),
    tenure('poll', 4_000, 40_000),
    tenure('poll', 6_000, 20_000),
    tenure('lease', 3_000, 3_000),
  ];
  expect([...censusOf(tenures, 1_000)]).toEqual([
    ['poll', { held: 3, remainingMs: 3_000, ttlMs: 20_000 }],
    ['lease', { held: 1, remainingMs: 2_000, ttlMs: 3_000 }],
  ]);
  expect(censusOf(tenures, 9_000).get('lease')?.remainingMs).toBe(0);
  expect([...censusOf([], 0)]).toEqual([]);
});
