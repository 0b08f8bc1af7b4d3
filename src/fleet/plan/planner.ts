import { type Plan, type PlanMember, type PlanTarget, plan } from './plan.ts';

/**
 * Plans only where there is something to plan: most rounds see the same members, the same targets and the same owners as
 * the one before, and what came out then comes out again. It compares all of what a plan is made of, so that it can not
 * miss a change; that costs a look at each target, a plan a few looks at each pair.
 */
export class Planner {
  #plan: Plan = plan([], []);
  #targets: readonly PlanTarget[] = [];
  /** Of these, when the plan was made: a target changes hands, is pinned, and stays the same object. */
  #owners: readonly (string | null)[] = [];
  #pins: readonly (string | null)[] = [];

  get last(): Plan {
    return this.#plan;
  }

  /** The plan for these, made anew or not. */
  plan(members: readonly PlanMember[], targets: readonly PlanTarget[]): Plan {
    if (!this.#isSame(members, targets)) {
      this.#plan = plan(members, targets);
      this.#targets = targets;
      this.#owners = targets.map(({ owner }) => owner);
      this.#pins = targets.map(({ pinned }) => pinned);
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
      if (target.pinned !== this.#pins[t]) return false;
    }
    return true;
  }
}

function isSameMember(a: PlanMember, b: PlanMember): boolean {
  if (a === b) return true;
  return a.id === b.id && !isDifferent(a, b);
}

/** Whether what a member says of itself makes for another plan. */
export function isDifferent(a: PlanMember, b: PlanMember): boolean {
  return a.weight !== b.weight || a.isDraining !== b.isDraining || a.isForeign !== b.isForeign;
}
