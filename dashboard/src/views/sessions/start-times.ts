/** How long starts took: from the intent being accepted until its pipeline ran, as the instances' own clocks say. */
import type { ApiEvent } from '../../../../src/client/messages.ts';

export const START_EVENTS = ['intent.accepted', 'pipeline.started'] as const;

/** Upper ends of the bars of a chart, in milliseconds; the last has none. */
export const BARS_MS = [50, 100, 250, 500, 1_000, 2_500, 5_000, Number.POSITIVE_INFINITY] as const;

/** Starts that are remembered: enough for a p95 that does not jump. */
const MOST_KEPT = 2_000;

export class StartTimes {
  readonly #acceptedAt = new Map<string, number>();
  readonly #tookMs = new Map<string, number>();

  /** In the order in which they happened. An event that comes twice is counted once. */
  add(events: readonly ApiEvent[]): void {
    for (const { event, session, at, type } of events) {
      if (typeof session !== 'string' || this.#tookMs.has(session)) continue;
      if (event === 'intent.accepted' && type !== 'stream.stop') {
        if (!this.#acceptedAt.has(session)) this.#acceptedAt.set(session, at);
      } else if (event === 'pipeline.started') this.#started(session, at);
    }
    for (const map of [this.#acceptedAt, this.#tookMs])
      for (const session of [...map.keys()].slice(0, Math.max(0, map.size - MOST_KEPT)))
        map.delete(session);
  }

  /** Sorted, the shortest first. */
  get tookMs(): readonly number[] {
    return [...this.#tookMs.values()].sort((a, b) => a - b);
  }

  #started(session: string, at: number): void {
    const acceptedAt = this.#acceptedAt.get(session);
    if (acceptedAt === undefined) return;
    this.#acceptedAt.delete(session);
    // Clocks of two instances may differ: nothing was there before it was asked for.
    this.#tookMs.set(session, Math.max(0, at - acceptedAt));
  }
}

/** The smallest of them that so large a share does not exceed. */
export function quantile(sorted: readonly number[], share: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;
}

/** How many of them belong to each bar. */
export function barsOf(tookMs: readonly number[]): readonly number[] {
  const bars = BARS_MS.map(() => 0);
  for (const ms of tookMs) {
    const i = BARS_MS.findIndex((end) => ms <= end);
    bars[i] = (bars[i] ?? 0) + 1;
  }
  return bars;
}
