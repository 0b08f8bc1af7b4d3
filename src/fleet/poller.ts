/**
 * Polls targets that a fleet of instances shares, each target by one instance. `LeaseManager`
 * decides which instance owns which target; a poller adds the polls.
 */
import { timeLeft } from '../core/clock.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import { ClosedError, ConfigError } from '../core/errors.ts';
import { checkKnown, checkSwitch } from '../core/options.ts';
import type { Leases } from '../lease/leases.ts';
import type { TimingOptions } from '../lease/timings.ts';
import type { Runtime } from '../store/runtime.ts';
import { LeaseManager, type ManagerState } from './member/lease-manager.ts';
import type { Explanation } from './plan/explain.ts';
import { checkHttpPollOptions, type HttpPollOptions } from './poll/http/http-options.ts';
import type { HttpPoller } from './poll/http/http-poller.ts';
import {
  type Poll,
  type PollContext,
  type PollHandler,
  PollScheduler,
} from './poll/poll-scheduler.ts';
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

export interface PollerOptions extends TimingOptions {
  /** What to poll: the same list in every instance. Default: the targets in the store. */
  targets?: readonly Target[];
  /** How often each target is polled, unless its record says so; default 10 s. */
  every?: Duration;
  /** Polls one target. Default: an HTTP request to its `url`. */
  poll?: Poll;
  /** How long one poll may take before it is told to stop; default 30 s. */
  timeout?: Duration;
  /** How many polls run at once; default 64. */
  concurrency?: number;
  /** Whether the results of polls are kept in the store; default on. */
  results?: 'on' | 'off';
  /** This instance's share of the targets, relative to the others'; a whole number, default 1. */
  weight?: number;
  /** How often to look for targets and instances that other programs wrote; default 30 s. */
  discovery?: Duration | 'off';
  /** For the built-in poll. */
  http?: HttpPollOptions;
}

const TIMINGS = ['ttl', 'renewEvery', 'stop', 'guard', 'operationTimeout'];
const KNOWN = new Set([
  'targets',
  'every',
  'poll',
  'timeout',
  'concurrency',
  'results',
  'weight',
  'discovery',
  'http',
  ...TIMINGS,
]);
const DEFAULT_EVERY = '10s';
const DEFAULT_TIMEOUT = '30s';
const DEFAULT_CONCURRENCY = 64;
const DEFAULT_DISCOVERY = '30s';
/** How long `stop` takes at most. */
const DEFAULT_STOP_WITHIN_MS = 10_000;
/** The share of that time for polls to finish; the rest is for stopping them and handing over. */
const POLLS_SHARE = 0.7;
/**
 * Kept of that time for the last results, however long the handover takes: a share, and at most
 * this.
 */
const RESULTS_SHARE = 1 / 10;
const MAX_RESULTS_MS = 500;

export class Poller implements AsyncDisposable {
  /** Which instance owns which target, and why. */
  readonly manager: LeaseManager;
  readonly #rt: Runtime;
  readonly #targets: TargetSource;
  readonly #results: ResultWriter | null;
  readonly #handler: PollHandler;
  readonly #scheduler: PollScheduler;
  readonly #unlisten: () => void;
  #stopping: Promise<void> | null = null;

  constructor(rt: Runtime, leases: Leases, targetIds: TargetIds, options: PollerOptions) {
    checkPollerOptions(options);
    const { every = DEFAULT_EVERY, timeout = DEFAULT_TIMEOUT, weight = MIN_WEIGHT } = options;
    const { concurrency = DEFAULT_CONCURRENCY, discovery = DEFAULT_DISCOVERY } = options;
    const { poll, http } = options;
    this.#rt = rt;
    this.#targets =
      options.targets === undefined
        ? new StoredTargetSet(new TargetWatch(rt.store, targetIds, rt.events), (id) =>
            this.#onChanged(id),
          )
        : listedTargets(options.targets);
    this.#results = options.results === 'off' ? null : new ResultWriter(rt);
    this.#handler = poll === undefined ? new BuiltInPoller(rt, http ?? {}) : { poll };
    this.#scheduler = new PollScheduler(rt, this.#targets, this.#results, {
      handler: this.#handler,
      everyMs: durationMs(every, 'every'),
      timeoutMs: durationMs(timeout, 'timeout'),
      concurrency,
    });
    this.manager = new LeaseManager(rt, leases, {
      targets: this.#targets,
      work: this.#scheduler,
      timings: timingsOf(options),
      weight,
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

  /** How many polls are under way. */
  get inFlight(): number {
    return this.#scheduler.inFlight;
  }

  /**
   * Joins the fleet. Resolves after the first round; if the store could not be asked, the poller
   * keeps trying.
   */
  start(): Promise<void> {
    return this.manager.start();
  }

  /**
   * Begins no more polls, lets those under way finish, hands all targets over and leaves. It takes
   * at most `within` (10 s), even if the store does not answer. A target whose poll has not stopped
   * by then is never handed over: its lease expires.
   */
  stop({ within = DEFAULT_STOP_WITHIN_MS }: { within?: Duration } = {}): Promise<void> {
    const withinMs = durationMs(within, 'within');
    this.#stopping ??= this.#stop(withinMs);
    return this.#stopping;
  }

  /** Why a target is where it is, as far as this instance knows; null for an unknown target. */
  explain(id: string): Explanation | null {
    return this.manager.explain(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #onChanged(id: string): void {
    this.#scheduler.reschedule(id);
    // A result may have been written after the target was removed, before this instance knew.
    if (this.#targets.get(id) === undefined) this.#results?.remove(id);
  }

  async #stop(withinMs: number): Promise<void> {
    const { clock } = this.#rt;
    this.#scheduler.close();
    const patience = clock.after(withinMs * POLLS_SHARE, () =>
      this.#scheduler.stopAll(new ClosedError({ operation: 'poll' })),
    );
    const leftMs = timeLeft(clock, withinMs);
    await this.manager.stop(withinMs - Math.min(withinMs * RESULTS_SHARE, MAX_RESULTS_MS));
    patience.cancel();
    await this.#results?.close(leftMs());
    await this.#handler.close?.();
    this.#targets.close();
    this.#unlisten();
  }
}

/** The built-in poll, which is loaded with its first use. */
class BuiltInPoller implements PollHandler {
  readonly #rt: Runtime;
  readonly #options: HttpPollOptions;
  #loaded: Promise<HttpPoller> | null = null;

  constructor(rt: Runtime, options: HttpPollOptions) {
    this.#rt = rt;
    this.#options = options;
  }

  readonly poll = async (target: Target, context: PollContext): Promise<unknown> => {
    this.#loaded ??= import('./poll/http/http-poller.ts').then(
      ({ HttpPoller }) => new HttpPoller(this.#rt, this.#options),
    );
    const { poll } = await this.#loaded;
    return poll(target, context);
  };

  forget(id: string): void {
    void this.#loaded?.then((http) => http.forget(id));
  }

  async close(): Promise<void> {
    await (await this.#loaded)?.close();
  }
}

function timingsOf(options: PollerOptions): TimingOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => TIMINGS.includes(name)));
}

function checkPollerOptions(options: PollerOptions): void {
  checkKnown(options, KNOWN);
  checkHttpPollOptions(options.http ?? {});
  const { targets, every, poll, timeout, concurrency, results, weight, discovery } = options;
  const check = (field: string, value: unknown, isRight: boolean, rule: string) => {
    if (value !== undefined && !isRight) throw new ConfigError({ field, value, rule });
  };
  check('targets', targets, Array.isArray(targets), 'they are a list of objects with an id');
  check('poll', poll, typeof poll === 'function', 'it has to be a function');
  if (results !== undefined) checkSwitch(results, 'results');
  const weightRule = `it is a whole number from ${MIN_WEIGHT} to ${MAX_WEIGHT}`;
  check('weight', weight, isWeight(weight), weightRule);
  const isCount = Number.isSafeInteger(concurrency) && (concurrency ?? 0) > 0;
  check('concurrency', concurrency, isCount, 'it is a whole number from 1 up');
  for (const [field, value] of Object.entries({ every, timeout, discovery })) {
    if (value === undefined || value === 'off') continue;
    const ms = durationMs(value, field);
    const isInRange = ms >= MIN_EVERY_MS && ms <= MAX_EVERY_MS;
    check(field, value, isInRange, `it is from ${MIN_EVERY_MS} ms to 24 hours`);
  }
}
