/**
 * Leader election: a lease that is competed for again whenever it is lost.
 *
 * **Following.** In: at the start, and whenever leading is over. Waits for the lease; if the store
 * is unreachable, it asks again, with growing pauses. Out: the lease is granted → leading; `stop` →
 * stopped.
 *
 * **Leading.** In: as above; `onElected` is called. It may run for as long as it leads, or return
 * at once: leadership does not end with it. Out: the lease is lost, `onElected` fails, or `stop` →
 * stepping down.
 *
 * **Stepping down.** In: as above; the signal has fired, and `onLost` is called. Waits for the
 * promise of `onElected`, because a process must not lead twice at once, then releases the lease.
 * Out: → following; after `stop` → stopped.
 *
 * A leader has no more guarantees than a lease: call `assertHeld()` before each step that matters,
 * and pass the fence to every resource that it writes to.
 */
import { type Duration, durationMs } from '../core/duration.ts';
import { ClosedError, ConfigError, LeaseLostError, type LossReason } from '../core/errors.ts';
import { checkKey } from '../core/ids.ts';
import { checkKnown } from '../core/options.ts';
import { jittered } from '../core/random.ts';
import type { BaseRuntime } from '../core/runtime.ts';
import type { Lease } from './lease.ts';
import type { HeldContext, Leases } from './leases.ts';
import type { TimingOptions } from './timings.ts';

/** How long one wait for the lease lasts before the next one begins. */
const WAIT_MS = 3_600_000;
/** After an error of the store, or of the work: pauses double from the first to the second. */
const MIN_RETRY_MS = 100;
const MAX_RETRY_MS = 10_000;
/** How long `stop` waits for the work to stop. */
const STOP_WITHIN_MS = 5_000;

export interface ElectOptions extends TimingOptions {
  /** Called when this process becomes the leader; its `signal` fires when leadership ends. */
  onElected(held: HeldContext): unknown;
  /** Called when leadership ends, right after the signal has fired. */
  onLost?(why: { reason: LostLeadership }): void;
}

export type LostLeadership = LossReason | 'failed' | 'stopped';
export type ElectionState = 'following' | 'leading' | 'stepping down' | 'stopped';

const TIMINGS = ['ttl', 'renewEvery', 'stop', 'guard', 'operationTimeout'];
const KNOWN = new Set(['onElected', 'onLost', ...TIMINGS]);

export class Election implements AsyncDisposable {
  readonly name: string;
  readonly #rt: BaseRuntime;
  readonly #leases: Pick<Leases, 'acquire'>;
  readonly #options: ElectOptions;
  readonly #timings: TimingOptions;
  readonly #stopping = new AbortController();
  readonly #stopped: Promise<void>;
  #state: ElectionState = 'following';
  #lease: Lease | null = null;
  #withinMs = STOP_WITHIN_MS;

  constructor(
    rt: BaseRuntime,
    leases: Pick<Leases, 'acquire' | 'check'>,
    name: string,
    options: ElectOptions,
  ) {
    checkKey(name, 'name');
    checkKnown(options, KNOWN);
    checkCallback('onElected', options.onElected);
    if (options.onLost !== undefined) checkCallback('onLost', options.onLost);
    const { onElected: _, onLost: __, ...timings } = options;
    leases.check(timings);
    this.name = name;
    this.#rt = rt;
    this.#leases = leases;
    this.#options = options;
    this.#timings = timings;
    this.#stopped = this.#compete();
  }

  get state(): ElectionState {
    return this.#state;
  }

  /** May this process begin new work as the leader? Synchronous, as `lease.isHeld()` is. */
  get isLeader(): boolean {
    return this.#state === 'leading' && this.#lease?.isHeld() === true;
  }

  /**
   * Steps down if it leads, waits up to `within` (5 s) for the work to stop, and no longer
   * competes.
   */
  async stop({ within = STOP_WITHIN_MS }: { within?: Duration } = {}): Promise<void> {
    this.#withinMs = durationMs(within, 'within');
    this.#stopping.abort(new ClosedError({ operation: `election '${this.name}'` }));
    await this.#stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #compete(): Promise<void> {
    let pauseMs = MIN_RETRY_MS;
    while (!this.#stopping.signal.aborted) {
      try {
        const lease = await this.#win();
        if (lease === null) continue;
        await this.#lead(lease);
        pauseMs = MIN_RETRY_MS;
      } catch (error) {
        if (this.#stopping.signal.aborted || error instanceof ClosedError) break;
        this.#rt.events.emit('leader.failed', { election: this.name, error });
        await this.#pause(jittered(pauseMs, this.#rt.random));
        pauseMs = Math.min(pauseMs * 2, MAX_RETRY_MS);
      }
    }
    this.#state = 'stopped';
  }

  async #win(): Promise<Lease | null> {
    this.#state = 'following';
    const { signal } = this.#stopping;
    const options = { ...this.#timings, wait: WAIT_MS, signal };
    const result = await this.#leases.acquire(this.name, options);
    return result.ok ? result.lease : null;
  }

  /** Leads until leadership ends; rethrows an error of `onElected`. */
  async #lead(lease: Lease): Promise<void> {
    const failure = new AbortController();
    const signal = AbortSignal.any([lease.signal, this.#stopping.signal, failure.signal]);
    this.#lease = lease;
    this.#state = 'leading';
    const { holder, fence } = lease;
    this.#rt.events.emit('leader.elected', { election: this.name, holder, fence });
    // Listens to the signal before the work can, so that `onLost` is called first.
    const ended = new Promise<LostLeadership>((resolve) => {
      const stepDown = () => resolve(this.#stepDown(lease, failure.signal.aborted));
      if (signal.aborted) stepDown();
      else signal.addEventListener('abort', stepDown, { once: true });
    });
    const work = this.#work(lease, signal);
    work.catch((error: unknown) => failure.abort(error));
    const reason = await ended;
    await this.#endWork(lease, work, reason);
    this.#lease = null;
    if (reason === 'failed') await work;
  }

  #stepDown(lease: Lease, hasFailed: boolean): LostLeadership {
    const reason = hasFailed ? 'failed' : endReason(lease);
    this.#state = 'stepping down';
    this.#rt.events.emit('leader.lost', { election: this.name, fence: lease.fence, reason });
    try {
      this.#options.onLost?.({ reason });
    } catch (error) {
      this.#rt.events.emit('listener.failed', { event: 'leader.lost', error });
    }
    return reason;
  }

  async #work(lease: Lease, signal: AbortSignal): Promise<void> {
    await this.#options.onElected({
      signal,
      fence: lease.fence,
      lease,
      isHeld: () => lease.isHeld(),
      assertHeld: () => lease.assertHeld(),
      guard: (transaction) => lease.guard(transaction),
    });
  }

  async #endWork(lease: Lease, work: Promise<void>, reason: LostLeadership): Promise<void> {
    const settled = work.catch(() => {});
    // Only `stop` has a limit. A follower whose earlier work still runs must not compete: it could
    // lead twice.
    if (reason === 'stopped') {
      await lease.release({ settled, within: this.#withinMs });
      return;
    }
    await settled;
    await lease.release();
  }

  async #pause(ms: number): Promise<void> {
    await this.#rt.clock.sleep(ms, this.#stopping.signal).catch(() => {});
  }
}

function checkCallback(field: string, value: unknown): void {
  if (typeof value !== 'function')
    throw new ConfigError({ field, value, rule: 'it has to be a function' });
}

/** A lease that was not lost was released: by `stop`, or because the Holdfast is being closed. */
function endReason({ signal }: Lease): LostLeadership {
  const { reason } = signal;
  if (reason instanceof LeaseLostError && reason.reason !== 'released') return reason.reason;
  return 'stopped';
}
