/**
 * One instance's part in a fleet: `LeaseManager` decides which instance owns which target, and a
 * `FleetWork` works on the targets that this instance owns. There are two: `PollScheduler` polls
 * them, `TaskScheduler` runs a long-lived task for each.
 */
import { isDoneWithin, timeLeft } from '../core/clock.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import { ClosedError, ConfigError } from '../core/errors.ts';
import { checkSwitch } from '../core/options.ts';
import type { Leases } from '../lease/leases.ts';
import type { HoldOptions, TimingOptions } from '../lease/timings.ts';
import type { Runtime } from '../store/runtime.ts';
import { LeaseManager, type ManagerState } from './member/lease-manager.ts';
import type { TargetWork } from './member/target-leases.ts';
import type { Explanation } from './plan/explain.ts';
import { ResultWriter } from './poll/result-writer.ts';
import { MAX_EVERY_MS, MIN_EVERY_MS, type TargetIds } from './targets/target-record.ts';
import {
  listedTargets,
  StoredTargetSet,
  type Target,
  type TargetSource,
} from './targets/target-source.ts';
import { TargetWatch } from './targets/target-watch.ts';
import { isWeight, MAX_WEIGHT, MIN_WEIGHT } from './view/member.ts';

/** What pollers and runners have in common. */
export interface FleetServiceOptions extends TimingOptions {
  /** What to work on: the same list in every instance. Default: the targets in the store. */
  targets?: readonly Target[];
  /** Whether the store keeps the last result of each target; default on. */
  results?: 'on' | 'off';
  /** This instance's share of the targets, relative to the others'; a whole number, default 1. */
  weight?: number;
  /** How often to look for targets and instances that other programs wrote; default 30 s. */
  discovery?: Duration | 'off';
}

/** What a service of either sort adds to the options that it was given. */
export interface FleetServiceFacts {
  readonly targetIds: TargetIds;
  /** The commands that it runs; default as for a poller. */
  readonly commandNames?: readonly string[] | undefined;
}

const TIMINGS = ['ttl', 'renewEvery', 'stop', 'guard', 'operationTimeout'];
/** Not all services take it, so it is in no list of known options here. */
const HOLD = [...TIMINGS, 'maxHold'];
export const FLEET_OPTIONS = ['targets', 'results', 'weight', 'discovery', ...TIMINGS];
const DEFAULT_DISCOVERY = '30s';
/** How long `stop` takes at most. */
const DEFAULT_STOP_WITHIN_MS = 10_000;
/** The share of that time for work to finish; the rest is for stopping it and handing over. */
const WORK_SHARE = 0.7;
/**
 * Kept of that time for the last results, however long the handover takes: a share, and at most
 * this.
 */
const RESULTS_SHARE = 1 / 10;
const MAX_RESULTS_MS = 500;

/** The work on the targets that this instance owns. */
export interface FleetWork extends TargetWork {
  /** How many polls or tasks are under way. */
  readonly inFlight: number;
  /** The record of the target has changed. */
  reschedule(id: string): void;
  /** Begins no more work. No timer keeps the process alive. */
  close(): void;
  /** Tells all work under way to stop. */
  stopAll(reason: Error): void;
  /** The state of the work on the target in words; null where there is nothing to say. */
  describe(id: string): string | null;
  /** The instance has stopped. */
  dispose(): Promise<void>;
}

/** `giveUp` leaves the lease of a target to expire, although work on it has not stopped. */
type MakeWork = (
  targets: TargetSource,
  results: ResultWriter | null,
  giveUp: (id: string) => void,
) => FleetWork;

export class FleetService implements AsyncDisposable {
  /** Which instance owns which target, and why. */
  readonly manager: LeaseManager;
  readonly #work: FleetWork;
  readonly #rt: Runtime;
  readonly #targets: TargetSource;
  readonly #results: ResultWriter | null;
  readonly #unlisten: () => void;
  #stopping: Promise<void> | null = null;

  constructor(
    rt: Runtime,
    leases: Leases,
    { targetIds, commandNames, ...options }: FleetServiceOptions & FleetServiceFacts,
    makeWork: MakeWork,
  ) {
    checkFleetOptions(options);
    const { weight = MIN_WEIGHT, discovery = DEFAULT_DISCOVERY } = options;
    this.#rt = rt;
    this.#targets =
      options.targets === undefined
        ? new StoredTargetSet(new TargetWatch(rt.store, targetIds, rt.events), (id) =>
            this.#onChanged(id),
          )
        : listedTargets(options.targets);
    this.#results = options.results === 'off' ? null : new ResultWriter(rt);
    this.#work = makeWork(this.#targets, this.#results, (id) => this.manager.abandon(id));
    this.manager = new LeaseManager(rt, leases, {
      targets: this.#targets,
      work: this.#work,
      timings: timingsOf(options),
      weight,
      commands: commandNames,
      discoverEveryMs:
        discovery === 'off' ? Number.POSITIVE_INFINITY : durationMs(discovery, 'discovery'),
    });
    this.#unlisten = rt.events.on('result.refused', ({ target, fence, seen }) =>
      this.manager.outrank(target, fence, seen),
    );
  }

  get state(): ManagerState {
    return this.manager.state;
  }

  /** How many polls or tasks are under way. */
  get inFlight(): number {
    return this.#work.inFlight;
  }

  /**
   * Joins the fleet. Resolves after the first round; if the store could not be asked, the instance
   * keeps trying.
   */
  start(): Promise<void> {
    return this.manager.start();
  }

  /**
   * Begins no more work, hands all targets over and leaves. Polls under way may finish; tasks are
   * told to stop. It takes at most `within` (10 s), even if the store does not answer. A target
   * whose work has not stopped by then is never handed over: its lease expires.
   */
  stop({ within = DEFAULT_STOP_WITHIN_MS }: { within?: Duration } = {}): Promise<void> {
    const withinMs = durationMs(within, 'within');
    this.#stopping ??= this.#stop(withinMs);
    return this.#stopping;
  }

  /** Why a target is where it is, as far as this instance knows; null for an unknown target. */
  explain(id: string): Explanation | null {
    const explanation = this.manager.explain(id);
    const described = explanation === null ? null : this.#work.describe(id);
    if (explanation === null || described === null) return explanation;
    return { ...explanation, text: `${explanation.text} ${described}` };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #onChanged(id: string): void {
    this.#work.reschedule(id);
    // A result may have been written after the target was removed, before this instance knew.
    if (this.#targets.get(id) === undefined) this.#results?.remove(id);
  }

  async #stop(withinMs: number): Promise<void> {
    const { clock } = this.#rt;
    this.#work.close();
    const patience = clock.after(withinMs * WORK_SHARE, () =>
      this.#work.stopAll(new ClosedError({ operation: 'work on a target' })),
    );
    const leftMs = timeLeft(clock, withinMs);
    await this.manager.stop(withinMs - Math.min(withinMs * RESULTS_SHARE, MAX_RESULTS_MS));
    patience.cancel();
    await this.#results?.close(leftMs());
    await isDoneWithin(clock, leftMs(), this.#work.dispose());
    this.#targets.close();
    this.#unlisten();
  }
}

function timingsOf(options: FleetServiceOptions): HoldOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => HOLD.includes(name)));
}

function checkFleetOptions({ targets, results, weight, discovery }: FleetServiceOptions): void {
  checkOption('targets', targets, Array.isArray(targets), 'they are a list of objects with an id');
  if (results !== undefined) checkSwitch(results, 'results');
  const weightRule = `it must be a whole number from ${MIN_WEIGHT} to ${MAX_WEIGHT}`;
  checkOption('weight', weight, isWeight(weight), weightRule);
  if (discovery !== 'off') checkInterval('discovery', discovery);
}

/** Refuses a given value that is not right. */
export function checkOption(field: string, value: unknown, isRight: boolean, rule: string): void {
  if (value !== undefined && !isRight) throw new ConfigError({ field, value, rule });
}

/** Refuses a given interval that is too short or too long. */
export function checkInterval(field: string, value: Duration | undefined): void {
  if (value === undefined) return;
  const ms = durationMs(value, field);
  const isInRange = ms >= MIN_EVERY_MS && ms <= MAX_EVERY_MS;
  checkOption(field, value, isInRange, `it must be from ${MIN_EVERY_MS} ms to 24 hours`);
}
