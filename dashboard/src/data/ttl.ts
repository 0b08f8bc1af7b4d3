/**
 * How much of a lease is left, as far as the dashboard can know. A server tells of renewals one by one only in small fleets; in large ones a
 * lease that is not said to be late has at least what would make it late.
 */
import { members, onTarget, type SeenTarget, targets } from './fleet.ts';
import { STATES } from './states.ts';

/** Above this, renewals alone are not told of (`src/fleet/watch/fleet-state.ts`). */
const RENEWALS_TOLD_UP_TO = 1_000;
/** Where no owner says how long its leases last, and none was seen yet. */
const GUESS_MS = 10_000;

let longestMs = 0;
onTarget.add((_before, after) => notice(after));
for (const target of targets.values()) notice(target);

function notice(target: SeenTarget | undefined): void {
  const leftMs = target?.expiresInMs ?? 0;
  if (Number.isFinite(leftMs)) longestMs = Math.max(longestMs, leftMs);
}

export interface TimeLeft {
  readonly ms: number;
  /** Of the whole, 0 to 1. */
  readonly share: number;
  /** It may be more: renewals are not told of. */
  readonly isAtLeast: boolean;
}

/** How long leases of an owner last, and how much of one is left when it counts as late. */
export interface Terms {
  readonly ttlMs: number;
  readonly lateBelowMs: number;
}

export function termsOf(owner: string | null): Terms {
  const vitals = members.peek().find(({ id }) => id === owner)?.vitals ?? null;
  const ttlMs = vitals?.ttlMs ?? (longestMs > 0 ? longestMs : GUESS_MS);
  const lateBelowMs = vitals === null ? ttlMs / 3 : ttlMs - 2 * vitals.renewEveryMs;
  return { ttlMs, lateBelowMs: Math.max(0, lateBelowMs) };
}

/** Null: there is no lease, or it never ends. */
export function timeLeft(
  { expiresAtMs, reason }: SeenTarget,
  { ttlMs, lateBelowMs }: Terms,
  nowMs: number,
): TimeLeft | null {
  if (!Number.isFinite(expiresAtMs)) return null;
  const toldMs = Math.max(0, expiresAtMs - nowMs);
  const isAtLeast =
    targets.size > RENEWALS_TOLD_UP_TO && STATES[reason].kind === 'well' && toldMs < lateBelowMs;
  const ms = isAtLeast ? lateBelowMs : toldMs;
  return { ms, share: Math.min(1, ms / ttlMs), isAtLeast };
}
