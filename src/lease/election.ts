/**
 * Leader election: a lease that is competed for again whenever it is lost.
 *
 * **Following.** In: at the start, and whenever leading is over. Waits for the lease; a store that can not be reached is
 * asked again, at a growing pace. Out: the lease is granted → leading; `stop` → stopped.
 *
 * **Leading.** In: as above; `onElected` is called. It may run for as long as it leads, or return at once: leadership does
 * not end with it. Out: the lease is lost, `onElected` fails, or `stop` → stepping down.
 *
 * **Stepping down.** In: as above; the signal has fired, and `onLost` is called. Waits for what `onElected` returned to
 * settle, because nobody may lead twice at once, then lets go of the lease. Out: → following; after `stop` → stopped.
 *
 * What a lease does not promise, a leader does not have either: ask `assertHeld()` before each step that matters, and
 * pass the fence on to what it writes to.
 */
import type { Clock } from '../core/clock.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import { ClosedError, ConfigError, LeaseLostError, type LossReason } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { checkKey } from '../core/ids.ts';
import { checkKnown } from '../core/options.ts';
import { jittered, type Random } from '../core/random.ts';
import type { Lease } from './lease.ts';
import type { HeldContext, Leases } from './leases.ts';
import type { TimingOptions } from './timings.ts';

/** How long one wait for the lease lasts; then the next one begins. */
const WAIT_MS = 3_600_000;
/** After an error of the store, or of the work: pauses double from the first to the second. */
const RETRY_FIRST_MS = 100;
const RETRY_MOST_MS = 10_000;
/** How long `stop` waits for the work to settle. */
const STOP_WITHIN_MS = 5_000;

export interface ElectOptions extends TimingOptions {
  /** Called when this process leads; its `signal` fires when it does not any more. */
  onElected(held: HeldContext): unknown;
  /** Called when it does not lead any more, right after the signal has fired. */
  onLost?(why: { reason: LostLeadership }): void;
}

export type LostLeadership = LossReason | 'failed' | 'stopped';
export type ElectionState = 'following' | 'leading' | 'stepping down' | 'stopped';

export interface ElectionParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly leases: Pick<Leases, 'acquire' | 'check'>;
}

const TIMINGS = ['ttl', 'renewEvery', 'stop', 'guard', 'operationTimeout'];
const KNOWN = new Set(['onElected', 'onLost', ...TIMINGS]);

export class Election implements AsyncDisposable {
  readonly name: string;
  readonly #parts: ElectionParts;
  readonly #options: ElectOptions;
  readonly #timings: TimingOptions;
  readonly #stopping = new AbortController();
  readonly #over: Promise<void>;
  #state: ElectionState = 'following';
  #lease: Lease | null = null;
  #withinMs = STOP_WITHIN_MS;

  constructor(parts: ElectionParts, name: string, options: ElectOptions) {
    checkKey(name, 'name');
    checkKnown(options, KNOWN);
    checkCallback('onElected', options.onElected);
    if (options.onLost !== undefined) checkCallback('onLost', options.onLost);
    const { onElected: _, onLost: __, ...timings } = options;
    parts.leases.check(timings);
    this.name = name;
    this.#parts = parts;
    this.#options = options;
    this.#timings = timings;
    this.#over = this.#compete();
  }

  get state(): ElectionState {
    return this.#state;
  }

  /** May this process begin new work as the leader? Synchronous, as `lease.isHeld()` is. */
  get isLeader(): boolean {
    return this.#state === 'leading' && this.#lease?.isHeld() === true;
  }

  /** Steps down if it leads, waits up to `within` (5 s) for the work to settle, and competes no more. */
  async stop({ within = STOP_WITHIN_MS }: { within?: Duration } = {}): Promise<void> {
    this.#withinMs = durationMs(within, 'within');
    this.#stopping.abort(new ClosedError({ operation: `election '${this.name}'` }));
    await this.#over;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #compete(): Promise<void> {
    let pauseMs = RETRY_FIRST_MS;
    while (!this.#stopping.signal.aborted) {
      try {
        const lease = await this.#win();
        if (lease === null) continue;
        await this.#lead(lease);
        pauseMs = RETRY_FIRST_MS;
      } catch (error) {
        if (this.#stopping.signal.aborted || error instanceof ClosedError) break;
        this.#parts.events.emit('leader.failed', { election: this.name, error });
        await this.#pause(jittered(pauseMs, this.#parts.random));
        pauseMs = Math.min(pauseMs * 2, RETRY_MOST_MS);
      }
    }
    this.#state = 'stopped';
  }

  async #win(): Promise<Lease | null> {
    this.#state = 'following';
    const { signal } = this.#stopping;
    const options = { ...this.#timings, wait: WAIT_MS, signal };
    const result = await this.#parts.leases.acquire(this.name, options);
    return result.ok ? result.lease : null;
  }

  /** Leads until that is over; throws what `onElected` threw. */
  async #lead(lease: Lease): Promise<void> {
    const failure = new AbortController();
    const signal = AbortSignal.any([lease.signal, this.#stopping.signal, failure.signal]);
    this.#lease = lease;
    this.#state = 'leading';
    const { holder, fence } = lease;
    this.#parts.events.emit('leader.elected', { election: this.name, holder, fence });
    // Before the work can listen to the signal: it hears of its end after everybody else has.
    const over = new Promise<LostLeadership>((resolve) => {
      const stepDown = () => resolve(this.#stepDown(lease, failure.signal.aborted));
      if (signal.aborted) stepDown();
      else signal.addEventListener('abort', stepDown, { once: true });
    });
    const work = this.#work(lease, signal);
    work.catch((error: unknown) => failure.abort(error));
    const reason = await over;
    await this.#settle(lease, work, reason);
    this.#lease = null;
    if (reason === 'failed') await work;
  }

  #stepDown(lease: Lease, hasFailed: boolean): LostLeadership {
    const reason = hasFailed ? 'failed' : whyOver(lease);
    this.#state = 'stepping down';
    this.#parts.events.emit('leader.lost', { election: this.name, fence: lease.fence, reason });
    try {
      this.#options.onLost?.({ reason });
    } catch (error) {
      this.#parts.events.emit('listener.failed', { event: 'leader.lost', error });
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
    });
  }

  async #settle(lease: Lease, work: Promise<void>, reason: LostLeadership): Promise<void> {
    const settled = work.catch(() => {});
    // Only `stop` has a limit: a follower whose last work goes on may not compete, or it would lead twice at once.
    if (reason === 'stopped') {
      await lease.release({ settled, within: this.#withinMs });
      return;
    }
    await settled;
    await lease.release();
  }

  async #pause(ms: number): Promise<void> {
    await this.#parts.clock.sleep(ms, this.#stopping.signal).catch(() => {});
  }
}

function checkCallback(field: string, value: unknown): void {
  if (typeof value !== 'function')
    throw new ConfigError({ field, value, rule: 'it has to be a function' });
}

/** A lease that has not been lost was let go of: by `stop`, or because the Holdfast is being closed. */
function whyOver({ signal }: Lease): LostLeadership {
  const { reason } = signal;
  if (reason instanceof LeaseLostError && reason.reason !== 'released') return reason.reason;
  return 'stopped';
}
