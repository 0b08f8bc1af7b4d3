/**
 * Runs a long-lived task for each target that a fleet of instances shares, each target by one
 * instance at a time: see `run/task-scheduler.ts`.
 */
import { backoffLimits } from '../core/backoff.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { checkKnown } from '../core/options.ts';
import type { Leases } from '../lease/leases.ts';
import type { Runtime } from '../store/runtime.ts';
import {
  checkOption,
  FLEET_OPTIONS,
  FleetService,
  type FleetServiceOptions,
} from './fleet-service.ts';
import { type Run, TaskScheduler } from './run/task-scheduler.ts';
import type { TargetIds } from './targets/target-record.ts';

export interface RunnerOptions extends FleetServiceOptions {
  /**
   * Works on one target, for as long as this instance owns it. It has to end when `signal` fires:
   * its target is not handed over before. When it returns or throws, it is started again.
   */
  run: Run;
  /**
   * The pause before a task that ended is started again: the first one, and the longest. It doubles
   * with every end in a row. Default `'1s..1m'`.
   */
  backoff?: string;
  /** A task that has not called `progress` for this long is reported. Default: never. */
  stuckAfter?: Duration;
  /**
   * What happens to such a task. `report` (default): an event. `restart`: it is told to stop, too,
   * and started again. If it does not stop, its lease is given up, and another instance takes over.
   */
  onStuck?: 'report' | 'restart';
  /**
   * How long one task may keep its target, whatever it does: then it is told to stop, and its lease
   * is not renewed any more. Default: as long as it runs.
   */
  maxHold?: Duration;
}

const OWN = ['run', 'backoff', 'stuckAfter', 'onStuck', 'maxHold'];
const KNOWN = new Set([...OWN, ...FLEET_OPTIONS]);
const DEFAULT_BACKOFF = '1s..1m';
/** A task that was told to stop gets this long, or `stop`, before it is reported as stuck. */
const MIN_GRACE_MS = 1_000;

export class Runner extends FleetService<TaskScheduler> {
  constructor(rt: Runtime, leases: Leases, targetIds: TargetIds, options: RunnerOptions) {
    checkRunnerOptions(options);
    const { run, backoff = DEFAULT_BACKOFF, stuckAfter, onStuck = 'report', stop = 0 } = options;
    const settings = {
      run,
      backoff: backoffLimits(backoff, 'backoff'),
      graceMs: Math.max(MIN_GRACE_MS, durationMs(stop, 'stop')),
      stuckAfterMs:
        stuckAfter === undefined ? Number.POSITIVE_INFINITY : durationMs(stuckAfter, 'stuckAfter'),
      onStuck,
    };
    super(
      rt,
      leases,
      { ...options, targetIds },
      (targets, results, giveUp) =>
        new TaskScheduler(rt, targets, results, { ...settings, giveUp }),
    );
  }
}

function checkRunnerOptions(options: RunnerOptions): void {
  checkKnown(options, KNOWN);
  const { run, stuckAfter, onStuck } = options;
  if (typeof run !== 'function')
    throw new ConfigError({ field: 'run', value: run, rule: 'it is required: a function' });
  if (stuckAfter !== undefined) {
    const isLong = durationMs(stuckAfter, 'stuckAfter') > 0;
    checkOption('stuckAfter', stuckAfter, isLong, 'it is longer than 0. Leave it out for never');
  }
  const isKnown = onStuck === 'report' || onStuck === 'restart';
  checkOption('onStuck', onStuck, isKnown, "it is 'report' or 'restart'");
  if (onStuck === 'restart' && stuckAfter === undefined) {
    const rule = "with 'restart', stuckAfter says after how long without progress";
    throw new ConfigError({ field: 'stuckAfter', value: stuckAfter, rule });
  }
}
