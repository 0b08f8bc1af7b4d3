import type { Clock } from './clock.ts';
import { HoldfastError } from './errors.ts';
import { jittered, type Random } from './random.ts';

/** Between two tries: pauses double from the first to the second. */
const AGAIN_FIRST_MS = 50;
const AGAIN_MOST_MS = 2_000;
/** Failures of the store that pass by themselves. */
const PASSING = new Set([
  ...['STORE_UNREACHABLE', 'OUTCOME_UNKNOWN', 'STORE_REFUSED', 'STORE_UNSUITABLE'],
]);

/** Asks until the store has answered; rejects with the signal's reason once that has fired, and with whatever else goes wrong. */
export async function retryStore<T>(
  { clock, random }: { clock: Clock; random: Random },
  signal: AbortSignal,
  ask: () => Promise<T>,
): Promise<T> {
  for (let pauseMs = AGAIN_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, AGAIN_MOST_MS)) {
    signal.throwIfAborted();
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof HoldfastError) || !PASSING.has(error.code)) throw error;
    }
    await clock.sleep(jittered(pauseMs, random), signal);
  }
}
