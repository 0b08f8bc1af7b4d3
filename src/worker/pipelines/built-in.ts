import type { Clock } from '../../core/clock.ts';
import type { PipelineFunction } from './pipeline.ts';

const REPORT_EVERY_MS = 1_000;

/**
 * Runs for a session where no pipeline is configured: reports how long it has run until it is told
 * to end.
 */
export function builtIn(clock: Clock): PipelineFunction {
  return async (_session, { signal, progress }) => {
    const startedAtMs = clock.monotonicMs();
    while (!signal.aborted) {
      progress({ runningForMs: Math.round(clock.monotonicMs() - startedAtMs) });
      await clock.sleep(REPORT_EVERY_MS, signal).catch(() => {});
    }
  };
}
