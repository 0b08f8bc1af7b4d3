/**
 * How long something that the store has confirmed may be relied on here: the rule of the two clocks. Leases, the claims of
 * processors and the supervisors of commands all ask this module, so they all get the same answer from the same facts.
 *
 * The facts are a confirmation (when the confirmed request was sent, on both clocks), how long it is good for from then on,
 * and by how much the clocks may disagree.
 *
 * **The clocks agree**, within the tolerance. The monotonic clock decides: the wall clock may drift, or be slewed.
 *
 * **The wall clock is ahead.** The host may have slept: then the monotonic clock stood still, and the store went on counting. So the
 * wall clock decides, because its answer is the earlier one. If the clock was only set, the answer is too early, which is safe.
 *
 * **The wall clock is behind.** It was set back. Nothing shows that the host has slept, and nothing shows any more that it has
 * not: a step back by a minute hides a sleep of a minute. What is left is *unproven*, and counts as nothing until the store
 * confirms again. The time is not over either: the holder keeps what it has, and asks the store at once. A check throws in the meantime.
 * A command cannot be paused, so its supervisor waits for the confirmation, for a short time: see `process/supervision.ts`.
 *
 * **The monotonic clock has passed the end.** The time is over, whatever the wall clock says. A wall clock that is set back
 * never makes anything last longer.
 */
import type { Clock } from './clock.ts';

/** The wall clock may move against the monotonic one by half of the guard, and by no more than this. */
const MOST_JUMP_MS = 1_000;

/** When the request was sent that the store has confirmed, on both clocks. */
export interface Confirmation {
  readonly sentAtMs: number;
  readonly sentAtWallMs: number;
}

export interface Validity {
  /** How long a confirmation is good for, from when its request was sent. */
  readonly validMs: number;
  /** How far the clocks may disagree before that means something. */
  readonly jumpMs: number;
}

/** All that the rule needs. Plain data, so that another process of this host can apply the rule to the same facts. */
export interface Deadline extends Confirmation, Validity {}

/** `over` and `unproven`: nothing is left. What is unproven may be confirmed again, see above. */
export type Standing = 'good' | 'unproven' | 'over';

export function confirmationNow(clock: Clock): Confirmation {
  return { sentAtMs: clock.monotonicMs(), sentAtWallMs: clock.wallMs() };
}

export function toleratedJumpMs(guardMs: number): number {
  return Math.min(MOST_JUMP_MS, guardMs / 2);
}

/** The end on the monotonic clock: for timers, and the latest that it can be. */
export function endsAtMs({ sentAtMs }: Confirmation, { validMs }: Validity): number {
  return sentAtMs + validMs;
}

/** How far the wall clock has moved ahead of the monotonic one since then; negative: it was set back. */
export function jumpMs(
  { sentAtMs, sentAtWallMs }: Confirmation,
  clock: Clock,
  nowMs: number = clock.monotonicMs(),
): number {
  return clock.wallMs() - sentAtWallMs - (nowMs - sentAtMs);
}

/** Whether the clocks disagree: what was confirmed then has to be confirmed again. */
export function isInDoubt(
  confirmed: Confirmation,
  { jumpMs: toleratedMs }: Pick<Validity, 'jumpMs'>,
  clock: Clock,
  nowMs: number = clock.monotonicMs(),
): boolean {
  return Math.abs(jumpMs(confirmed, clock, nowMs)) > toleratedMs;
}

/** How much time may have passed since then: what the monotonic clock says, or more if the host may have slept. */
export function elapsedMs(
  since: Confirmation,
  { jumpMs: toleratedMs }: Pick<Validity, 'jumpMs'>,
  clock: Clock,
  nowMs: number = clock.monotonicMs(),
): number {
  const aheadMs = jumpMs(since, clock, nowMs);
  return nowMs - since.sentAtMs + (aheadMs > toleratedMs ? aheadMs : 0);
}

export function standing(confirmed: Confirmation, validity: Validity, clock: Clock): Standing {
  const nowMs = clock.monotonicMs();
  if (elapsedMs(confirmed, validity, clock, nowMs) >= validity.validMs) return 'over';
  return jumpMs(confirmed, clock, nowMs) < -validity.jumpMs ? 'unproven' : 'good';
}

/** How long it may be relied on; 0: not at all. */
export function remainingMs(confirmed: Confirmation, validity: Validity, clock: Clock): number {
  if (standing(confirmed, validity, clock) !== 'good') return 0;
  return Math.max(0, validity.validMs - elapsedMs(confirmed, validity, clock));
}
