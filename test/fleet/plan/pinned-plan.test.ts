import { describe, expect, it } from 'vitest';
import { hashMember, hashTarget } from '../../../src/fleet/plan/hash.ts';
import { type PlanMember, type PlanTarget, plan } from '../../../src/fleet/plan/plan.ts';
import fc from '../../support/fast-check.ts';

/** A fleet as somebody may see it: who takes part, who owns what, and what is pinned to whom. */
interface Sight {
  readonly members: readonly PlanMember[];
  readonly targets: readonly PlanTarget[];
}

const NAMES = Array.from({ length: 12 }, (_, i) => `api-${i}`);

const sight: fc.Arbitrary<Sight> = fc
  .record({
    names: fc.subarray(NAMES, { minLength: 1 }),
    draining: fc.subarray(NAMES, { maxLength: 3 }),
    foreign: fc.subarray(NAMES, { maxLength: 2 }),
    weights: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 12, maxLength: 12 }),
    owners: fc.array(fc.option(fc.constantFrom('gone', ...NAMES)), { maxLength: 80 }),
    pins: fc.array(fc.option(fc.constantFrom('gone', ...NAMES), { freq: 2 }), {
      minLength: 80,
      maxLength: 80,
    }),
  })
  .map(({ names, draining, foreign, weights, owners, pins }) => ({
    members: names.map((name) => ({
      ...hashMember(name),
      weight: weights[NAMES.indexOf(name)] ?? 1,
      isDraining: draining.includes(name),
      isForeign: foreign.includes(name),
    })),
    targets: owners.map((owner, i) => ({
      ...hashTarget(`device-${i}`),
      ...{ owner, pinned: pins[i] ?? null },
    })),
  }));

/** Who should own what, by id. */
function outcome({ members, targets }: Sight): Map<string, string | null> {
  const { planned } = plan(members, targets);
  return new Map(targets.map(({ id }, t) => [id, members[planned[t] as number]?.id ?? null]));
}

function withoutPins({ members, targets }: Sight): Sight {
  return { members, targets: targets.map((target) => ({ ...target, pinned: null })) };
}

/** As it is when everybody has what the plan gives it. */
function settled({ members, targets }: Sight): Sight {
  let now: Sight = { members, targets };
  for (;;) {
    const owners = outcome(now);
    if (now.targets.every(({ id, owner }) => owners.get(id) === owner)) return now;
    now = {
      members,
      targets: now.targets.map((target) => ({ ...target, owner: owners.get(target.id) ?? null })),
    };
  }
}

function isWilling(members: readonly PlanMember[], id: string | null): boolean {
  const member = members.find((one) => one.id === id);
  return member !== undefined && !member.isDraining && !member.isForeign;
}

function loads({ members, targets }: Sight): number[] {
  return members.map(({ id }) => targets.filter(({ owner }) => owner === id).length);
}

describe('a plan with pins', () => {
  it('P-01 has the same quotas as one without', () => {
    fc.assert(
      fc.property(sight, (seen) => {
        const { members, targets } = seen;
        expect(plan(members, targets).quotas).toEqual(
          plan(members, withoutPins(seen).targets).quotas,
        );
      }),
    );
  });

  it('P-01 gives a pinned target to its member, which keeps it, unless that member drains or a foreign member holds it', () => {
    fc.assert(
      fc.property(sight, (seen) => {
        const { members, targets } = seen;
        const owners = outcome(seen);
        for (const { id, pinned, owner } of targets) {
          const holder = members.find((member) => member.id === owner);
          if (!isWilling(members, pinned) || holder?.isForeign) continue;
          expect(owners.get(id)).toBe(pinned);
        }
      }),
    );
  });

  it('P-01 is the same as without pins where no pin has an effect: its member is gone, foreign or draining', () => {
    fc.assert(
      fc.property(sight, ({ members, targets }) => {
        const useless = targets.map((target) => ({
          ...target,
          pinned: isWilling(members, target.pinned) ? null : target.pinned,
        }));
        const seen = { members, targets: useless };
        expect(outcome(seen)).toEqual(outcome(withoutPins(seen)));
      }),
    );
  });

  it('P-01 is the same for all instances that read the same, in whatever order', () => {
    fc.assert(
      fc.property(sight, fc.infiniteStream(fc.nat()), ({ members, targets }, seed) => {
        const shuffled = <T>(list: readonly T[]) =>
          list
            .map((item) => [seed.next().value, item] as const)
            .sort(([a], [b]) => a - b)
            .map(([, item]) => item);
        const here = outcome({ members, targets });
        const there = outcome({ members: shuffled(members), targets: shuffled(targets) });
        for (const [id, owner] of here) expect(there.get(id)).toBe(owner);
      }),
    );
  });

  it('P-01 leaves no target unplaced while a member may own it', () => {
    fc.assert(
      fc.property(sight, (seen) => {
        const { members } = seen;
        fc.pre(members.some(({ id }) => isWilling(members, id)));
        expect([...outcome(seen).values()]).not.toContain(null);
      }),
    );
  });

  it('P-01 moves nothing once every member has its targets', () => {
    fc.assert(
      fc.property(sight, (seen) => {
        const after = settled(seen);
        const owners = outcome(after);
        for (const { id, owner } of after.targets) expect(owners.get(id)).toBe(owner);
      }),
    );
  });

  it('SC-004 shares out the other targets evenly, as long as no member has more pins than its share', () => {
    fc.assert(
      fc.property(sight, (seen) => {
        const after = settled(seen);
        const { quotas } = plan(after.members, after.targets);
        const pinned = after.members.map(
          ({ id }) => after.targets.filter((target) => target.pinned === id).length,
        );
        fc.pre(after.members.every(({ isForeign }) => !isForeign));
        fc.pre(after.members.some(({ id }) => isWilling(after.members, id)));
        fc.pre(pinned.every((count, m) => count <= (quotas[m] ?? 0)));
        expect(loads(after)).toEqual(quotas);
      }),
    );
  });

  it('P-01 moves the pinned target, one the other way for an even share, and nothing else', () => {
    const even = fc.record({
      size: fc.integer({ min: 2, max: 8 }),
      each: fc.integer({ min: 2, max: 8 }),
    });
    fc.assert(
      fc.property(even, fc.nat(), fc.nat(), ({ size, each }, which, whom) => {
        const members = NAMES.slice(0, size).map((name) => ({
          ...hashMember(name),
          ...{ weight: 1, isDraining: false, isForeign: false },
        }));
        const ids = Array.from({ length: size * each }, (_, i) => `device-${i}`);
        const target = (id: string) => ({ ...hashTarget(id), owner: null, pinned: null });
        const before = settled({ members, targets: ids.map(target) });
        const chosen = before.targets[which % ids.length] as PlanTarget;
        const to = members.filter(({ id }) => id !== chosen.owner)[whom % (size - 1)]?.id ?? null;
        const targets = before.targets.map((one) =>
          one.id === chosen.id ? { ...one, pinned: to } : one,
        );
        const after = settled({ members, targets });
        const moved = after.targets.filter(
          ({ id, owner }) => before.targets.find((one) => one.id === id)?.owner !== owner,
        );
        expect(after.targets.find(({ id }) => id === chosen.id)?.owner).toBe(to);
        expect(moved).toHaveLength(2);
        expect(moved.find(({ id }) => id !== chosen.id)?.owner).toBe(chosen.owner);
      }),
    );
  });

  it('P-01 moves as few targets as possible on a join, and no pinned one', () => {
    fc.assert(
      fc.property(sight, (seen) => {
        const before = settled(seen);
        const { quotas } = plan(before.members, before.targets);
        const pins = (id: string) => before.targets.filter(({ pinned }) => pinned === id).length;
        const members = [
          ...before.members,
          { ...hashMember('newcomer'), weight: 1, isDraining: false, isForeign: false },
        ];
        const next = plan(members, before.targets).quotas;
        fc.pre(before.members.every(({ isForeign, isDraining }) => !isForeign && !isDraining));
        fc.pre(
          before.members.every(({ id }, m) => pins(id) <= Math.min(quotas[m] ?? 0, next[m] ?? 0)),
        );
        const after = outcome({ members, targets: before.targets });
        const moved = before.targets.filter(({ id, owner }) => after.get(id) !== owner);
        // With weights a join may also move what is one too many for another: never more than that.
        const surplus = before.members.map(({ id }, m) => {
          const owned = before.targets.filter(({ owner }) => owner === id).length;
          return Math.max(0, owned - (next[m] ?? 0));
        });
        expect(moved.some(({ pinned }) => isWilling(members, pinned))).toBe(false);
        expect(moved).toHaveLength(surplus.reduce((sum, count) => sum + count, 0));
      }),
    );
  });
});
