/**
 * What one round does about each target, after the plan. Pure: no I/O, no clock, and nothing that
 * it is given is changed. The lease alone says which instance may work; a decision that was made
 * from an old view costs a request that the store refuses.
 *
 * - **take** a free target that is planned for this instance; one that is planned for another
 *   member too, if that member does not come; and one whose lease the store has in this instance's
 *   name.
 * - **ask** the owner for a target that is planned for this instance.
 * - **release** an owned target that is paused or removed; **drop** one that is not owned.
 *
 * An instance without the command that a target needs releases that target, and neither takes nor
 * asks for it.
 */
import type { FleetTarget } from '../view/fleet-target.ts';
import { hasCommand, mayTake, type PlanMember, rankOf } from './plan.ts';

/** A member that is not planned for a free target waits this long per rank, so as not to race. */
export const STAGGER_MS = 150;

/** The fleet, as this instance knows it when the round decides. */
export interface RoundView {
  readonly targets: Iterable<FleetTarget>;
  /** Whether the target is to be polled: it exists and is not paused. */
  isListed(id: string): boolean;
  /** The members that the plan was made for, this instance first. */
  readonly members: readonly PlanMember[];
  /** Another member with a heartbeat, even if the plan does not count on it. */
  memberOf(id: string): PlanMember | undefined;
  /** After a join, moves wait until then for more members to join. */
  readonly settledAtMs: number;
}

export interface RoundSelf extends PlanMember {
  /** This instance stops: it takes and asks for nothing. */
  readonly isLeaving: boolean;
}

/** A target to ask its owner for. */
export interface WantedTarget {
  readonly target: FleetTarget;
  /** Not asked for before this. */
  readonly fromMs: number;
}

export interface Decision {
  readonly take: readonly FleetTarget[];
  readonly ask: readonly WantedTarget[];
  readonly release: readonly FleetTarget[];
  readonly drop: readonly FleetTarget[];
  /** Free targets that this instance leaves alone: when their leases are read again. */
  readonly refresh: readonly { readonly target: FleetTarget; readonly atMs: number }[];
}

export function decide(view: RoundView, self: RoundSelf, nowMs: number): Decision {
  const take: FleetTarget[] = [];
  const ask: WantedTarget[] = [];
  const release: FleetTarget[] = [];
  const drop: FleetTarget[] = [];
  const refresh: { target: FleetTarget; atMs: number }[] = [];
  for (const target of view.targets) {
    if (!view.isListed(target.id)) {
      if (target.state === 'owned') release.push(target);
      else if (target.state === 'watched') drop.push(target);
      continue;
    }
    if (!hasCommand(self, target)) {
      if (target.state === 'owned') release.push(target);
      continue;
    }
    if (target.state !== 'watched' || self.isLeaving) continue;
    // The store has its lease in this instance's name, and grants it to no other.
    if (target.owner === self.id) take.push(target);
    else if (self.isDraining) continue;
    else if (target.owner === null) {
      const atMs = takeFromMs(target, view, self, nowMs);
      if (atMs === null) continue;
      if (atMs <= nowMs) take.push(target);
      else refresh.push({ target, atMs });
    } else if (isAskable(target, view, self, nowMs)) {
      ask.push({ target, fromMs: askFromMs(target, view, self) });
    }
  }
  return { take, ask, release, drop, refresh };
}

/**
 * When to read a lease again, for targets that this instance does not own but may. Called after the
 * round has acted: an acquired lease needs no reading, and a refusal says when the lease expires.
 */
export function lookAgainAtMs(targets: Iterable<FleetTarget>, self: RoundSelf): number {
  let atMs = Number.POSITIVE_INFINITY;
  if (self.isDraining) return atMs;
  for (const { state, refreshAtMs } of targets)
    if (state === 'watched') atMs = Math.min(atMs, refreshAtMs);
  return atMs;
}

/** What this instance may own, by its own plan. */
export interface Share {
  readonly quota: number;
  /** This instance hands over every target that is asked for. */
  readonly isDraining: boolean;
  /** Its plan has several groups of targets, as `Plan.isSplit` says. */
  readonly isSplit: boolean;
  /** How long the work on a target has to settle before it is handed over. */
  readonly withinMs?: number | undefined;
}

/** Whether this instance, which owns `owned` targets, hands this one to the member that asks. */
export function mayGive(
  target: FleetTarget,
  asker: PlanMember,
  owned: number,
  { quota, isDraining, isSplit }: Share,
): boolean {
  const { state, pinned, planned } = target;
  if (state !== 'owned' || !mayTake(asker, target)) return false;
  if (pinned === asker.id || isDraining) return true;
  // An owner may have too many targets of one group, and too few of another.
  if (isSplit && planned === asker.id) return true;
  // Pinned to a live member that does not ask: it stays, or goes there.
  const isPinned = pinned !== null && pinned === planned;
  return owned > quota && !isPinned;
}

/** From when this instance takes a free target. Null: its lease is barred, or has to be read. */
function takeFromMs(
  target: FleetTarget,
  { members }: RoundView,
  self: RoundSelf,
  nowMs: number,
): number | null {
  const { expiresAtMs, planned, notBeforeMs, freeSinceMs } = target;
  if (expiresAtMs > nowMs) return null;
  if (planned === null) return Number.POSITIVE_INFINITY;
  if (notBeforeMs > nowMs) return notBeforeMs;
  if (planned === self.id) return Number.NEGATIVE_INFINITY;
  const rivals = members.filter(({ id }) => id !== planned);
  return freeSinceMs + STAGGER_MS * (1 + rankOf(self, target, rivals));
}

/** A foreign owner, and one without a heartbeat, answers no ask. */
function isAskable(
  { owner, planned, revokedUntilMs, notBeforeMs }: FleetTarget,
  view: RoundView,
  self: RoundSelf,
  nowMs: number,
): boolean {
  if (planned !== self.id || view.memberOf(owner ?? '')?.isForeign !== false) return false;
  return Math.max(revokedUntilMs, notBeforeMs) <= nowMs;
}

/** A draining owner, and an operator who pins, have decided: there is nothing to wait for. */
function askFromMs({ owner, pinned }: FleetTarget, view: RoundView, self: RoundSelf): number {
  const isDecided = pinned === self.id || view.memberOf(owner ?? '')?.isDraining === true;
  return isDecided ? Number.NEGATIVE_INFINITY : view.settledAtMs;
}
