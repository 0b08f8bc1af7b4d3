import { type Plan, type PlanMember, type PlanTarget, plan } from './plan.ts';

/** A target that remembers which member should own it. */
interface PlannedTarget extends PlanTarget {
  planned: string | null;
}

/**
 * Plans only if something has changed: most rounds have the same members, targets and owners as the
 * round before. It compares everything that a plan is made from, so it cannot miss a change. That
 * costs one comparison per target; a plan costs a few per pair of target and member.
 */
export class PlanCache {
  #plan: Plan = plan([], []);
  #targets: readonly PlanTarget[] = [];
  /** As they were when the plan was made: a target that changes stays the same object. */
  #owners: readonly (string | null)[] = [];
  #pins: readonly (string | null)[] = [];
  #commands: readonly (string | undefined)[] = [];

  get last(): Plan {
    return this.#plan;
  }

  /** Sets `planned` of each target. Returns the targets for which it has changed. */
  assign<T extends PlannedTarget>(members: readonly PlanMember[], targets: readonly T[]): T[] {
    const { planned } = this.plan(members, targets);
    return targets.filter((target, t) => {
      const member = members[planned[t] as number]?.id ?? null;
      const isMoved = target.planned !== member;
      target.planned = member;
      return isMoved;
    });
  }

  plan(members: readonly PlanMember[], targets: readonly PlanTarget[]): Plan {
    if (!this.#isSame(members, targets)) {
      this.#plan = plan(members, targets);
      this.#targets = targets;
      this.#owners = targets.map(({ owner }) => owner);
      this.#pins = targets.map(({ pinned }) => pinned);
      this.#commands = targets.map(({ command }) => command);
    }
    return this.#plan;
  }

  #isSame(members: readonly PlanMember[], targets: readonly PlanTarget[]): boolean {
    const { members: before } = this.#plan;
    if (members.length !== before.length || targets.length !== this.#targets.length) return false;
    for (let m = 0; m < members.length; m++)
      if (!isSameMember(members[m] as PlanMember, before[m] as PlanMember)) return false;
    for (let t = 0; t < targets.length; t++) {
      const target = targets[t] as PlanTarget;
      if (target !== this.#targets[t] || target.owner !== this.#owners[t]) return false;
      if (target.pinned !== this.#pins[t] || target.command !== this.#commands[t]) return false;
    }
    return true;
  }
}

function isSameMember(a: PlanMember, b: PlanMember): boolean {
  if (a === b) return true;
  return a.id === b.id && !isPlannedDifferently(a, b);
}

/** Whether two versions of a member lead to different plans. */
export function isPlannedDifferently(a: PlanMember, b: PlanMember): boolean {
  if (a.weight !== b.weight || a.isDraining !== b.isDraining) return true;
  return a.isForeign !== b.isForeign || String(a.commands) !== String(b.commands);
}
