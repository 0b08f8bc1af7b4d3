/** What time it is for the server. Times that instances have written down are compared with that: the browser's clock may be hours off. */
import { signal } from '@preact/signals';

/** A difference below this may be the network's, and is left alone. */
const TOLERANCE_MS = 2_000;
/** By how much the server's clock is ahead of the browser's, as far as that matters. */
const aheadMs = signal(0);

/** The server has said what time it was at a moment of the browser's monotonic clock. */
export function hearServerTime(atMs: number, monotonicMs: number): void {
  const nowAheadMs = atMs - (performance.timeOrigin + monotonicMs);
  if (Math.abs(nowAheadMs - aheadMs.peek()) > TOLERANCE_MS) aheadMs.value = nowAheadMs;
}

/** Milliseconds since 1970 for a moment of the browser's monotonic clock, by the server's clock. */
export function serverWallOf(monotonicMs: number): number {
  return performance.timeOrigin + monotonicMs + aheadMs.value;
}
