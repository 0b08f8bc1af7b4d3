import { describe, expect, it } from 'vitest';
import { hashMember, hashTarget } from '../../../src/fleet/plan/hash.ts';
import { type PlanMember, plan } from '../../../src/fleet/plan/plan.ts';
import { PlanCache } from '../../../src/fleet/plan/plan-cache.ts';
import fc from '../../support/fast-check.ts';

interface OwnedTarget {
  readonly id: string;
  readonly hi: number;
  readonly lo: number;
  owner: string | null;
  pinned: string | null;
  command?: string | undefined;
}

function member(id: string, more: Partial<PlanMember> = {}): PlanMember {
  return { ...hashMember(id), weight: 1, isDraining: false, isForeign: false, ...more };
}

function target(id: string, owner: string | null = null): OwnedTarget {
  return { ...hashTarget(id), owner, pinned: null };
}

describe('the planner', () => {
  it('does not plan again for the same members and targets', () => {
    const planner = new PlanCache();
    const targets = [target('t1', 'a'), target('t2')];
    const first = planner.plan([member('a'), member('b')], targets);
    expect(planner.plan([member('a'), member('b')], [...targets])).toBe(first);
    expect(planner.last).toBe(first);
  });

  it('P-01 plans again when a target names another command, and when a member has another', () => {
    const planner = new PlanCache();
    const one = target('t1', 'a');
    const planned = (...members: PlanMember[]) => [...planner.plan(members, [one]).planned];
    expect(planned(member('a'), member('b'))).toEqual([0]);
    one.command = 'listen';
    expect(planned(member('a'), member('b'))).toEqual([-1]);
    expect(planned(member('a'), member('b', { commands: ['listen'] }))).toEqual([1]);
  });

  it('P-01 gives the same plan as one from scratch, whatever has changed since the last', () => {
    const ids = ['a', 'b', 'c', 'd'];
    const changed = fc.record({
      present: fc.subarray(ids),
      weights: fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 4, maxLength: 4 }),
      draining: fc.subarray(ids),
      foreign: fc.subarray(ids, { maxLength: 1 }),
      count: fc.integer({ min: 5, max: 7 }),
      owners: fc.array(fc.option(fc.constantFrom(...ids)), { minLength: 7, maxLength: 7 }),
      pins: fc.array(fc.option(fc.constantFrom(...ids)), { minLength: 7, maxLength: 7 }),
      able: fc.subarray(ids),
      needing: fc.subarray([0, 1, 2, 3, 4, 5, 6]),
    });
    fc.assert(
      fc.property(fc.array(changed, { minLength: 1, maxLength: 8 }), (changes) => {
        const planner = new PlanCache();
        const all = Array.from({ length: 7 }, (_, i) => target(`t${i}`));
        for (const { present, weights, draining, foreign, count, ...more } of changes) {
          const { owners, pins, able, needing } = more;
          for (const [i, one] of all.entries()) {
            one.command = needing.includes(i) ? 'listen' : undefined;
            one.owner = owners[i] ?? null;
            one.pinned = pins[i] ?? null;
          }
          const members = present.map((id) =>
            member(id, {
              weight: weights[ids.indexOf(id)] ?? 1,
              isDraining: draining.includes(id),
              isForeign: foreign.includes(id),
              commands: able.includes(id) ? ['default', 'listen'] : undefined,
            }),
          );
          const targets = all.slice(0, count);
          expect(planner.plan(members, targets)).toEqual(plan(members, targets));
        }
      }),
    );
  });
});
