import { backoff } from './backoff.ts';
import { isTransient } from './errors.ts';
import type { BaseRuntime } from './runtime.ts';

const PAUSES = { minMs: 50, maxMs: 2_000 };

/**
 * Calls `attempt` until the store answers. Rethrows errors that a retry does not cure, and the
 * signal's reason once it has fired.
 */
export async function retryStore<T>(
  rt: Pick<BaseRuntime, 'clock' | 'random'>,
  signal: AbortSignal,
  attempt: () => Promise<T>,
): Promise<T> {
  const pauses = backoff(PAUSES, rt.random);
  for (;;) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      if (!isTransient(error)) throw error;
    }
    await rt.clock.sleep(pauses.nextMs(), signal);
  }
}
