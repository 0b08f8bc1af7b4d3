import { describe, expect, it } from 'vitest';
import { hashMember, hashTarget } from '../../../src/fleet/plan/hash.ts';
import {
  firstChoice,
  hasCommand,
  type PlanMember,
  type PlanTarget,
  plan,
  rankOf,
} from '../../../src/fleet/plan/plan.ts';
import fc from '../../support/fast-check.ts';

interface Fleet {
  readonly members: readonly PlanMember[];
  readonly targets: readonly PlanTarget[];
}

const NAMES = Array.from({ length: 8 }, (_, i) => `api-${i}`);
const COMMANDS = ['default', 'listen', 'sync', 'watch'];

const fleet: fc.Arbitrary<Fleet> = fc
  .record({
    names: fc.subarray(NAMES, { minLength: 1 }),
    draining: fc.subarray(NAMES, { maxLength: 2 }),
    foreign: fc.subarray(NAMES, { maxLength: 1 }),
    have: fc.array(fc.option(fc.subarray(COMMANDS)), { minLength: 8, maxLength: 8 }),
    targets: fc.array(
      fc.record({
        owner: fc.option(fc.constantFrom('gone', ...NAMES)),
        pinned: fc.option(fc.constantFrom(...NAMES), { freq: 1 }),
        command: fc.constantFrom(undefined, 'listen', 'sync', 'watch'),
      }),
      { maxLength: 60 },
    ),
  })
  .map(({ names, draining, foreign, have, targets }) => ({
    members: names.map((name) => ({
      ...hashMember(name),
      weight: 1,
      isDraining: draining.includes(name),
      isForeign: foreign.includes(name),
      commands: have[NAMES.indexOf(name)] ?? undefined,
    })),
    targets: targets.map((target, i) => ({ ...hashTarget(`device-${i}`), ...target })),
  }));

/** The member that should own each target, by id. */
function outcome({ members, targets }: Fleet): Map<string, PlanMember | undefined> {
  const { planned } = plan(members, targets);
  return new Map(targets.map(({ id }, t) => [id, members[planned[t] as number]]));
}

function isTaker(member: PlanMember, target: PlanTarget): boolean {
  return !member.isForeign && !member.isDraining && hasCommand(member, target);
}

describe('a plan for targets with commands', () => {
  it('B-04 plans a target only for a member that has its command; a foreign member keeps what it holds', () => {
    fc.assert(
      fc.property(fleet, (seen) => {
        const owners = outcome(seen);
        for (const target of seen.targets) {
          const owner = owners.get(target.id);
          if (owner === undefined) continue;
          if (owner.isForeign) expect(owner.id).toBe(target.owner);
          else expect(hasCommand(owner, target)).toBe(true);
        }
      }),
    );
  });

  it('B-04 leaves a target without a member only if none that has its command may take it', () => {
    fc.assert(
      fc.property(fleet, (seen) => {
        const owners = outcome(seen);
        for (const target of seen.targets)
          if (owners.get(target.id) === undefined)
            expect(seen.members.filter((member) => isTaker(member, target))).toEqual([]);
      }),
    );
  });

  it('B-07 prefers, for a handover, only members that have the command', () => {
    const target = { ...hashTarget('device-1'), owner: null, pinned: null, command: 'listen' };
    const member = (id: string, commands?: string[]) => {
      const state = { weight: 1, isDraining: false, isForeign: false };
      return { ...hashMember(id), ...state, commands };
    };
    const others = NAMES.map((name) => member(name));
    const able = member('able', ['listen']);
    expect(firstChoice(target, others)).toBeUndefined();
    expect(firstChoice(target, [...others, able])).toBe(able);
    expect(rankOf(able, target, [...others, able])).toBe(0);
  });

  it('B-04 shares the targets of each set of members evenly among these', () => {
    fc.assert(
      fc.property(fleet, ({ members, targets }) => {
        const free = targets.map((target) => ({ ...target, owner: null, pinned: null }));
        const owners = outcome({ members, targets: free });
        const sets = new Map<string, Map<string, number>>();
        for (const target of free) {
          const takers = members.filter((member) => isTaker(member, target));
          const able = members.filter((member) => member.isForeign || hasCommand(member, target));
          const key = able.map(({ id }) => id).join();
          const loads = sets.get(key) ?? new Map(takers.map(({ id }) => [id, 0]));
          sets.set(key, loads);
          const owner = owners.get(target.id)?.id;
          if (owner !== undefined) loads.set(owner, (loads.get(owner) ?? 0) + 1);
        }
        for (const loads of sets.values()) {
          const counts = [...loads.values()];
          if (counts.length > 0)
            expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
        }
      }),
    );
  });

  it('P-01 is the same in whatever order members and targets are read', () => {
    fc.assert(
      fc.property(fleet, (seen) => {
        const { members, targets } = seen;
        const turned = { members: members.toReversed(), targets: targets.toReversed() };
        const ids = (of: Fleet) => new Map([...outcome(of)].map(([id, owner]) => [id, owner?.id]));
        expect(ids(turned)).toEqual(ids(seen));
      }),
    );
  });

  it('P-01 is the plan without commands where every member has every command', () => {
    fc.assert(
      fc.property(fleet, ({ members, targets }) => {
        const all = members.map((member) => ({ ...member, commands: COMMANDS }));
        const plain = targets.map((target) => ({ ...target, command: undefined }));
        expect(plan(all, targets).planned).toEqual(plan(all, plain).planned);
        expect(plan(all, targets).isSplit).toBe(false);
      }),
    );
  });

  it('P-01 changes nothing once every target is where the plan wants it', () => {
    fc.assert(
      fc.property(fleet, ({ members, targets }) => {
        const moved = (of: readonly PlanTarget[]) => {
          const owners = outcome({ members, targets: of });
          return of.map((target) => ({ ...target, owner: owners.get(target.id)?.id ?? null }));
        };
        // A member that takes targets over for one that drains may have to pass one on.
        const settled = moved(moved(targets));
        expect(moved(settled)).toEqual(settled);
      }),
    );
  });
});
