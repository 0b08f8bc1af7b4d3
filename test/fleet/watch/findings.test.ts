import { describe, expect, it } from 'vitest';
import { type FleetFacts, fleetFindings, marginsOf } from '../../../src/fleet/watch/findings.ts';
import type { MemberView } from '../../../src/fleet/watch/fleet.ts';

const VITALS = {
  ...{ ttlMs: 30_000, renewEveryMs: 10_000, renewP50Ms: 2, renewP99Ms: 20 },
  loopDelayMs: 15,
};

function member(name: string, facts: Partial<MemberView> = {}): MemberView {
  return {
    ...{ id: `${name}-1794735731650762000-c586043d`, name, weight: 1, owned: 3, quota: 3 },
    ...{ isDraining: false, isForeign: false, expiresInMs: 25_000, beatTtlMs: 30_000 },
    ...{ version: '1.0.0', startedAt: 0, vitals: VITALS, ...facts },
  };
}

const owned = { owner: 'a', reason: 'kept' } as const;

function found(facts: Partial<FleetFacts>) {
  return fleetFindings({
    ...{ members: [member('a'), member('b')], targets: [owned] },
    ...{ p99Ms: 3, drainingMs: new Map<string, number>(), ...facts },
  });
}

function warnings(facts: Partial<FleetFacts>) {
  return found(facts).filter(({ level }) => level === 'warn');
}

describe('a fleet in which all is well', () => {
  it('has no warnings, and says what was checked', () => {
    expect(found({}).map(({ level, subject }) => `${level} ${subject}`)).toEqual([
      ...['ok round trip', 'ok renewals', 'ok event loop', 'ok targets'],
    ]);
  });

  it('says nothing of what its members do not report', () => {
    const silent = [member('a', { vitals: null })];
    expect(found({ members: silent }).map(({ subject }) => subject)).toEqual([
      ...['round trip', 'targets'],
    ]);
    expect(marginsOf(silent)).toMatchObject([{ marginMs: null, ttlMs: null, loopDelayMs: null }]);
  });

  it('may be empty', () => {
    expect(found({ members: [], targets: [] }).map(({ subject }) => subject)).toEqual([
      'round trip',
    ]);
  });
});

describe('a warning', () => {
  it('is given for an instance with less than a third of the TTL left after a slow renewal', () => {
    const vitals = (renewP99Ms: number) => ({ vitals: { ...VITALS, renewP99Ms } });
    expect(warnings({ members: [member('a', vitals(20_000))] })).toEqual([]);
    const [warning, ...others] = warnings({
      members: [member('a', vitals(20_001)), member('b', vitals(25_000)), member('c')],
    });
    expect(others).toEqual([]);
    expect(warning).toMatchObject({ subject: 'renewals', advice: expect.stringContaining('ttl') });
    expect(warning?.fact).toContain('a-c586043d, b-c586043d would');
    expect(marginsOf([member('a', vitals(20_001))])[0]?.marginMs).toBe(9_999);
  });

  it('is given for an event loop that was blocked for longer than the guard', () => {
    const vitals = (loopDelayMs: number, ttlMs = 30_000) => ({
      vitals: { ...VITALS, ttlMs, loopDelayMs },
    });
    expect(warnings({ members: [member('a', vitals(1_500))] })).toEqual([]);
    const [warning] = warnings({ members: [member('a', vitals(1_501))] });
    expect(warning).toMatchObject({ subject: 'event loop' });
    expect(warning?.fact).toContain('1.501 s');
    // A shorter lease has a shorter guard.
    expect(warnings({ members: [member('a', vitals(300, 4_000))] })).toMatchObject([
      { subject: 'event loop' },
    ]);
  });

  it('is given where a request takes more than a tenth of the shortest TTL', () => {
    expect(warnings({ p99Ms: 3_000 })).toEqual([]);
    expect(warnings({ p99Ms: 3_001 })).toMatchObject([{ subject: 'round trip' }]);
    const short = { vitals: { ...VITALS, ttlMs: 4_000 } };
    expect(warnings({ p99Ms: 401, members: [member('a'), member('b', short)] })).toMatchObject([
      { subject: 'round trip', fact: expect.stringContaining('at a TTL of 4 s') },
    ]);
  });

  it('is given where instances run several versions', () => {
    const members = [member('a'), member('b', { version: '1.1.0' }), member('c')];
    const [warning] = warnings({ members: [...members, member('d', { version: null })] });
    expect(warning?.fact).toBe('Instances run 2 versions of Holdfast: 1.0.0, 1.1.0.');
  });

  it('is given for an instance that has been draining for long, or for longer than the log shows', () => {
    const draining = member('a', { isDraining: true });
    const since = (ms: number) => new Map([[draining.id, ms]]);
    expect(warnings({ members: [draining], drainingMs: since(599_999) })).toEqual([]);
    for (const drainingMs of [since(600_000), new Map<string, number>()])
      expect(warnings({ members: [draining], drainingMs })).toMatchObject([
        { subject: 'draining', fact: expect.stringContaining('owns 3 targets') },
      ]);
    const idle = member('a', { isDraining: true, owned: 0 });
    expect(warnings({ members: [idle] })[0]?.advice).toContain('undrain');
  });

  it.each([
    ['free', /explain/],
    ['unplaced', /Start an instance/],
    ['quarantine', /automatically/],
    ['garbage', /remove it/],
  ] as const)('is given for a target that nobody owns: %s', (reason, advice) => {
    const [warning] = warnings({ targets: [owned, { owner: null, reason }] });
    expect(warning).toMatchObject({
      ...{ subject: 'targets', fact: `1 of 2 targets have no owner: 1 ${reason}.` },
      advice: expect.stringMatching(advice),
    });
  });

  it('says that no instance runs where that is why a target has no owner', () => {
    const targets = [{ owner: null, reason: 'unplaced' }] as const;
    const [warning] = warnings({ members: [], targets });
    expect(warning?.advice).toBe('No instance runs: start one with holdfast up.');
  });

  it('names some, and counts the others', () => {
    const vitals = { ...VITALS, renewP99Ms: 29_000 };
    const members = ['a', 'b', 'c', 'd', 'e'].map((name) => member(name, { vitals }));
    expect(warnings({ members })[0]?.fact).toMatch(/a-\w+, b-\w+, c-\w+ and 2 more/);
  });
});
