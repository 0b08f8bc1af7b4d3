/**
 * Who should own what. A pure function of the members, the targets and who owns them now: every instance that sees the
 * same comes to the same plan, in whatever order it sees it, without a leader.
 *
 * 1. **Quota**: floor or ceil of a member's share by weight. The odd ones go to those who hold more already, so that
 *    nothing moves for them. A draining member has none.
 * 2. **Keep**: what is pinned to a member is that member's, however many that are, and counts as the first of its quota. Up to that,
 *    it keeps what it owns: the targets that like it best. The rest it gives up.
 * 3. **Place**: what has no owner, or is given up, goes to members below their quota, the pair that likes each other best
 *    first. Of all ways to fill the quotas, only one leaves no pair that would rather have each other.
 *
 * So a join or a leave moves as few targets as the quotas allow, and one that was moved by hand and pinned stays where it is: another
 * goes in its place. Foreign members keep what they hold and get nothing; pins to members that are gone, foreign or draining have no effect.
 */
import { before, cost, type Hashed } from './hash.ts';
import { place } from './placement.ts';
import { quotas } from './quotas.ts';

export interface PlanMember extends Hashed {
  readonly weight: number;
  readonly isDraining: boolean;
  /** Of another make: what it holds it keeps, and it is given nothing. */
  readonly isForeign: boolean;
}

export interface PlanTarget extends Hashed {
  /** The id of whoever owns it, member or not; null for nobody. */
  readonly owner: string | null;
  /** The id of whom an operator has moved it to; null for nobody. */
  readonly pinned: string | null;
}

export interface Plan {
  /** As given. */
  readonly members: readonly PlanMember[];
  /** Per member, how many targets it should own. */
  readonly quotas: readonly number[];
  /** Per target the index of the member that should own it; -1 where nobody may. */
  readonly planned: Int32Array;
  /** Per target the index of the member that owns it; -1 for nobody, or somebody who is no member. */
  readonly owned: Int32Array;
}

export function plan(members: readonly PlanMember[], targets: readonly PlanTarget[]): Plan {
  const index = new Map(members.map(({ id }, i) => [id, i]));
  const owned = Int32Array.from(targets, ({ owner }) =>
    owner === null ? -1 : (index.get(owner) ?? -1),
  );
  const planned = new Int32Array(targets.length).fill(-1);
  const holdings = members.map((): number[] => []);
  for (let t = 0; t < owned.length; t++) holdings[owned[t] as number]?.push(t);
  const foreign = members.reduce(
    (sum, { isForeign }, m) => sum + (isForeign ? (holdings[m]?.length ?? 0) : 0),
    0,
  );
  const shares = quotas(
    members,
    holdings.map(({ length }) => length),
    targets.length - foreign,
  );
  const pinned = placePinned(members, targets, planned, (t) => members[owned[t] as number]);
  const room = members.map((member, m) => {
    const held = holdings[m]?.filter((t) => planned[t] === -1) ?? [];
    const quota = Math.max(0, (shares.quotas[m] ?? 0) - (pinned[m] ?? 0));
    // A foreign member keeps all; so does one that drains while there is nobody to take over.
    const isFixed = member.isForeign || shares.isStuck;
    for (const t of cheapest(member, targets, held, isFixed ? held.length : quota)) planned[t] = m;
    return isFixed ? 0 : Math.max(0, quota - held.length);
  });
  place(members, targets, planned, room);
  return { members, quotas: shares.quotas, planned, owned };
}

/** Plans what is pinned for whom it is pinned to; says how many that are for each member. */
function placePinned(
  members: readonly PlanMember[],
  targets: readonly PlanTarget[],
  planned: Int32Array,
  ownerOf: (target: number) => PlanMember | undefined,
): number[] {
  const counts = members.map(() => 0);
  const index = new Map(
    members.flatMap(({ id, isForeign, isDraining }, m) =>
      isForeign || isDraining ? [] : [[id, m]],
    ),
  );
  for (let t = 0; t < targets.length; t++) {
    const { pinned } = targets[t] as PlanTarget;
    const m = pinned ? index.get(pinned) : undefined;
    if (m === undefined || ownerOf(t)?.isForeign) continue;
    planned[t] = m;
    counts[m] = (counts[m] ?? 0) + 1;
  }
  return counts;
}

/** Those of the targets that like the member best. */
function cheapest(
  member: Hashed,
  targets: readonly Hashed[],
  held: readonly number[],
  most: number,
): readonly number[] {
  if (held.length <= most) return held;
  const costs = new Map(
    held.map((t) => {
      const { hi, lo } = targets[t] as Hashed;
      return [t, cost(member.hi, member.lo, hi, lo)];
    }),
  );
  const byCost = (a: number, b: number) => {
    const difference = (costs.get(a) ?? 0) - (costs.get(b) ?? 0);
    if (difference !== 0) return difference;
    return before(targets[a] as Hashed, targets[b] as Hashed) ? -1 : 1;
  };
  return held.toSorted(byCost).slice(0, most);
}

/** The place of a member among those who may own a target, by how much the target likes them: 0 for the first. */
export function rankOf(member: PlanMember, target: Hashed, members: readonly PlanMember[]): number {
  const own = cost(member.hi, member.lo, target.hi, target.lo);
  let rank = 0;
  for (const other of members) {
    if (other === member || other.isForeign || other.isDraining) continue;
    const theirs = cost(other.hi, other.lo, target.hi, target.lo);
    if (theirs < own || (theirs === own && before(other, member))) rank++;
  }
  return rank;
}

/** Whom a target likes best of those who may own it: the one of rank 0. Undefined where nobody may. */
export function firstChoice<M extends PlanMember>(
  target: Hashed,
  members: readonly M[],
): M | undefined {
  let first: M | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const member of members) {
    if (member.isForeign || member.isDraining) continue;
    const own = cost(member.hi, member.lo, target.hi, target.lo);
    if (first !== undefined && (own > least || (own === least && before(first, member)))) continue;
    first = member;
    least = own;
  }
  return first;
}
