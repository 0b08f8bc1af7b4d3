/**
 * The leases of a lock, and its expiry. A redlock lock expires after its duration, even if work
 * still runs under it. Holdfast's leases are renewed until they are released. So the tenure keeps
 * the leases and releases them when the lock expires.
 *
 * **Held.** In: the leases were granted. Out: the duration has passed → over; a lease is lost, or
 * Holdfast is closed → over; the lock is released → released. An extension moves its expiry.
 *
 * **Over.** The signal has fired, and the lock cannot be extended any more. The leases are kept
 * until the whole duration has passed, so that the work has time to stop; then they are released.
 *
 * **Released.** The release was sent, or will be.
 */
import type { Clock, Timer } from '../core/clock.ts';
import type { LeaseSet } from '../lease/lease.ts';
import type { ReleaseResult } from '../lease/release.ts';
import { ExecutionError } from './errors.ts';
import { reasonOf } from './reasons.ts';
import type { LockTimings } from './settings.ts';

/** An `AbortSignal` with redlock's `error`, which is its `reason` too. */
export type RedlockAbortSignal = AbortSignal & { error?: Error };

export class LockTenure {
  readonly resources: readonly string[];
  readonly value: string;
  /** By resource, in the order of the request. */
  readonly fences: ReadonlyMap<string, number>;
  readonly #clock: Clock;
  readonly #leases: LeaseSet;
  readonly #controller = new AbortController();
  readonly #onLost = () => this.#end(this.#leases.signal.reason);
  #state: 'held' | 'over' | 'released' = 'held';
  /** When the lock expires, on both clocks; Infinity: it lives as long as its leases. */
  #endsAtMs = Number.POSITIVE_INFINITY;
  #endsAtWallMs = Number.POSITIVE_INFINITY;
  /** When its leases are released. */
  #releaseAtMs = Number.POSITIVE_INFINITY;
  #timer: Timer | null = null;

  /** `value` is the holder of the leases. */
  constructor(clock: Clock, leases: LeaseSet, resources: readonly string[], value: string) {
    this.#clock = clock;
    this.#leases = leases;
    this.resources = resources;
    this.value = value;
    this.fences = new Map(leases.leases.map(({ fence }, i) => [resources[i] ?? '', fence]));
    leases.signal.addEventListener('abort', this.#onLost, { once: true });
    if (leases.signal.aborted) this.#onLost();
  }

  /** Fires when the lock expires or is lost, not when it is released. */
  get signal(): RedlockAbortSignal {
    return this.#controller.signal;
  }

  get isReleased(): boolean {
    return this.#state === 'released';
  }

  /** Why the lock is over; undefined if it is not. Reads the clock: a timer may be late. */
  get loss(): Error | undefined {
    if (this.#state !== 'held') return this.signal.error;
    if (this.#clock.monotonicMs() >= this.#endsAtMs) this.#expire();
    // Reading the state of a lease past its deadline marks it as lost.
    for (const lease of this.#leases.leases) if (lease.state === 'lost') break;
    return this.signal.error;
  }

  /** When the granting request was sent, on the monotonic clock. */
  get grantedAtMs(): number {
    const grantedAt = Math.min(...this.#leases.leases.map((lease) => lease.acquiredAt.getTime()));
    return this.#clock.monotonicMs() - (this.#clock.wallMs() - grantedAt);
  }

  isHeld(): boolean {
    return this.remainingMs() > 0 && this.#leases.isHeld();
  }

  /** How long the lock is valid; 0 when it is over. Reads the clocks. */
  remainingMs(): number {
    if (this.#state !== 'held') return 0;
    const leftMs = Math.min(this.#endsAtMs - this.#clock.monotonicMs(), this.#leases.remainingMs());
    return Math.max(0, leftMs);
  }

  /** When the lock expires, on the wall clock; 0 when it is over. */
  expiration(): number {
    const leftMs = this.remainingMs();
    if (leftMs === 0) return 0;
    return Math.floor(Math.min(this.#endsAtWallMs, this.#clock.wallMs() + leftMs));
  }

  /** Sets the expiry, counted from when the confirmed request was sent. */
  expireAfter({ durationMs, validMs }: LockTimings, sentAtMs: number): void {
    if (this.#state !== 'held') return;
    const nowMs = this.#clock.monotonicMs();
    this.#endsAtMs = sentAtMs + validMs;
    this.#endsAtWallMs = this.#clock.wallMs() + this.#endsAtMs - nowMs;
    this.#releaseAtMs = sentAtMs + durationMs;
    this.#timer?.cancel();
    this.#timer = this.#clock.after(this.#endsAtMs - nowMs, () => this.#expire());
  }

  /** Renews all leases once. False if one was not confirmed. */
  async renew(): Promise<boolean> {
    const renewed = await Promise.all(this.#leases.leases.map((lease) => lease.renew()));
    return renewed.every(Boolean) && this.remainingMs() > 0;
  }

  /** Releases all leases. Never throws: a release that fails is repeated, or its lease expires. */
  async release(): Promise<readonly ReleaseResult[]> {
    this.#timer?.cancel();
    this.#leases.signal.removeEventListener('abort', this.#onLost);
    this.#state = 'released';
    return this.#leases.release();
  }

  #expire(): void {
    if (this.#state !== 'held') return;
    this.#end(new Error('its duration has passed without an extension'));
    const leftMs = this.#releaseAtMs - this.#clock.monotonicMs();
    this.#timer = this.#clock.after(leftMs, () => void this.release());
  }

  #end(cause: unknown): void {
    if (this.#state !== 'held') return;
    this.#state = 'over';
    this.#timer?.cancel();
    const names = this.resources.map((resource) => `'${resource}'`).join(', ');
    const error = new ExecutionError(`The lock of ${names} is over: ${reasonOf(cause)}`, [], {
      cause,
    });
    this.signal.error = error;
    this.#controller.abort(error);
  }
}
