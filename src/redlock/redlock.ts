/**
 * The API of redlock 5 on Holdfast's leases. A lock promises what `lease.ts` says, and has a fence.
 * redlock leaves expiry to the caller's clock; here a lock that has expired, or that the store no
 * longer confirms, is over. Neither an extension nor a late reply revives it.
 */
import { EventEmitter } from 'node:events';
import { type Clock, systemClock } from '../core/clock.ts';
import { ClosedError, ConfigError, LeaseHeldError, StoreQuarantinedError } from '../core/errors.ts';
import { checkKnown } from '../core/options.ts';
import { type Random, systemRandom } from '../core/random.ts';
import { Holdfast, type OpenOptions } from '../holdfast.ts';
import { LeaseSet } from '../lease/lease.ts';
import type { AcquireOptions } from '../lease/options.ts';
import { refusalError } from '../lease/refusal-error.ts';
import { clientsOf, quitClient, type RedlockClient } from './client.ts';
import {
  ExecutionError,
  invalidArgument,
  QuorumNotOfferedError,
  ResourceLockedError,
} from './errors.ts';
import { type ExecutionResult, type ExecutionStats, voteAgainst, voteFor } from './execution.ts';
import { checkEvent, refuseFormerCalls, refuseFormerField } from './former-calls.ts';
import { keyOf, resourcesOf } from './keys.ts';
import { isSpent, Lock, spend, tenureOf } from './lock.ts';
import { LockTenure, type RedlockAbortSignal } from './lock-tenure.ts';
import { reasonOf } from './reasons.ts';
import {
  checkDuration,
  checkThreshold,
  type LockTimings,
  retryPauseMs,
  retryWindowMs,
  type Settings,
  settingsOf,
  timingsOf,
} from './settings.ts';
import { type SharedHoldfast, sharedHoldfast } from './shared-holdfast.ts';

/** The second argument of a `using` routine. */
export interface RedlockUsingContext {
  readonly lock: Lock;
  /** How often the lock was extended. */
  readonly extensions: number;
}

export type Routine<T> = (signal: RedlockAbortSignal, context: RedlockUsingContext) => Promise<T>;

/** An endless wait is made of waits of this length. */
const MAX_WAIT_MS = 3_600_000;
/** A lock or an error keeps the last attempts, up to this number. */
const MAX_ATTEMPTS = 100;
const UNCONFIRMED = 'The store did not confirm the extension; the lock expires as before.';
export const WINDOW = 'The operation was unable to achieve a quorum during its retry window.';

export class Redlock extends EventEmitter {
  readonly clients: Set<RedlockClient>;
  readonly settings: Settings;
  readonly #client: RedlockClient;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #shared: SharedHoldfast;
  #quitting: Promise<void> | null = null;

  /** `clients`: an ioredis or node-redis client, an address or a Holdfast. `options`: of `open`. */
  constructor(
    clients: Iterable<RedlockClient> | Holdfast,
    settings: Partial<Settings> = {},
    options: OpenOptions = {},
  ) {
    super();
    // As with redlock, an `error` event without a listener does not end the process.
    this.on('error', () => {});
    this.on('newListener', checkEvent);
    this.clients = clientsOf(clients);
    const [client] = this.clients;
    if (client === undefined) {
      const sentence = 'Redlock must be instantiated with at least one redis client.';
      throw invalidArgument('clients', clients, sentence);
    }
    if (this.clients.size > 1) throw new QuorumNotOfferedError({ clients: this.clients.size });
    checkOptions(client, options);
    this.settings = settingsOf(settings);
    this.#client = client;
    this.#shared = sharedHoldfast(client, options);
    this.#clock = options.clock ?? systemClock;
    this.#random = options.random ?? systemRandom;
  }

  /** Locks all resources for `duration` ms, or none: then it throws an `ExecutionError`. */
  async acquire(
    resources: readonly string[],
    duration: number,
    settings: Partial<Settings> = {},
  ): Promise<Lock> {
    checkDuration(duration);
    const asked = settingsOf(settings, this.settings);
    const terms = timingsOf(duration, asked);
    const { tenure, attempts } = await this.#acquireTenure(resources, terms, asked);
    tenure.expireAfter(terms, tenure.grantedAtMs);
    const { loss } = tenure;
    if (loss === undefined) return new Lock(this, tenure, attempts);
    // The reply took longer than the lock lasts. redlock would return the expired lock.
    await tenure.release();
    throw this.#failed(attempts, loss.message, loss);
  }

  /** Releases the lock. Throws an `ExecutionError` if it was over, or the store did not answer. */
  async release(lock: Lock, _settings: Partial<Settings> = {}): Promise<ExecutionResult> {
    const tenure = tenureOf(lock);
    const wasReleased = tenure.isReleased;
    spend(lock);
    const results = await tenure.release();
    const freed = wasReleased ? 0 : results.filter(({ released }) => released).length;
    if (freed === tenure.resources.length) return { attempts: [voteFor(this.#client)] };
    const isUnknown = results.some((result) => !result.released && result.reason === 'unknown');
    const why = isUnknown
      ? 'The store did not answer. The release is repeated when it does, or the lock expires.'
      : 'The lock was already released, or had expired.';
    throw this.#failed([this.#voteAgainst(appliedTo(freed, tenure.resources.length))], why);
  }

  /** A new lock for the same resources, valid for `duration` ms from now. Replaces the old one. */
  async extend(existing: Lock, duration: number, settings: Partial<Settings> = {}): Promise<Lock> {
    checkDuration(duration);
    const asked = settingsOf(settings, this.settings);
    const tenure = tenureOf(existing);
    const cause = tenure.loss;
    if (cause !== undefined || tenure.isReleased || isSpent(existing)) {
      const why = cause === undefined ? '' : ` ${cause.message}`;
      throw new ExecutionError(`Cannot extend an already-expired lock.${why}`, [], { cause });
    }
    const attempts: Promise<ExecutionStats>[] = [];
    const sentAtMs = await this.#renew(tenure, asked, attempts);
    tenure.expireAfter(timingsOf(duration, asked), sentAtMs);
    spend(existing);
    return new Lock(this, tenure, [...attempts, voteFor(this.#client)]);
  }

  /** Runs the routine and extends its lock meanwhile. The signal fires if the lock is lost. */
  using<T>(
    resources: readonly string[],
    duration: number,
    settings: Partial<Settings>,
    routine?: Routine<T>,
  ): Promise<T>;
  using<T>(resources: readonly string[], duration: number, routine: Routine<T>): Promise<T>;
  async using<T>(
    resources: readonly string[],
    duration: number,
    settingsOrRoutine: Partial<Settings> | Routine<T>,
    optionalRoutine?: Routine<T>,
  ): Promise<T> {
    checkDuration(duration);
    const isRoutine = typeof settingsOrRoutine === 'function';
    const asked = settingsOf(isRoutine ? {} : (settingsOrRoutine ?? {}), this.settings);
    const routine = isRoutine ? settingsOrRoutine : optionalRoutine;
    if (typeof routine !== 'function')
      throw new ConfigError({ field: 'routine', value: routine, rule: 'must be a function' });
    checkThreshold(duration, asked);
    const terms = timingsOf(duration, asked, asked.automaticExtensionThreshold);
    const { tenure, attempts } = await this.#acquireTenure(resources, terms, asked);
    return this.#run(tenure, new Lock(this, tenure, attempts), routine);
  }

  /** Closes the client, as redlock does. Stops routines and waits for them; other locks expire. */
  quit(): Promise<void> {
    this.#quitting ??= this.#quit();
    return this.#quitting;
  }

  async #quit(): Promise<void> {
    await this.#shared.close(this.#shared.routines.size === 0 ? { within: 0 } : {});
    await quitClient(this.#client);
  }

  #open(): Promise<Holdfast> {
    if (this.#quitting !== null) return Promise.reject(new ClosedError({ operation: 'acquire' }));
    return this.#shared.open();
  }

  /** Tries until granted, or until the retry window ends. Waits while a resource is held. */
  async #acquireTenure(
    resources: readonly string[],
    { timings }: LockTimings,
    settings: Settings,
  ): Promise<{ tenure: LockTenure; attempts: Promise<ExecutionStats>[] }> {
    const clock = this.#clock;
    const names = resourcesOf(resources);
    const untilMs = clock.monotonicMs() + retryWindowMs(settings);
    const attempts: Promise<ExecutionStats>[] = [];
    const name = this.#random.hex(32);
    const leftMs = () => Math.max(0, untilMs - clock.monotonicMs());
    for (;;) {
      try {
        const holdfast = await this.#open();
        const value = `${holdfast.instanceId}/${name}`;
        const wait = Math.min(leftMs(), MAX_WAIT_MS);
        const leases = await acquireLeases(holdfast, names, { ...timings, wait, holder: value });
        attempts.push(voteFor(this.#client));
        return { tenure: new LockTenure(clock, leases, names, value), attempts };
      } catch (error) {
        if (error instanceof ConfigError) throw refusedArgument(error);
        addAttempt(attempts, this.#voteAgainst(asVote(error, names.length)));
        if (error instanceof ClosedError || leftMs() === 0)
          throw this.#failed(attempts, reasonOf(error), error);
        // `acquire` has waited already.
        if (error instanceof LeaseHeldError || error instanceof StoreQuarantinedError) continue;
        await clock.sleep(Math.min(leftMs(), retryPauseMs(settings, this.#random)));
      }
    }
  }

  /** Renews until the store confirms, and returns when that request was sent. */
  async #renew(
    tenure: LockTenure,
    settings: Settings,
    attempts: Promise<ExecutionStats>[],
  ): Promise<number> {
    const clock = this.#clock;
    const untilMs = clock.monotonicMs() + retryWindowMs(settings);
    for (;;) {
      const sentAtMs = clock.monotonicMs();
      if (await tenure.renew()) return sentAtMs;
      addAttempt(attempts, this.#voteAgainst(appliedTo(0, tenure.resources.length)));
      const pauseMs = retryPauseMs(settings, this.#random);
      const isLast = clock.monotonicMs() + pauseMs > untilMs;
      // A lock that is over is not waited for.
      if (!isLast && tenure.loss === undefined)
        await clock.sleep(pauseMs, tenure.signal).catch(() => {});
      const { loss, isReleased } = tenure;
      if (loss !== undefined) throw this.#failed(attempts, loss.message, loss);
      if (isReleased) throw this.#failed(attempts, 'The lock was released meanwhile.');
      if (isLast) throw this.#failed(attempts, UNCONFIRMED);
    }
  }

  async #run<T>(tenure: LockTenure, lock: Lock, routine: Routine<T>): Promise<T> {
    const count = { key: keyOf(tenure.resources[0] ?? ''), extensions: 0 };
    this.#shared.routines.set(tenure.value, count);
    const context = {
      lock,
      get extensions() {
        return count.extensions;
      },
    };
    try {
      const result = await routine(tenure.signal, context);
      // Part of the work may have run while another holder had the lock: it is not done.
      if (tenure.loss !== undefined) throw tenure.loss;
      return result;
    } finally {
      // The lock covered the work to its end. If the release fails, the key expires.
      if (!tenure.isReleased) await this.release(lock).catch(() => {});
      this.#shared.routines.delete(tenure.value);
    }
  }

  #voteAgainst(error: Error): Promise<ExecutionStats> {
    this.emit('error', error);
    return voteAgainst(this.#client, error);
  }

  #failed(attempts: Promise<ExecutionStats>[], why: string, cause?: unknown): ExecutionError {
    return new ExecutionError(`${WINDOW} ${why}`, attempts, { cause });
  }
}

refuseFormerCalls(Redlock.prototype, [
  'lock',
  'lockWithOptions',
  'acquireWithOptions',
  'unlock',
  'disposer',
]);
refuseFormerCalls(Lock.prototype, ['unlock']);
refuseFormerField(Redlock, 'LockError', 'catch ExecutionError');

async function acquireLeases(
  holdfast: Holdfast,
  resources: readonly string[],
  options: AcquireOptions,
): Promise<LeaseSet> {
  const keys = resources.map(keyOf);
  const [key] = keys;
  if (key === undefined || keys.length > 1) return holdfast.acquireAll(keys, options);
  const result = await holdfast.acquire(key, options);
  if (!result.ok) throw refusalError(result);
  return new LeaseSet([result.lease]);
}

/** What the settings of a lock are called here. */
function refusedArgument(error: ConfigError): ConfigError {
  const { field, value } = error;
  if (field !== 'ttl') return error;
  const rule =
    "it is longer than a lock may last. Extend shorter locks, or pass { maxTtl: '2m' } as the third argument in every process";
  return new ConfigError({ field: 'duration', value, rule }, { cause: error });
}

/** `open` checks the other options. */
function checkOptions(client: RedlockClient, options: object): void {
  if (client instanceof Holdfast) checkKnown(options, new Set(['clock', 'random']));
  checkNoScript(options);
}

/** Scripts of the user's own, which redlock would run. */
export function checkNoScript(options: object): void {
  const script = Object.keys(options).find((name) => name.endsWith('Script'));
  if (script === undefined) return;
  const rule = 'Holdfast has no scripts to replace; the third argument takes the options of open';
  throw new ConfigError({ field: script, value: 'given', rule });
}

/** redlock's words, and then why: programs match the beginning. */
function appliedTo(count: number, of: number, cause?: Error): ResourceLockedError {
  const applied = `The operation was applied to: ${count} of the ${of} requested resources.`;
  const message = cause === undefined ? applied : `${applied} ${reasonOf(cause)}`;
  return new ResourceLockedError(message, { cause });
}

function asVote(error: unknown, of: number): Error {
  if (error instanceof LeaseHeldError) return appliedTo(0, of, error);
  return error instanceof Error ? error : new Error(String(error));
}

function addAttempt(attempts: Promise<ExecutionStats>[], attempt: Promise<ExecutionStats>): void {
  attempts.push(attempt);
  if (attempts.length > MAX_ATTEMPTS) void attempts.shift();
}
