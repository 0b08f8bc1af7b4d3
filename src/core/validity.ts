/**
 * How long a confirmation of the store is valid here: the rule of the two clocks. Leases, claims of
 * processors and supervisors of commands all use this module, so they agree about the same facts.
 *
 * The facts are a confirmation (when the confirmed request was sent, on both clocks), for how long
 * the confirmation is valid from then on, and by how much the two clocks may disagree.
 *
 * **The clocks agree**, within the tolerance. The monotonic clock decides: the wall clock may
 * drift, or be slewed.
 *
 * **The wall clock is ahead.** The host may have slept. The monotonic clock stops during a sleep,
 * the store does not. So the wall clock decides, because its answer is the earlier one. If the wall
 * clock was only set ahead, the answer is too early, which is safe.
 *
 * **The wall clock is behind.** It was set back. A step back by a minute hides a sleep of a minute,
 * so the clocks no longer prove that the host was awake. The remaining time is *unproven*: it
 * counts as nothing until the store confirms again. It is not over either. The holder keeps its
 * lease and renews at once; checks throw in the meantime. A command cannot be paused, so its
 * supervisor waits a short time for the confirmation (`worker/supervisor/group-run.ts`).
 *
 * **The monotonic clock has passed the end.** The time is over, whatever the wall clock says.
 * Setting the wall clock back never makes a lease last longer.
 */
import type { Clock } from './clock.ts';

/** The tolerance is half of the guard, and at most this. */
const MAX_JUMP_MS = 1_000;

/** When a request that the store confirmed was sent, on both clocks. */
export interface Confirmation {
  readonly sentAtMs: number;
  readonly sentAtWallMs: number;
}

export interface Validity {
  /** How long a confirmation is valid, from the moment its request was sent. */
  readonly validMs: number;
  /** How far the clocks may disagree: the tolerance. */
  readonly jumpMs: number;
}

/** All facts of the rule. Plain data, so that another process of this host can apply the rule. */
export interface Deadline extends Confirmation, Validity {}

/** `over` and `unproven`: no time remains. A later confirmation can make `unproven` good again. */
export type Standing = 'good' | 'unproven' | 'over';

export function confirmationNow(clock: Clock): Confirmation {
  return { sentAtMs: clock.monotonicMs(), sentAtWallMs: clock.wallMs() };
}

export function toleratedJumpMs(guardMs: number): number {
  return Math.min(MAX_JUMP_MS, guardMs / 2);
}

/** The latest possible end, on the monotonic clock. Timers use it. */
export function endsAtMs({ sentAtMs }: Confirmation, { validMs }: Validity): number {
  return sentAtMs + validMs;
}

/** How far the wall clock has moved ahead of the monotonic clock; negative: it was set back. */
export function jumpMs(
  { sentAtMs, sentAtWallMs }: Confirmation,
  clock: Clock,
  nowMs: number = clock.monotonicMs(),
): number {
  return clock.wallMs() - sentAtWallMs - (nowMs - sentAtMs);
}

/** Whether the clocks disagree, so that the store has to confirm again. */
export function isInDoubt(
  confirmed: Confirmation,
  { jumpMs: toleratedMs }: Pick<Validity, 'jumpMs'>,
  clock: Clock,
  nowMs: number = clock.monotonicMs(),
): boolean {
  return Math.abs(jumpMs(confirmed, clock, nowMs)) > toleratedMs;
}

/** How much time may have passed: by the monotonic clock, or more if the host may have slept. */
export function elapsedMs(
  since: Confirmation,
  { jumpMs: toleratedMs }: Pick<Validity, 'jumpMs'>,
  clock: Clock,
  nowMs: number = clock.monotonicMs(),
  aheadMs: number = jumpMs(since, clock, nowMs),
): number {
  return nowMs - since.sentAtMs + (aheadMs > toleratedMs ? aheadMs : 0);
}

export function standing(confirmed: Confirmation, validity: Validity, clock: Clock): Standing {
  const nowMs = clock.monotonicMs();
  const aheadMs = jumpMs(confirmed, clock, nowMs);
  if (elapsedMs(confirmed, validity, clock, nowMs, aheadMs) >= validity.validMs) return 'over';
  return aheadMs < -validity.jumpMs ? 'unproven' : 'good';
}

/** How long the confirmation is still valid; 0 if it is not. */
export function remainingMs(
  confirmed: Confirmation,
  validity: Validity,
  clock: Clock,
  nowMs: number = clock.monotonicMs(),
): number {
  const aheadMs = jumpMs(confirmed, clock, nowMs);
  if (aheadMs < -validity.jumpMs) return 0;
  return Math.max(0, validity.validMs - elapsedMs(confirmed, validity, clock, nowMs, aheadMs));
}
