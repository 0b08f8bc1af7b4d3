/**
 * The one clock that all holders of a key have in common is the store's. A fence is made of it:
 * microseconds since 1970, unless that would not be higher than the fence before. So a grant has
 * the store's time on it, and what the instances wrote beside it shows how far their clocks are
 * off.
 */
import type { LoggedTenure } from './logged-tenures.ts';

/** A fence that is further from the time of its entry was not made of the store's time. */
const PLAUSIBLE_MS = 86_400_000;
/** Fences this close to the one before may have been counted, not read from the clock. */
const COUNTED_US = 1_000;
/** An instance with fewer grants tells too little about its clock. */
const MIN_GRANTS = 4;
const MIN_SPREAD_MS = 50;

/** How far the clock of an instance is ahead of the store's. */
export interface ClockOffset {
  readonly offsetMs: number;
  /** How much that varied between the grants. */
  readonly spreadMs: number;
}

/** When the store made a grant, by its own clock; null where the fence does not say. */
export function storeMs({ fence, granted, fromMs }: LoggedTenure, before: number): number | null {
  if (granted === null || fence - before < COUNTED_US) return null;
  const ms = fence / 1_000;
  return Math.abs(fromMs - ms) < PLAUSIBLE_MS ? ms : null;
}

/** By instance, for those whose grants tell. */
export function clockOffsets(tenures: Iterable<LoggedTenure>): Map<string, ClockOffset> {
  const differences = new Map<string, number[]>();
  for (const tenure of tenures) {
    const atStore = storeMs(tenure, 0);
    if (atStore === null) continue;
    const own = differences.get(tenure.instance) ?? [];
    differences.set(tenure.instance, own);
    own.push(tenure.fromMs - tenure.tookMs / 2 - atStore);
  }
  const found = new Map<string, ClockOffset>();
  for (const [instance, own] of differences) {
    if (own.length < MIN_GRANTS) continue;
    own.sort((a, b) => a - b);
    const at = (share: number) => own[Math.floor((own.length - 1) * share)] ?? 0;
    const spreadMs = Math.max(MIN_SPREAD_MS, at(0.9) - at(0.1));
    found.set(instance, { offsetMs: at(0.5), spreadMs });
  }
  return found;
}
