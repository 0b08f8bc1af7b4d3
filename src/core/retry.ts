import type { Clock } from './clock.ts';
import { isTransient } from './errors.ts';
import { jittered, type Random } from './random.ts';

/** Between two tries: pauses double from the first to the second. */
const AGAIN_FIRST_MS = 50;
const AGAIN_MOST_MS = 2_000;
/** Calls `ask` until the store answers. Rethrows errors that a retry does not cure, and the signal's reason. */
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
      if (!isTransient(error)) throw error;
    }
    await clock.sleep(jittered(pauseMs, random), signal);
  }
}
