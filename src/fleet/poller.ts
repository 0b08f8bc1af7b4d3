/** Polls targets that a fleet of instances shares, each target by one instance. */
import { type Duration, durationMs } from '../core/duration.ts';
import { checkKnown } from '../core/options.ts';
import type { Leases } from '../lease/leases.ts';
import type { Runtime } from '../store/runtime.ts';
import {
  checkInterval,
  checkOption,
  FLEET_OPTIONS,
  FleetService,
  type FleetServiceOptions,
} from './fleet-service.ts';
import { checkHttpPollOptions, type HttpPollOptions } from './poll/http/http-options.ts';
import type { HttpPoller } from './poll/http/http-poller.ts';
import {
  type Poll,
  type PollContext,
  type PollHandler,
  PollScheduler,
} from './poll/poll-scheduler.ts';
import type { TargetIds } from './targets/target-record.ts';
import type { Target } from './targets/target-source.ts';

export interface PollerOptions extends FleetServiceOptions {
  /** How often each target is polled, unless its record says so; default 10 s. */
  every?: Duration;
  /** Polls one target. Default: an HTTP request to its `url`. */
  poll?: Poll;
  /** How long one poll may take before it is told to stop; default 30 s. */
  timeout?: Duration;
  /** How many polls run at once; default 64. */
  concurrency?: number;
  /**
   * A target whose polls fail is polled less often: its interval doubles with every failure in a
   * row after the first, up to this. Default 1 min; `off`: failures change nothing.
   */
  maxBackoff?: Duration | 'off';
  /** For the built-in poll. */
  http?: HttpPollOptions;
}

const OWN = ['every', 'poll', 'timeout', 'concurrency', 'maxBackoff', 'http'];
const KNOWN = new Set([...OWN, ...FLEET_OPTIONS]);
const DEFAULT_EVERY = '10s';
const DEFAULT_TIMEOUT = '30s';
const DEFAULT_CONCURRENCY = 64;
const DEFAULT_MAX_BACKOFF = '1m';

export class Poller extends FleetService {
  constructor(rt: Runtime, leases: Leases, targetIds: TargetIds, options: PollerOptions) {
    checkPollerOptions(options);
    const { every = DEFAULT_EVERY, timeout = DEFAULT_TIMEOUT, poll, http } = options;
    const { concurrency = DEFAULT_CONCURRENCY, maxBackoff = DEFAULT_MAX_BACKOFF } = options;
    const handler = poll === undefined ? new BuiltInPoller(rt, http ?? {}) : { poll };
    const settings = {
      handler,
      everyMs: durationMs(every, 'every'),
      timeoutMs: durationMs(timeout, 'timeout'),
      concurrency,
      maxBackoffMs: maxBackoff === 'off' ? 0 : durationMs(maxBackoff, 'maxBackoff'),
    };
    super(
      rt,
      leases,
      { ...options, targetIds },
      (targets, results) => new PollScheduler(rt, targets, results, settings),
    );
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

function checkPollerOptions(options: PollerOptions): void {
  checkKnown(options, KNOWN);
  checkHttpPollOptions(options.http ?? {});
  const { every, poll, timeout, concurrency, maxBackoff } = options;
  checkOption('poll', poll, typeof poll === 'function', 'it has to be a function');
  const isCount = Number.isSafeInteger(concurrency) && (concurrency ?? 0) > 0;
  checkOption('concurrency', concurrency, isCount, 'it must be a whole number from 1 up');
  checkInterval('every', every);
  checkInterval('timeout', timeout);
  if (maxBackoff !== 'off') checkInterval('maxBackoff', maxBackoff);
}
