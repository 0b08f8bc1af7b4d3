/**
 * What stands behind a lock: its leases, and its own end. redlock's locks end when their duration is over, whoever still works
 * under them; the kernel's leases are renewed until they are released. So the kernel keeps the leases, and this ends them.
 *
 * **Held.** In: the leases were granted. Out: its time is over → over; one of the leases is lost, or all is closed → over; it
 * is released → released. An extension moves its end.
 *
 * **Over.** Its signal has fired, and it can not be extended any more: nothing brings it back. The leases are kept until the whole
 * duration has passed, because work that heard of the end needs the rest of it to stop; then the store is told.
 *
 * **Released.** The store has been told, or will be.
 */
import type { Clock, Timer } from '../core/clock.ts';
import type { LeaseSet } from '../lease/lease.ts';
import type { ReleaseResult } from '../lease/release.ts';
import { ExecutionError } from './errors.ts';
import type { LockTerms } from './settings.ts';

/** An `AbortSignal` with redlock's `error`, which is its `reason` too. */
export type RedlockAbortSignal = AbortSignal & { error?: Error };

export interface HoldParts {
  readonly clock: Clock;
  readonly leases: LeaseSet;
  readonly resources: readonly string[];
  readonly value: string;
}

export class Hold {
  readonly resources: readonly string[];
  readonly value: string;
  /** Of each resource, in the order they were asked for. */
  readonly fences: ReadonlyMap<string, number>;
  readonly #clock: Clock;
  readonly #leases: LeaseSet;
  readonly #controller = new AbortController();
  readonly #onLost = () => this.#end(this.#leases.signal.reason);
  #state: 'held' | 'over' | 'released' = 'held';
  /** When it ends here, on both clocks; without an end it is kept for as long as the store confirms it. */
  #endsAtMs = Number.POSITIVE_INFINITY;
  #endsAtWallMs = Number.POSITIVE_INFINITY;
  /** When the store is told of that. */
  #freeAtMs = Number.POSITIVE_INFINITY;
  #timer: Timer | null = null;

  constructor({ clock, leases, resources, value }: HoldParts) {
    this.#clock = clock;
    this.#leases = leases;
    this.resources = resources;
    this.value = value;
    this.fences = new Map(leases.leases.map(({ fence }, i) => [resources[i] ?? '', fence]));
    leases.signal.addEventListener('abort', this.#onLost, { once: true });
    if (leases.signal.aborted) this.#onLost();
  }

  /** Fires when it is over against its holder's will; not when it is released. */
  get signal(): RedlockAbortSignal {
    return this.#controller.signal;
  }

  get isReleased(): boolean {
    return this.#state === 'released';
  }

  /** Why it is over, if it is. Reads the clocks itself: a timer may be late. */
  get loss(): Error | undefined {
    if (this.#state !== 'held') return this.signal.error;
    if (this.#clock.monotonicMs() >= this.#endsAtMs) this.#timeIsUp();
    // Who asks a lease for its state makes its end known, if the deadline has passed.
    for (const lease of this.#leases.leases) if (lease.state === 'lost') break;
    return this.signal.error;
  }

  /** When the request was sent that the leases were granted for, on the monotonic clock. */
  get grantedAtMs(): number {
    const grantedAt = Math.min(...this.#leases.leases.map((lease) => lease.acquiredAt.getTime()));
    return this.#clock.monotonicMs() - (this.#clock.wallMs() - grantedAt);
  }

  isHeld(): boolean {
    return this.remainingMs() > 0 && this.#leases.isHeld();
  }

  /** How long it is good for; 0 when it is over. Reads the clocks itself. */
  remainingMs(): number {
    if (this.#state !== 'held') return 0;
    const leftMs = Math.min(this.#endsAtMs - this.#clock.monotonicMs(), this.#leases.remainingMs());
    return Math.max(0, leftMs);
  }

  /** Until when it is good, by the wall clock; 0 when it is over. */
  expiration(): number {
    const leftMs = this.remainingMs();
    if (leftMs === 0) return 0;
    return Math.floor(Math.min(this.#endsAtWallMs, this.#clock.wallMs() + leftMs));
  }

  /** It ends as these terms say, counted from when the request was sent that the store has confirmed. */
  limit({ durationMs, validMs }: LockTerms, sentAtMs: number): void {
    if (this.#state !== 'held') return;
    const nowMs = this.#clock.monotonicMs();
    this.#endsAtMs = sentAtMs + validMs;
    this.#endsAtWallMs = this.#clock.wallMs() + this.#endsAtMs - nowMs;
    this.#freeAtMs = sentAtMs + durationMs;
    this.#timer?.cancel();
    this.#timer = this.#clock.after(this.#endsAtMs - nowMs, () => this.#timeIsUp());
  }

  /** Asks the store to confirm all of it, once. */
  async renew(): Promise<boolean> {
    const renewed = await Promise.all(this.#leases.leases.map((lease) => lease.renew()));
    return renewed.every(Boolean) && this.remainingMs() > 0;
  }

  /** Lets go of all of it. Never throws; what the store could not be told is given back later, or runs out. */
  async release(): Promise<readonly ReleaseResult[]> {
    this.#timer?.cancel();
    this.#leases.signal.removeEventListener('abort', this.#onLost);
    this.#state = 'released';
    return this.#leases.release();
  }

  #timeIsUp(): void {
    if (this.#state !== 'held') return;
    this.#end(new Error('its duration has passed, and nobody has extended it'));
    const leftMs = this.#freeAtMs - this.#clock.monotonicMs();
    this.#timer = this.#clock.after(leftMs, () => void this.release());
  }

  #end(cause: unknown): void {
    if (this.#state !== 'held') return;
    this.#state = 'over';
    this.#timer?.cancel();
    const why = cause instanceof Error ? cause.message : String(cause);
    const names = this.resources.map((resource) => `'${resource}'`).join(', ');
    const error = new ExecutionError(`The lock of ${names} is over: ${why}`, [], { cause });
    this.signal.error = error;
    this.#controller.abort(error);
  }
}
