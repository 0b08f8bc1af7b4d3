import type { Clock } from '../../core/clock.ts';
import type { PipelineFunction } from './pipeline.ts';

const SAID_EVERY_MS = 1_000;

/** What runs for a session where nothing else is configured: it says for how long it has run, until it is told to end. */
export function builtIn(clock: Clock): PipelineFunction {
  return async (_session, { signal, progress }) => {
    const startedMs = clock.monotonicMs();
    while (!signal.aborted) {
      progress({ runningForMs: Math.round(clock.monotonicMs() - startedMs) });
      await clock.sleep(SAID_EVERY_MS, signal).catch(() => {});
    }
  };
}
