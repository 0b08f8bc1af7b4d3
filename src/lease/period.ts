/**
 * Which period of a job a call belongs to, and whether the call may run it. `docs/decisions/0032`
 * has the argument.
 *
 * A period begins when a run begins. It lasts `perMs`, and has this one run. The next call that
 * comes `perMs − toleranceMs` after that, or later, begins the next period. If that call is early,
 * its period begins where the last one ended, so that runs that are always early do not add up to
 * one too many.
 */
import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';

export type OnCrash = 'skip' | 'retry';

export interface PeriodOptions {
  /**
   * How long a period is: the shortest time between two fires of the schedule. Periods are counted
   * from the first run, in UTC, and know nothing of daylight saving.
   */
  per: Duration;
  /**
   * How far the clocks of hosts may differ, and how late a run may begin without moving the period.
   * Default: a quarter of `per`.
   */
  tolerance?: Duration | undefined;
  /**
   * What happens after a run that did not end, because its process died or lost the lease. `skip`,
   * the default: the period is used, so the job runs at most once. `retry`: the next call in this
   * period starts over.
   */
  onCrash?: OnCrash | undefined;
}

/** `PeriodOptions` in milliseconds, checked against each other. */
export interface PeriodRules {
  readonly perMs: number;
  readonly toleranceMs: number;
  readonly onCrash: OnCrash;
}

/** What the store remembers of the last run of a job. All times are of the store's clock. */
export interface RunRecord {
  readonly periodAtMs: number;
  readonly startedAtMs: number;
  /** Null while the run is under way, and after a crash. */
  readonly endedAtMs: number | null;
  readonly holder: string;
}

const DEFAULT_TOLERANCE_SHARE = 1 / 4;
const ON_CRASH: readonly unknown[] = ['skip', 'retry'] satisfies OnCrash[];

export function readPeriod(
  { per, tolerance, onCrash = 'skip' }: PeriodOptions,
  names = { per: 'per', tolerance: 'tolerance', onCrash: 'onCrash' },
): PeriodRules {
  const perMs = durationMs(per, names.per);
  const toleranceMs =
    tolerance === undefined
      ? perMs * DEFAULT_TOLERANCE_SHARE
      : durationMs(tolerance, names.tolerance);
  if (perMs <= 2 * toleranceMs) {
    const rule =
      `a period is longer than twice the ${names.tolerance}, which is ${toleranceMs} ms here: ` +
      `else clocks that far apart take two fires for one. Raise ${names.per} or lower ${names.tolerance}`;
    throw new ConfigError({ field: names.per, value: per, rule });
  }
  if (!ON_CRASH.includes(onCrash))
    throw new ConfigError({
      field: names.onCrash,
      value: onCrash,
      rule: "it must be 'skip' or 'retry'",
    });
  return { perMs, toleranceMs, onCrash };
}

/** From when on the next period may begin. */
export function nextPeriodAtMs(
  { periodAtMs }: Pick<RunRecord, 'periodAtMs'>,
  { perMs, toleranceMs }: Pick<PeriodRules, 'perMs' | 'toleranceMs'>,
): number {
  return periodAtMs + perMs - toleranceMs;
}

/**
 * The beginning of the period that a call at `nowMs` runs; null if it must not run. The caller
 * holds the lease, so a run that has no end has crashed.
 */
export function periodToRun(
  last: RunRecord | null,
  nowMs: number,
  rules: PeriodRules,
): number | null {
  if (last === null) return nowMs;
  if (nowMs >= nextPeriodAtMs(last, rules)) return Math.max(nowMs, last.periodAtMs + rules.perMs);
  const hasCrashed = last.endedAtMs === null;
  return hasCrashed && rules.onCrash === 'retry' ? last.periodAtMs : null;
}
