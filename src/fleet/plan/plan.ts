/**
 * Which member should own which target. A pure function of the members, the targets and their
 * owners: every instance that reads the same makes the same plan, in whatever order it reads it,
 * without a leader.
 *
 * 1. **Quota**: floor or ceil of a member's share by weight. The odd targets go to the members that
 *    own more already, so that nothing moves for them. A draining member has a quota of 0.
 * 2. **Keep**: a member gets all targets that are pinned to it, even beyond its quota. They count
 *    first. For the rest of its quota it keeps the targets it owns that prefer it most, and gives
 *    up the others.
 * 3. **Place**: targets without an owner, and those given up, go to members below their quota, the
 *    cheapest pair first. Of all ways to fill the quotas, only one leaves no pair that would both
 *    prefer each other.
 *
 * A target may name a command, and only members that have it may own the target. The targets that
 * the same members may own are shared among these, as above, apart from the others.
 *
 * So a join or a leave moves as few targets as the quotas allow. A pinned target stays in its
 * place, and another goes instead. Foreign members keep their targets and get no others. A pin to a
 * member that is gone, foreign or draining has no effect.
 */
import { before, cost, type Hashed } from './hash.ts';
import { place } from './placement.ts';

export interface PlanMember extends Hashed {
  readonly weight: number;
  readonly isDraining: boolean;
  /** A non-Holdfast program: it keeps its targets and gets no others. */
  readonly isForeign: boolean;
  /** The names of the commands that it has. Default: `default` alone, as a poller. */
  readonly commands?: readonly string[] | undefined;
}

export interface PlanTarget extends Hashed {
  /** The id of its owner, member or not; null for none. */
  readonly owner: string | null;
  /** The id of the member that an operator has moved it to; null for none. */
  readonly pinned: string | null;
  /** The name of the command that it needs. Default: `default`, which polls or runs all others. */
  readonly command?: string | undefined;
}

type Commanded = Pick<PlanTarget, 'command'>;

/** What a target needs that names no command, and what a member has that does not say. */
export const DEFAULT_COMMAND = 'default';
const ONLY_DEFAULT: readonly string[] = [DEFAULT_COMMAND];

/** Whether the member has the command that the target needs. */
export function hasCommand(
  { commands = ONLY_DEFAULT }: Pick<PlanMember, 'commands'>,
  { command = DEFAULT_COMMAND }: Commanded,
): boolean {
  return commands.includes(command);
}

export interface Plan {
  /** As given. */
  readonly members: readonly PlanMember[];
  /** Per member, how many targets it should own. */
  readonly quotas: readonly number[];
  /** Per target the index of the member that should own it; -1 where none may. */
  readonly planned: Int32Array;
  /** Some targets were shared among some members only: the others lack a command. */
  readonly isSplit: boolean;
}

export function plan(members: readonly PlanMember[], targets: readonly PlanTarget[]): Plan {
  const groups = groupsOf(members, targets);
  const [first] = groups;
  const isWhole = groups.length < 2 && (first?.members ?? members).length === members.length;
  // Nearly always: every member has every command.
  if (isWhole) return planGroup(members, targets);
  const quotas = members.map(() => 0);
  const planned = new Int32Array(targets.length).fill(-1);
  for (const group of groups) {
    const part = planGroup(
      group.members.map((m) => members[m] as PlanMember),
      group.targets.map((t) => targets[t] as PlanTarget),
    );
    for (const [i, m] of group.members.entries())
      quotas[m] = (quotas[m] ?? 0) + (part.quotas[i] ?? 0);
    for (const [i, t] of group.targets.entries())
      planned[t] = group.members[part.planned[i] as number] ?? -1;
  }
  return { members, quotas, planned, isSplit: true };
}

/** Indexes of targets, and of the members that may own these targets. */
interface Group {
  readonly members: readonly number[];
  readonly targets: number[];
}

/** One group for each set of members that have the same commands. */
function groupsOf(members: readonly PlanMember[], targets: readonly PlanTarget[]): Group[] {
  const bySet = new Map<string, Group>();
  const byCommand = new Map<string | undefined, Group>();
  for (let t = 0; t < targets.length; t++) {
    const target = targets[t] as PlanTarget;
    let group = byCommand.get(target.command);
    if (group === undefined) {
      // A foreign member keeps what it has, whatever that needs.
      const able = members.flatMap((member, m) =>
        member.isForeign || hasCommand(member, target) ? [m] : [],
      );
      const set = able.join();
      group = bySet.get(set) ?? { members: able, targets: [] };
      bySet.set(set, group);
      byCommand.set(target.command, group);
    }
    group.targets.push(t);
  }
  return [...bySet.values()];
}

/** Shares targets among members that may own any of them. */
function planGroup(members: readonly PlanMember[], targets: readonly PlanTarget[]): Plan {
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
  const shares = sharesOf(
    members,
    holdings.map(({ length }) => length),
    targets.length - foreign,
  );
  const pinned = placePinned(members, targets, planned, (t) => members[owned[t] as number]);
  const room = members.map((member, m) => {
    const held = holdings[m]?.filter((t) => planned[t] === -1) ?? [];
    const quota = Math.max(0, (shares.quotas[m] ?? 0) - (pinned[m] ?? 0));
    // A foreign member keeps all; so does a draining one while no member can take over.
    const isFixed = member.isForeign || shares.isStuck;
    for (const t of cheapest(member, targets, held, isFixed ? held.length : quota)) planned[t] = m;
    return isFixed ? 0 : Math.max(0, quota - held.length);
  });
  place(members, targets, planned, room);
  return { members, quotas: shares.quotas, planned, isSplit: false };
}

interface Shares {
  /** Per member; draining and foreign members have 0. */
  readonly quotas: number[];
  /** No member could take a target over: every owner keeps its targets. */
  readonly isStuck: boolean;
}

/**
 * Shares out `count` targets by weight. Each member gets the whole part of its share. The rest goes
 * to the largest fractions; among equal ones to the members that own more already, then by hash.
 */
function sharesOf(members: readonly PlanMember[], held: readonly number[], count: number): Shares {
  const weights = members.map(({ weight, isDraining, isForeign }) =>
    isDraining || isForeign ? 0 : weight,
  );
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) return { quotas: members.map(() => 0), isStuck: true };
  // Whole numbers only: two instances must not round differently.
  const shares = weights.map((weight) => Math.floor((count * weight) / total));
  const odd = count - shares.reduce((sum, share) => sum + share, 0);
  const fractions = weights.map((weight) => (count * weight) % total);
  const order = members
    .map((_, m) => m)
    .filter((m) => (weights[m] ?? 0) > 0)
    .sort((a, b) => {
      const byFraction = (fractions[b] ?? 0) - (fractions[a] ?? 0);
      if (byFraction !== 0) return byFraction;
      const byHeld = (held[b] ?? 0) - (held[a] ?? 0);
      if (byHeld !== 0) return byHeld;
      return before(members[a] as Hashed, members[b] as Hashed) ? -1 : 1;
    });
  for (const m of order.slice(0, odd)) shares[m] = (shares[m] ?? 0) + 1;
  return { quotas: shares, isStuck: false };
}

/** Plans each pinned target for its member. Returns how many each member gets. */
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

/** The held targets that prefer the member most. */
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

/** Whether the member may be given the target. */
export function mayTake(member: PlanMember, target: Commanded): boolean {
  return !member.isForeign && !member.isDraining && hasCommand(member, target);
}

/** The rank of a member among those that may own a target: 0 for the one that it prefers. */
export function rankOf(
  member: PlanMember,
  target: Hashed & Commanded,
  members: readonly PlanMember[],
): number {
  const own = cost(member.hi, member.lo, target.hi, target.lo);
  let rank = 0;
  for (const other of members) {
    if (other === member || !mayTake(other, target)) continue;
    const theirs = cost(other.hi, other.lo, target.hi, target.lo);
    if (theirs < own || (theirs === own && before(other, member))) rank++;
  }
  return rank;
}

/** The member that a target prefers of those that may own it; undefined where none may. */
export function firstChoice<M extends PlanMember>(
  target: Hashed & Commanded,
  members: readonly M[],
): M | undefined {
  let first: M | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const member of members) {
    if (!mayTake(member, target)) continue;
    const own = cost(member.hi, member.lo, target.hi, target.lo);
    if (first !== undefined && (own > least || (own === least && before(first, member)))) continue;
    first = member;
    least = own;
  }
  return first;
}
