import { describe, expect, it } from 'vitest';
import { deriveTimings, LEASE_CLASSES } from '../../src/lease/timings.ts';
import { LONGEST_TTL_MS, SHORTEST_TTL_MS } from '../../src/store/port/keyspaces.ts';
import fc from '../support/fast-check.ts';

const derive = (options: Parameters<typeof deriveTimings>[0]) =>
  deriveTimings(options, { ttl: '30s' }, LONGEST_TTL_MS);

describe('K-06 timings', () => {
  it('K-06 derives guard and operation timeout from the TTL', () => {
    expect(derive({ ttl: '30s' })).toMatchObject({
      renewEveryMs: 10_000,
      guardMs: 1_500,
      operationTimeoutMs: 5_000,
      validMs: 28_500,
    });
    expect(derive({ ttl: '3s' })).toMatchObject({
      renewEveryMs: 1_000,
      guardMs: 150,
      operationTimeoutMs: 500,
      validMs: 2_850,
    });
    expect(derive({ ttl: 1_000 })).toMatchObject({ guardMs: 100 });
  });

  it('K-06 adds the time to stop the work to the guard', () => {
    expect(derive({ ttl: '60s', stop: '5s' }).guardMs).toBe(6_500);
  });

  it('K-06 accepts every TTL it offers, with room for three operations and the guard', () => {
    fc.assert(
      fc.property(fc.integer({ min: SHORTEST_TTL_MS, max: LONGEST_TTL_MS }), (ttl) => {
        const { ttlMs, renewEveryMs, operationTimeoutMs, guardMs, validMs } = derive({ ttl });
        expect(ttlMs - renewEveryMs).toBeGreaterThanOrEqual(
          3 * operationTimeoutMs + guardMs - 1e-9,
        );
        expect(validMs).toBe(ttlMs - guardMs);
      }),
    );
  });

  it('K-06 refuses timings that do not fit together, with the numbers and what to change', () => {
    expect(() => derive({ ttl: '10s', renewEvery: '9s' })).toThrow(
      /renewEvery is 9000: ttl 10000 ms − renewEvery 9000 ms leaves a lead of 1000 ms.*need 5500 ms: raise ttl/,
    );
    expect(() => derive({ ttl: '10s', guard: '8s' })).toThrow(/guard of 8000 ms/);
    expect(() => derive({ ttl: '10s', stop: '2s', guard: '1s' })).toThrow(
      /the guard has to be longer than the 2000 ms/,
    );
    expect(() => derive({ ttl: '10s', operationTimeout: 0 })).toThrow(/at least 10 ms/);
    expect(() => derive({ ttl: '10s', renewEvery: 0 })).toThrow(/at least 10 ms/);
  });

  it('K-12 each class has the timings of its work', () => {
    const of = (name: keyof typeof LEASE_CLASSES) => deriveTimings({}, LEASE_CLASSES[name].timings);
    expect(of('poll')).toMatchObject({ ttlMs: 30_000, renewEveryMs: 10_000, guardMs: 1_500 });
    expect(of('resource')).toMatchObject({ ttlMs: 30_000, renewEveryMs: 10_000, guardMs: 7_000 });
    const workflow = of('workflow');
    expect(workflow).toMatchObject({ ttlMs: 300_000, guardMs: 5_000 });
    expect(workflow.ttlMs - workflow.renewEveryMs).toBe(60_000);
  });

  it('K-12 another TTL for a class derives all its timings again', () => {
    expect(
      deriveTimings({ ttl: '3s' }, LEASE_CLASSES.resource.timings, LONGEST_TTL_MS),
    ).toMatchObject({ guardMs: 150 });
  });
});
