/** The time, for texts such as `3 s ago`: it ticks while the dashboard is visible. */
import { signal } from '@preact/signals';

const TICK_MS = 250;

/** Milliseconds on the browser's monotonic clock. */
export const now = signal(performance.now());

/** Starts the ticks, once for the page. */
export function startTicking(): void {
  setInterval(() => {
    if (document.visibilityState === 'visible') now.value = performance.now();
  }, TICK_MS);
}

/** Milliseconds since 1970 for a moment of the monotonic clock. */
export function wallOf(monotonicMs: number): number {
  return performance.timeOrigin + monotonicMs;
}
