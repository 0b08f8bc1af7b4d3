import { describe, expect, it } from 'vitest';
import {
  cost,
  fnv1a64,
  type Hashed,
  hashMember,
  hashTarget,
} from '../../../src/fleet/plan/hash.ts';
import { type PlanMember, type PlanTarget, plan, rankOf } from '../../../src/fleet/plan/plan.ts';
import fc from '../../support/fast-check.ts';

type Owners = ReadonlyMap<string, string | null>;

function member(id: string, more: Partial<PlanMember> = {}): PlanMember {
  return { ...hashMember(id), weight: 1, isDraining: false, isForeign: false, ...more };
}

function members(count: number): PlanMember[] {
  return Array.from({ length: count }, (_, i) =>
    member(`api-${i}-1736598400000000000-a1b2c3d${i}`),
  );
}

function targets(
  ids: readonly string[],
  owners: Owners = new Map(),
  pins: Owners = new Map(),
): PlanTarget[] {
  return ids.map((id) => ({
    ...hashTarget(id),
    owner: owners.get(id) ?? null,
    pinned: pins.get(id) ?? null,
  }));
}

/** Who should own what, by id. */
function outcome(
  of: readonly PlanMember[],
  what: readonly PlanTarget[],
): Map<string, string | null> {
  const { planned } = plan(of, what);
  return new Map(what.map(({ id }, t) => [id, of[planned[t] as number]?.id ?? null]));
}

function loads(of: readonly PlanMember[], owners: Owners): number[] {
  const owned = [...owners.values()];
  return of.map(({ id }) => owned.filter((owner) => owner === id).length);
}

function moves(from: Owners, to: Owners): number {
  return [...to].filter(([id, owner]) => from.get(id) !== owner).length;
}

const ID_FORMS = {
  sequential: (i: number) => `session-${i}`,
  padded: (i: number) => `device-${String(i).padStart(6, '0')}`,
  uuid: (i: number) =>
    `${(i * 2_654_435_761).toString(16).padStart(12, '0').slice(-8)}-0000-4000-8000-${String(i).padStart(12, '0')}`,
  'one long common prefix': (i: number) => `${'x'.repeat(100)}${i}`,
  'the same but for the first letter': (i: number) =>
    `${String.fromCharCode(97 + (i % 26))}${i / 26}x`,
};

const idForm = fc.constantFrom(...Object.values(ID_FORMS));
const fleet = fc.record({
  form: idForm,
  count: fc.integer({ min: 0, max: 200 }),
  size: fc.integer({ min: 1, max: 20 }),
});

function idsOf({ form, count }: { form: (i: number) => string; count: number }): string[] {
  return Array.from({ length: count }, (_, i) => form(i));
}

/** What PLANNING means by the greedy walk: all pairs, cheapest first. */
function greedy(of: readonly PlanMember[], what: readonly PlanTarget[], room: number[]) {
  const order = (a: Hashed, b: Hashed) => a.hi - b.hi || a.lo - b.lo || (a.id < b.id ? -1 : 1);
  const pairs = of.flatMap((m, mi) =>
    what.map((t, ti) => ({ m, mi, t, ti, cost: cost(m.hi, m.lo, t.hi, t.lo) })),
  );
  pairs.sort((a, b) => a.cost - b.cost || order(a.m, b.m) || order(a.t, b.t));
  const owners = new Map<string, string | null>(what.map(({ id }) => [id, null]));
  for (const { m, mi, t } of pairs) {
    if (owners.get(t.id) !== null || (room[mi] ?? 0) === 0) continue;
    owners.set(t.id, m.id);
    room[mi] = (room[mi] ?? 0) - 1;
  }
  return owners;
}

describe('the hash', () => {
  it('P-01 is FNV-1a 64', () => {
    const hex = (text: string) => {
      const { hi, lo } = fnv1a64(text);
      return hi.toString(16).padStart(8, '0') + lo.toString(16).padStart(8, '0');
    };
    expect(hex('')).toBe('cbf29ce484222325');
    expect(hex('a')).toBe('af63dc4c8601ec8c');
    expect(hex('foobar')).toBe('85944171f73967e8');
  });

  it('P-01 tells fields apart: a member and a target of one name are different things', () => {
    expect(hashMember('a')).not.toEqual(hashTarget('a'));
  });

  it.each(Object.entries(ID_FORMS))(
    'FR-013 likes every member about as often: %s ids',
    (_, form) => {
      const of = members(5);
      const firsts = new Map<string, number>();
      for (let i = 0; i < 5_000; i++) {
        const target = hashTarget(form(i));
        const first = of.find((m) => rankOf(m, target, of) === 0)?.id ?? '';
        firsts.set(first, (firsts.get(first) ?? 0) + 1);
      }
      // 1,000 each, with a standard deviation of 28: five of them to either side.
      for (const { id } of of) expect(Math.abs((firsts.get(id) ?? 0) - 1_000)).toBeLessThan(142);
    },
  );

  it('FR-013 does not collapse where the seeds’ formula did: similar ids', () => {
    const of = members(10);
    const owners = outcome(of, targets(idsOf({ form: ID_FORMS.sequential, count: 1_000 })));
    expect(loads(of, owners)).toEqual(of.map(() => 100));
  });
});

describe('the plan', () => {
  it('US4.1 gives each of 3 instances exactly 3 of 9 targets, whatever the ids', () => {
    for (const form of Object.values(ID_FORMS)) {
      const of = members(3);
      expect(loads(of, outcome(of, targets(idsOf({ form, count: 9 }))))).toEqual([3, 3, 3]);
    }
  });

  it('SC-004 gives every instance floor or ceil of targets/instances', () => {
    fc.assert(
      fc.property(fleet, ({ form, count, size }) => {
        const of = members(size);
        const owners = outcome(of, targets(idsOf({ form, count })));
        const shares = loads(of, owners);
        expect(Math.min(...shares)).toBeGreaterThanOrEqual(Math.floor(count / size));
        expect(Math.max(...shares)).toBeLessThanOrEqual(Math.ceil(count / size));
        expect([...owners.values()]).not.toContain(null);
      }),
    );
  });

  it('P-01 is the same as a walk over all pairs in ascending cost', () => {
    fc.assert(
      fc.property(fleet, ({ form, count, size }) => {
        const of = members(size);
        const what = targets(idsOf({ form, count }));
        expect(outcome(of, what)).toEqual(greedy(of, what, [...plan(of, what).quotas]));
      }),
      { numRuns: 60 },
    );
  });

  it('P-01 is the same in every instance, in whatever order it reads members and targets', () => {
    const shuffled = fleet.chain((f) => {
      const of = members(f.size);
      const owners = fc.array(fc.constantFrom(null, 'gone', ...of.map(({ id }) => id)), {
        minLength: f.count,
        maxLength: f.count,
      });
      return fc.record({ f: fc.constant(f), owners, seed: fc.infiniteStream(fc.nat()) });
    });
    fc.assert(
      fc.property(shuffled, ({ f, owners, seed }) => {
        const of = members(f.size);
        const ids = idsOf(f);
        const what = targets(ids, new Map(ids.map((id, i) => [id, owners[i] ?? null])));
        const byChance = <T>(list: readonly T[]) =>
          list
            .map((item) => [seed.next().value, item] as const)
            .sort(([a], [b]) => a - b)
            .map(([, item]) => item);
        const here = outcome(of, what);
        const there = outcome(byChance(of), byChance(what));
        for (const [id, owner] of here) expect(there.get(id)).toBe(owner);
      }),
      { numRuns: 60 },
    );
  });

  it('P-01 moves the minimum on a join: the newcomer’s share, and nothing else', () => {
    fc.assert(
      fc.property(fleet, ({ form, count, size }) => {
        const of = members(size);
        const ids = idsOf({ form, count });
        const before = outcome(of, targets(ids));
        const more = [...of, member('newcomer')];
        const after = outcome(more, targets(ids, before));
        const gained = [...after.values()].filter((owner) => owner === 'newcomer').length;
        expect(moves(before, after)).toBe(gained);
        expect(gained).toBeLessThanOrEqual(Math.ceil(count / (size + 1)));
      }),
    );
  });

  it('P-01 moves the minimum on a leave: the leaver’s targets, and nothing else', () => {
    fc.assert(
      fc.property(fleet, ({ form, count, size }) => {
        const of = members(size + 1);
        const ids = idsOf({ form, count });
        const before = outcome(of, targets(ids));
        const rest = of.slice(1);
        const after = outcome(rest, targets(ids, before));
        const orphans = [...before.values()].filter((owner) => owner === of[0]?.id).length;
        expect(moves(before, after)).toBe(orphans);
      }),
    );
  });

  it('US4.2 gives a newcomer to 2 instances and 10 targets its third', () => {
    const of = members(2);
    const ids = idsOf({ form: ID_FORMS.padded, count: 10 });
    const before = outcome(of, targets(ids));
    const after = outcome([...of, member('newcomer')], targets(ids, before));
    expect([...after.values()].filter((owner) => owner === 'newcomer')).toHaveLength(3);
  });

  it('FR-015 leaves a target with an owner that is not preferred, while it is within its quota', () => {
    const of = members(3);
    const ids = idsOf({ form: ID_FORMS.padded, count: 9 });
    const anyhow = new Map(ids.map((id, i) => [id, of[i % 3]?.id ?? null]));
    expect(outcome(of, targets(ids, anyhow))).toEqual(anyhow);
  });

  it('P-07 gives an instance with weight 2 twice the share', () => {
    const of = [member('a', { weight: 2 }), member('b'), member('c')];
    const owners = outcome(of, targets(idsOf({ form: ID_FORMS.uuid, count: 100 })));
    expect(loads(of, owners)).toEqual([50, 25, 25]);
  });

  it('P-06 gives every target of a draining instance to the others, and moves none where all drain', () => {
    const of = members(3);
    const ids = idsOf({ form: ID_FORMS.padded, count: 10 });
    const before = outcome(of, targets(ids));
    const draining = of.map((m, i) => ({ ...m, isDraining: i === 0 }));
    expect(loads(of, outcome(draining, targets(ids, before)))).toEqual([0, 5, 5]);
    const all = of.map((m) => ({ ...m, isDraining: true }));
    expect(outcome(all, targets(ids, before))).toEqual(before);
    expect([...outcome(all, targets(ids)).values()]).toEqual(ids.map(() => null));
  });

  it('P-01 leaves a foreign member what it holds, gives it nothing, and shares out the rest', () => {
    const foreign = member('stranger', { isForeign: true });
    const of = [...members(2), foreign];
    const ids = idsOf({ form: ID_FORMS.padded, count: 10 });
    const owners = new Map<string, string | null>(ids.slice(0, 4).map((id) => [id, 'stranger']));
    const after = outcome(of, targets(ids, owners));
    expect(loads(of, after)).toEqual([3, 3, 4]);
    expect(moves(owners, after)).toBe(6);
  });

  it('P-01 places the targets of an owner that is no longer a member', () => {
    const of = members(2);
    const ids = ['x', 'y'];
    const after = outcome(of, targets(ids, new Map(ids.map((id) => [id, 'dead']))));
    expect(loads(of, after)).toEqual([1, 1]);
  });
});
