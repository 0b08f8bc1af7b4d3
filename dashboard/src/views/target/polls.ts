/** The polls of one target. The server has the last thirty of the present owner; the dashboard keeps what it has seen. */
import type { PollSample } from '../../../../src/client/operating-messages.ts';

/** Ten minutes of one poll a second. */
const MOST_KEPT = 600;

/** In order of time, each once; the same list where nothing is new. */
export function gathered(
  known: readonly PollSample[],
  more: readonly PollSample[],
): readonly PollSample[] {
  const times = new Set(known.map(({ at }) => at));
  const fresh = more.filter(({ at }) => !times.has(at));
  if (fresh.length === 0) return known;
  return [...known, ...fresh].sort((a, b) => a.at - b.at).slice(-MOST_KEPT);
}

export interface Summary {
  readonly count: number;
  readonly failed: number;
  /** Of those that went well; null where none did. */
  readonly middleMs: number | null;
  readonly slowestMs: number | null;
}

export function summaryOf(samples: readonly PollSample[]): Summary {
  const times = samples.flatMap(({ ok, tookMs }) => (ok ? [tookMs] : [])).sort((a, b) => a - b);
  return {
    count: samples.length,
    failed: samples.length - times.length,
    middleMs: times[Math.floor((times.length - 1) / 2)] ?? null,
    slowestMs: times.at(-1) ?? null,
  };
}
