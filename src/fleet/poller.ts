/**
 * Polls targets that a fleet of instances shares, each polled by one. What a poller adds to `LeaseManager`, which sees to
 * who owns what, is the work itself.
 */
import { type Clock, timeLeft } from '../core/clock.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import { ClosedError, ConfigError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { checkKnown, checkSwitch } from '../core/options.ts';
import type { Random } from '../core/random.ts';
import { type Tracing, untraced } from '../core/tracing.ts';
import type { Leases } from '../lease/leases.ts';
import type { TimingOptions } from '../lease/timings.ts';
import type { Store } from '../store/port/store.ts';
import { LeaseManager, type ManagerState } from './member/lease-manager.ts';
import type { Explanation } from './plan/explain.ts';
import { checkHttpPollOptions, type HttpPollOptions } from './poll/http/http-options.ts';
import type { HttpPoll } from './poll/http/http-poll.ts';
import { type Poll, type PollContext, PollScheduler } from './poll/poll-scheduler.ts';
import { Results } from './poll/results.ts';
import { TargetFeed } from './targets/target-feed.ts';
import { LONGEST_EVERY_MS, SHORTEST_EVERY_MS, type TargetIds } from './targets/target-record.ts';
import {
  ListedTargets,
  SessionTargets,
  type Target,
  type Targets,
} from './targets/target-source.ts';
import { isWeight, LEAST_WEIGHT, MOST_WEIGHT } from './view/member.ts';

export interface PollerOptions extends TimingOptions {
  /** What to poll: the same list in every instance. Default: the sessions in the store, as they come and go. */
  targets?: readonly Target[];
  /** How often each target is polled, unless it says so itself; default 10 s. */
  every?: Duration;
  /** Polls one target. Default: an HTTP request to its `url`. */
  poll?: Poll;
  /** How long one poll may take before it is told to stop; default 30 s. */
  timeout?: Duration;
  /** How many polls run at once; default 64. */
  concurrency?: number;
  /** Whether what polls give is kept in the store; default on. */
  results?: 'on' | 'off';
  /** This instance's share of the targets, relative to the others'; a whole number, default 1. */
  weight?: number;
  /** How often to look for sessions and instances that other programs put into the store; default 30 s. */
  discovery?: Duration | 'off';
  /** For the built-in poll. */
  http?: HttpPollOptions;
}

export interface PollerParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly leases: Leases;
  readonly instanceId: string;
  readonly sessionIds: TargetIds;
  readonly tracing?: Tracing;
}

const TIMINGS = ['ttl', 'renewEvery', 'stop', 'guard', 'operationTimeout'];
const KNOWN = new Set([
  ...[
    'targets',
    'every',
    'poll',
    'timeout',
    'concurrency',
    'results',
    'weight',
    'discovery',
    'http',
  ],
  ...TIMINGS,
]);
const DEFAULT_EVERY = '10s';
const DEFAULT_TIMEOUT = '30s';
const DEFAULT_CONCURRENCY = 64;
const DEFAULT_DISCOVERY = '30s';
/** How long `stop` lets polls finish before it tells them to. */
const DEFAULT_STOP_WITHIN_MS = 10_000;
/** The share of that time after which polls are told to stop; the rest is for stopping and handing over. */
const PATIENT_SHARE = 0.7;

/** Kept of that time for writing the last results, whatever the handing over takes: a share of it, and at most this. */
const RESULTS_SHARE = 1 / 10;
const RESULTS_MOST_MS = 500;

export class Poller implements AsyncDisposable {
  /** Who owns what, and why. */
  readonly manager: LeaseManager;
  readonly #parts: PollerParts;
  readonly #targets: Targets;
  readonly #schedule: PollScheduler;
  readonly #results: Results | null;
  readonly #options: PollerOptions;
  /** The built-in poll, from its first use on. */
  #http: Promise<HttpPoll> | null = null;
  readonly #unlisten: () => void;
  #stopping: Promise<void> | null = null;

  constructor(parts: PollerParts, options: PollerOptions) {
    checkPollerOptions(options);
    const { clock, random, events, tracing = untraced } = parts;
    const { every = DEFAULT_EVERY, timeout = DEFAULT_TIMEOUT, weight = LEAST_WEIGHT } = options;
    const { concurrency = DEFAULT_CONCURRENCY, discovery = DEFAULT_DISCOVERY } = options;
    this.#parts = parts;
    this.#targets = targetsFor(parts, options, (id) => this.#onChanged(id));
    this.#results = options.results === 'off' ? null : new Results(parts);
    this.#options = options;
    this.#schedule = new PollScheduler({
      ...{ clock, random, events, tracing, concurrency },
      poll: options.poll ?? ((target, context) => this.#pollByHttp(target, context)),
      everyMs: durationMs(every, 'every'),
      timeoutMs: durationMs(timeout, 'timeout'),
      target: (id) => (this.#targets.has(id) ? this.#targets.get(id) : undefined),
      onOutcome: ({ target, fence, recent, ...outcome }) => {
        // What was removed meanwhile leaves nothing behind.
        if (this.#targets.has(target)) this.#results?.record(target, fence, outcome, recent);
      },
      onEnd: (id) => void this.#http?.then((http) => http.forget(id)),
    });
    this.manager = new LeaseManager({
      ...parts,
      targets: this.#targets,
      duties: this.#schedule,
      timings: timingsOf(options),
      weight,
      discoverEveryMs:
        discovery === 'off' ? Number.POSITIVE_INFINITY : durationMs(discovery, 'discovery'),
    });
    this.#unlisten = events.on('result.refused', ({ target, fence, seen }) =>
      this.manager.outrank(target, fence, seen),
    );
  }

  get state(): ManagerState {
    return this.manager.state;
  }

  /** How many polls are under way. */
  get inFlight(): number {
    return this.#schedule.inFlight;
  }

  /**
   * Takes part from now on. Resolves after the first look at the fleet; where the store can not be asked, it goes on
   * trying by itself.
   */
  start(): Promise<void> {
    return this.manager.start();
  }

  /**
   * Begins no more polls, lets those under way finish, hands all targets over and leaves. After `within` (10 s) it has left, even if
   * the store does not answer: what has not stopped by then is never handed over, its lease runs out.
   */
  stop({ within = DEFAULT_STOP_WITHIN_MS }: { within?: Duration } = {}): Promise<void> {
    const withinMs = durationMs(within, 'within');
    this.#stopping ??= this.#stop(withinMs);
    return this.#stopping;
  }

  /** Why a target is where it is, by what this instance has last seen; null for one it does not know. */
  explain(id: string): Explanation | null {
    return this.manager.explain(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #onChanged(id: string): void {
    this.#schedule.changed(id);
    // A result may have been written after the session was removed, before this instance heard of it.
    if (this.#targets.get(id) === undefined) this.#results?.remove(id);
  }

  async #pollByHttp(target: Target, context: PollContext): Promise<unknown> {
    this.#http ??= import('./poll/http/http-poll.ts').then(({ httpPoll }) =>
      httpPoll(this.#options.http ?? {}, this.#parts),
    );
    const poll = await this.#http;
    return poll(target, context);
  }

  async #stop(withinMs: number): Promise<void> {
    const { clock } = this.#parts;
    this.#schedule.beginNoMore();
    const patience = clock.after(withinMs * PATIENT_SHARE, () =>
      this.#schedule.stopAll(new ClosedError({ operation: 'poll' })),
    );
    const leftMs = timeLeft(clock, withinMs);
    await this.manager.stop(withinMs - Math.min(withinMs * RESULTS_SHARE, RESULTS_MOST_MS));
    patience.cancel();
    await this.#results?.close(leftMs());
    (await this.#http)?.close();
    this.#targets.close();
    this.#unlisten();
  }
}

function targetsFor(
  { store, events, sessionIds }: PollerParts,
  { targets }: PollerOptions,
  onChanged: (id: string) => void,
): Targets {
  if (targets !== undefined) return new ListedTargets(targets);
  return new SessionTargets(new TargetFeed({ store, events, ids: sessionIds }), onChanged);
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
  const weightRule = `it is a whole number from ${LEAST_WEIGHT} to ${MOST_WEIGHT}`;
  check('weight', weight, isWeight(weight), weightRule);
  const isCount = Number.isSafeInteger(concurrency) && (concurrency ?? 0) > 0;
  check('concurrency', concurrency, isCount, 'it is a whole number from 1 up');
  for (const [field, value] of Object.entries({ every, timeout, discovery })) {
    if (value === undefined || value === 'off') continue;
    const ms = durationMs(value, field);
    const isInRange = ms >= SHORTEST_EVERY_MS && ms <= LONGEST_EVERY_MS;
    check(field, value, isInRange, `it is from ${SHORTEST_EVERY_MS} ms to 24 hours`);
  }
}
