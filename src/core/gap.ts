/**
 * How long a target was without an owner that works, as one number: the event, the terminal, the metrics and the page all take it from here.
 *
 * A gap begins at the last moment at which the old owner is known to have been able to act. A killed or frozen owner says
 * nothing, so that is its last renewal. An owner that let go of the target could act until then. A gap ends when the new owner has the
 * target, and may act. All of it is by the clock of the new owner: no two clocks are compared.
 */

/** A loss that is noticed later than this was noticed by a process that stood still, not by a busy one. */
export const STANDSTILL_MS = 500;

/** What a gap is made of, one after the other. */
export interface GapParts {
  /** From the last renewal of the old owner until its lease expired; 0 where its lease did not. */
  readonly silentMs: number;
  /** Until the new owner asked the store for the target. */
  readonly wakeMs: number;
  /** Until the store granted it. */
  readonly grantMs: number;
}

export interface Gap extends GapParts {
  /** The sum of its parts. */
  readonly gapMs: number;
}

/** Whole numbers, so that they add up for whoever checks. */
export function gapOf(parts: GapParts): Gap {
  const silentMs = whole(parts.silentMs);
  const wakeMs = whole(parts.wakeMs);
  const grantMs = whole(parts.grantMs);
  return { gapMs: silentMs + wakeMs + grantMs, silentMs, wakeMs, grantMs };
}

/** The gap that an entry of the log tells of. Others write there, too: what is no number counts as nothing. */
export function readGap(facts: Readonly<Record<string, unknown>>): Gap {
  const read = (value: unknown) => (typeof value === 'number' ? value : 0);
  const { silentMs, wakeMs, grantMs } = facts;
  return gapOf({ silentMs: read(silentMs), wakeMs: read(wakeMs), grantMs: read(grantMs) });
}

function whole(ms: number): number {
  return Number.isFinite(ms) ? Math.max(0, Math.round(ms)) : 0;
}
