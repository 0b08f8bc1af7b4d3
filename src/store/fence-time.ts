import type { Clock } from '../core/clock.ts';

/** A wall clock that is further behind than this was set back: fences follow it again. */
const SET_BACK_US = 1_000_000;

/** The last answer of each clock. A process has one clock, so its stores share this one. */
const given = new WeakMap<Clock, number>();

/**
 * The time for a new fence: microseconds since 1970, never the same twice in one process. A store
 * that has forgotten the last fence of a key relies on this alone, so equal times would be equal
 * fences.
 *
 * The wall clock has milliseconds only. The digits below come from the monotonic clock, which all
 * processes of a host share: two of them get equal times in the same microsecond only.
 */
export function fenceTime(clock: Clock): number {
  const belowMs = Math.floor(clock.monotonicMs() * 1_000) % 1_000;
  const nowUs = Math.floor(clock.wallMs()) * 1_000 + belowMs;
  const lastUs = given.get(clock) ?? 0;
  const isSetBack = lastUs - nowUs > SET_BACK_US;
  const timeUs = isSetBack ? nowUs : Math.max(nowUs, lastUs + 1);
  given.set(clock, timeUs);
  return timeUs;
}
