import { describe, expect, it } from 'vitest';
import { deriveTimings, LEASE_CLASSES, PolicyCache } from '../../src/lease/timings.ts';
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

  it('K-06 the bounds themselves are accepted, and what lies beyond is refused with field and value', () => {
    const refusal = (options: Parameters<typeof derive>[0]) => {
      try {
        derive(options);
      } catch (error) {
        return error;
      }
      return null;
    };
    for (const ttl of [SHORTEST_TTL_MS, LONGEST_TTL_MS]) expect(derive({ ttl }).ttlMs).toBe(ttl);
    for (const ttl of [SHORTEST_TTL_MS - 1, LONGEST_TTL_MS + 1]) {
      expect(refusal({ ttl })).toMatchObject({ code: 'CONFIG_INVALID', field: 'ttl', value: ttl });
    }
    expect(derive({ ttl: '3s', operationTimeout: 10, renewEvery: 10 })).toMatchObject({
      operationTimeoutMs: 10,
      renewEveryMs: 10,
    });
    expect(refusal({ ttl: '3s', operationTimeout: 9 })).toMatchObject({
      field: 'operationTimeout',
      value: 9,
    });
    expect(refusal({ ttl: '3s', renewEvery: 9 })).toMatchObject({ field: 'renewEvery', value: 9 });
    expect(refusal({ ttl: '10s', stop: '1s', guard: '1s' })).toMatchObject({
      field: 'guard',
      value: 1_000,
    });
    expect(refusal({ ttl: '10s', renewEvery: '9s' })).toMatchObject({
      field: 'renewEvery',
      value: 9_000,
    });
  });

  it('K-06 a TTL that no caller has given is named as the bad one, if it is bad', () => {
    expect(() => deriveTimings({}, { ttl: '13h' }, LONGEST_TTL_MS)).toThrow(
      expect.objectContaining({ field: 'ttl', value: '13h' }),
    );
  });

  it.each(['ttl', 'stop', 'guard', 'renewEvery', 'operationTimeout'])(
    'K-06 %s that is no duration is named',
    (field) => {
      expect(() => derive({ ttl: '30s', [field]: 'soon' })).toThrow(
        expect.objectContaining({ code: 'CONFIG_INVALID', field, value: 'soon' }),
      );
    },
  );

  it('K-12 the classes are named as in the code, and share keys as they are told to', () => {
    expect(Object.entries(LEASE_CLASSES).map(([key, { name }]) => key === name)).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(LEASE_CLASSES.resource.keyspace).toBe(LEASE_CLASSES.lease.keyspace);
    expect(deriveTimings({}, LEASE_CLASSES.resource.timings).operationTimeoutMs).toBe(4_000);
  });

  it('K-12 another TTL for a class derives all its timings again', () => {
    expect(
      deriveTimings({ ttl: '3s' }, LEASE_CLASSES.resource.timings, LONGEST_TTL_MS),
    ).toMatchObject({ guardMs: 150 });
  });
});

describe('PolicyCache', () => {
  const bounds = { lease: 60_000, poll: 60_000, workflow: 60_000 };

  it('K-12 the same options have one policy, whatever was asked for meanwhile', () => {
    const cache = new PolicyCache(null);
    const first = cache.for({ ttl: '3s' });
    expect(cache.for({ ttl: '3s' })).toBe(first);
    expect(cache.for({ ttl: '4s' }).timings.ttlMs).toBe(4_000);
    expect(cache.for({ ttl: '3s' })).toBe(first);
    expect(cache.for({ ttl: '3s', class: 'poll' }).leaseClass.name).toBe('poll');
    expect(cache.for({}).leaseClass.name).toBe('lease');
  });

  it.each([
    ['renewEvery', '500ms', { renewEveryMs: 500 }],
    ['stop', '50ms', { guardMs: 200 }],
    ['guard', '200ms', { guardMs: 200 }],
    ['operationTimeout', '100ms', { operationTimeoutMs: 100 }],
  ])('K-12 one option alone, %s, makes another policy', (option, value, timings) => {
    const cache = new PolicyCache(null);
    const plain = cache.for({ ttl: '3s' });
    const policy = cache.for({ ttl: '3s', [option]: value });
    expect(policy.timings).toMatchObject(timings);
    expect(cache.for({ ttl: '3s' })).toBe(plain);
    expect(cache.for({ ttl: '3s', [option]: value })).toBe(policy);
  });

  it('B-05 maxHold alone makes another policy, and has to be longer than 0', () => {
    const cache = new PolicyCache(null);
    const plain = cache.for({ ttl: '3s' });
    expect(cache.for({ ttl: '3s', maxHold: '1m' }).maxHoldMs).toBe(60_000);
    expect(cache.for({ ttl: '3s' })).toBe(plain);
    expect(() => cache.for({ maxHold: 0 })).toThrow(
      expect.objectContaining({ field: 'maxHold', value: 0 }),
    );
    expect(() => cache.for({ maxHold: 'long' })).toThrow(
      expect.objectContaining({ field: 'maxHold' }),
    );
  });

  it('K-12 holds a thousand policies, and then begins again', () => {
    const cache = new PolicyCache(null);
    const first = cache.for({ ttl: 1_000 });
    for (let ttl = 1_001; ttl < 2_000; ttl++) cache.for({ ttl });
    expect(cache.for({ ttl: 1_000 })).toBe(first);
    cache.for({ ttl: 2_000 });
    expect(cache.for({ ttl: 1_000 })).not.toBe(first);
  });

  it('K-15 a bound below the TTL of a class shortens the timings of this class, and those of work keep a grace', () => {
    const cache = new PolicyCache({ ...bounds, lease: 12_000 });
    expect(cache.for({}).maxTtlMs).toBe(12_000);
    expect(cache.for({}).timings).toEqual(deriveTimings({ ttl: 12_000 }, {}));
    expect(cache.for({ class: 'resource' }).timings).toMatchObject({
      ttlMs: 12_000,
      guardMs: 2_600,
    });
    expect(cache.for({ class: 'poll' }).timings).toMatchObject({ ttlMs: 30_000, guardMs: 1_500 });
    expect(() => cache.for({ ttl: '13s' })).toThrow(expect.objectContaining({ field: 'ttl' }));
  });

  it('K-15 a bound that is the TTL of a class leaves its timings alone', () => {
    const cache = new PolicyCache({ ...bounds, lease: 30_000 });
    expect(cache.for({ class: 'resource' }).timings.guardMs).toBe(7_000);
  });
});
