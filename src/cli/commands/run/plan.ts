import { type Duration, durationMs } from '../../../core/duration.ts';
import { ConfigError } from '../../../core/errors.ts';
import { type OnCrash, type PeriodOptions, readPeriod } from '../../../lease/period.ts';
import { type WorkTimings, workTimings } from '../../../lease/timings.ts';

export interface TimingFlags {
  readonly ttl?: Duration;
  readonly grace?: Duration;
  readonly wait?: Duration;
  readonly oncePer?: Duration;
  readonly tolerance?: Duration;
  readonly onCrash?: OnCrash;
  readonly holdAtLeast?: Duration;
}

export interface Plan {
  readonly timings: WorkTimings;
  readonly graceMs: number;
  readonly waitMs: number;
  /** How long the lease stays taken, from when it was acquired. */
  readonly holdAtLeastMs: number;
  /** Null: the command runs at every call. */
  readonly period: PeriodOptions | null;
}

const PERIOD_FLAGS = { per: '--once-per', tolerance: '--tolerance', onCrash: '--on-crash' };

/** The timings of a run, checked against each other. */
export function planRun({ ttl, grace, wait = 0, holdAtLeast = 0, ...flags }: TimingFlags): Plan {
  const timings = workTimings({ ttl, grace }, { ttl: '--ttl', grace: '--grace' });
  const holdAtLeastMs = durationMs(holdAtLeast, '--hold-at-least');
  const period = planPeriod(flags);
  if (period !== null && holdAtLeastMs > 0) {
    const rule = 'not with --once-per, which remembers the run itself';
    throw new ConfigError({ field: '--hold-at-least', value: holdAtLeast, rule });
  }
  return {
    timings,
    graceMs: timings.stop,
    waitMs: durationMs(wait, '--wait'),
    holdAtLeastMs,
    period,
  };
}

function planPeriod({ oncePer, tolerance, onCrash }: TimingFlags): PeriodOptions | null {
  if (oncePer !== undefined) {
    const period = { per: oncePer, tolerance, onCrash };
    readPeriod(period, PERIOD_FLAGS);
    return period;
  }
  const [field, value] =
    tolerance === undefined
      ? (['--on-crash', onCrash] as const)
      : (['--tolerance', tolerance] as const);
  if (value === undefined) return null;
  throw new ConfigError({ field, value, rule: 'it needs --once-per, whose period it is about' });
}
