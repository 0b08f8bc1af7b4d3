import { type Duration, durationMs } from '../../../core/duration.ts';
import { type WorkTimings, workTimings } from '../../../lease/timings.ts';

export interface TimingFlags {
  readonly ttl?: Duration;
  readonly grace?: Duration;
  readonly wait?: Duration;
}

export interface Plan {
  readonly timings: WorkTimings;
  readonly graceMs: number;
  readonly waitMs: number;
}

/** The timings of a run, checked against each other. */
export function planRun({ ttl, grace, wait = 0 }: TimingFlags): Plan {
  const timings = workTimings({ ttl, grace }, { ttl: '--ttl', grace: '--grace' });
  return {
    timings,
    graceMs: timings.stop,
    waitMs: durationMs(wait, '--wait'),
  };
}
