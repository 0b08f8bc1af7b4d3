/**
 * How long no instance worked on a target, as one number. The event, the terminal, the metrics and
 * the dashboard all use this one.
 *
 * A gap begins at the last moment at which the old owner could act. For a killed or frozen owner
 * that is its last renewal; for an owner that released the target, the release. The gap ends when
 * the new owner may act. Both moments are read from the clock of the new owner: no two clocks are
 * compared.
 */

/** A process that notices a loss later than this stood still; a busy process notices sooner. */
export const STANDSTILL_MS = 500;

/** The parts of a gap, in order. */
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

/** Rounds the parts, so that the sum shown equals the sum of the parts shown. */
export function gapOf(parts: GapParts): Gap {
  const silentMs = whole(parts.silentMs);
  const wakeMs = whole(parts.wakeMs);
  const grantMs = whole(parts.grantMs);
  return { gapMs: silentMs + wakeMs + grantMs, silentMs, wakeMs, grantMs };
}

/**
 * The gap in an entry of the shared log. Other programs write there too: a value that is no number
 * counts as 0.
 */
export function readGap(facts: Readonly<Record<string, unknown>>): Gap {
  const read = (value: unknown) => (typeof value === 'number' ? value : 0);
  const { silentMs, wakeMs, grantMs } = facts;
  return gapOf({ silentMs: read(silentMs), wakeMs: read(wakeMs), grantMs: read(grantMs) });
}

function whole(ms: number): number {
  return Number.isFinite(ms) ? Math.max(0, Math.round(ms)) : 0;
}
