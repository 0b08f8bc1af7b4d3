/** The time, for whatever shows how long ago or how soon something is: it ticks while the page is seen. */
import { signal } from '@preact/signals';

const TICK_MS = 250;

/** Milliseconds on the page's own monotonic clock. */
export const now = signal(performance.now());

setInterval(() => {
  if (document.visibilityState === 'visible') now.value = performance.now();
}, TICK_MS);

/** Milliseconds since 1970 for a moment of the monotonic clock. */
export function wallOf(monotonicMs: number): number {
  return performance.timeOrigin + monotonicMs;
}
