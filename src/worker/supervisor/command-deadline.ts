/**
 * When a command has to end. A command may run under several leases and needs all of them, so the
 * first lease that is over decides. The process that holds the leases and the supervisor apply the
 * same rule to the same facts: `core/validity.ts`.
 */
import type { Clock } from '../../core/clock.ts';
import {
  type Confirmation,
  type Deadline,
  elapsedMs,
  isInDoubt,
  remainingMs,
  type Standing,
  standing,
} from '../../core/validity.ts';

/** One deadline for each lease. None: the command runs under no lease any more, and has to end. */
export type CommandDeadline = readonly Deadline[];

/** How long the command may run; 0: not at all. */
export function leftMs(deadline: CommandDeadline, clock: Clock): number {
  if (deadline.length === 0) return 0;
  return Math.min(...deadline.map((each) => remainingMs(each, each, clock)));
}

export function standingOf(deadline: CommandDeadline, clock: Clock): Standing {
  const all = deadline.map((each) => standing(each, each, clock));
  if (all.length === 0 || all.includes('over')) return 'over';
  return all.includes('unproven') ? 'unproven' : 'good';
}

/** Whether the two clocks disagree: the store has to confirm the leases. */
export function hasDoubt(deadline: CommandDeadline, clock: Clock): boolean {
  return deadline.some((each) => isInDoubt(each, each, clock));
}

/**
 * How long until a command that was asked to end is killed. The grace counts from `stopped`, or
 * from the deadline if that was earlier.
 */
export function graceLeftMs(
  deadline: CommandDeadline,
  graceMs: number,
  stopped: Confirmation,
  clock: Clock,
): number {
  if (deadline.length === 0) return 0;
  const lefts = deadline.flatMap((each) => [
    graceMs - elapsedMs(stopped, each, clock),
    graceMs + each.validMs - elapsedMs(each, each, clock),
  ]);
  return Math.max(0, Math.min(...lefts));
}
