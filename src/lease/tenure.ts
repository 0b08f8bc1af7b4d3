/**
 * One tenure: `(key, holder, fence)`, from its grant to its end. No I/O happens here; the keeper brings what the store
 * said, this decides what it means.
 *
 * **Held.** In: the store granted the key. Admits new work. Out: a renewal fails or the wall clock jumps → uncertain; the
 * holder lets go → releasing; the store names somebody else, or the deadline passes → lost.
 *
 * **Uncertain.** In: as above. Nobody else can have the key yet, so work in flight may go on until the deadline, but no new
 * work begins. Out: a renewal is confirmed → held; the holder lets go → releasing; as above → lost.
 *
 * **Releasing.** In: the holder lets go. Renewals go on while its work settles; no new work begins. Once the store is
 * being told, work in flight must be over too, because the key may be another's before the answer comes. Out: the store
 * has been told, or the wait was given up and the key is left to run out → released; as above → lost.
 *
 * **Released**, **Lost.** Ends. A tenure never comes back: a late answer to a renewal changes nothing any more.
 *
 * The deadline is `when the last confirmed request was SENT + ttl − guard`, on the monotonic clock. The store counts its
 * TTL from a later moment, so its expiry is always behind ours. Timers only make the end known promptly: a blocked event
 * loop makes them late, so every check reads the clocks itself. What it means if they disagree: `base/deadline.ts`.
 */
import type { Clock } from '../core/clock.ts';
import { LeaseLostError, LeaseUncertainError, type LossReason } from '../core/errors.ts';
import type { DoubtReason, Emitter } from '../core/events.ts';
import {
  type Confirmation,
  type Deadline,
  elapsedMs,
  endsAtMs,
  isInDoubt,
  jumpMs,
  remainingMs,
} from '../core/validity.ts';
import type { LeaseClass } from './classes.ts';
import type { Timings } from './timings.ts';

export type TenureState = 'held' | 'uncertain' | 'releasing' | 'released' | 'lost';

/** What all tenures of one kind share. */
export interface Terms {
  readonly clock: Clock;
  readonly events: Emitter;
  readonly leaseClass: LeaseClass;
  readonly timings: Timings;
  /** Asks the keeper for a renewal at once. */
  readonly renewNow: (tenure: Tenure) => void;
  readonly onLost: (tenure: Tenure, reason: LossReason) => void;
}

export class Tenure {
  readonly terms: Terms;
  readonly key: string;
  /** The key as the store knows it; kept, because every renewal needs it. */
  readonly storeKey: string;
  readonly holder: string;
  readonly fence: number;
  readonly acquiredAtMs: number;
  /** The keeper's notes: when to look at this tenure next, its place in the agenda, and whether a renewal is under way. */
  dueMs = 0;
  slot = -1;
  renewing = false;
  /** When the store was last told to keep its fence record. */
  fenceKeptMs: number;
  /** Its work may go on after a loss, until the lease is released. */
  untilReleased = false;
  #state: TenureState = 'held';
  #confirmed: Confirmation;
  #lossReason: LossReason | null = null;
  #lossCause: Error | undefined;
  #endedAtMs = 0;
  #controller: AbortController | null = null;
  #onSettled: (() => void)[] | null = null;
  #settled = false;
  #handedIn = false;

  constructor(
    terms: Terms,
    grant: { key: string; holder: string; fence: number },
    confirmed: Confirmation,
  ) {
    this.terms = terms;
    this.key = grant.key;
    this.storeKey = terms.leaseClass.keyspace + grant.key;
    this.holder = grant.holder;
    this.fence = grant.fence;
    this.acquiredAtMs = confirmed.sentAtMs;
    this.fenceKeptMs = confirmed.sentAtMs;
    this.#confirmed = confirmed;
  }

  get state(): TenureState {
    this.#insideDeadline();
    return this.#state;
  }

  /** This tenure as the store knows it. */
  get tenancy(): { key: string; holder: string; fence: number } {
    return { key: this.storeKey, holder: this.holder, fence: this.fence };
  }

  /** This tenure as events tell of it. */
  get facts(): { leaseClass: string; key: string; holder: string; fence: number } {
    const { key, holder, fence } = this;
    return { leaseClass: this.terms.leaseClass.name, key, holder, fence };
  }

  get acquiredAt(): Date {
    const { clock } = this.terms;
    return new Date(clock.wallMs() - (clock.monotonicMs() - this.acquiredAtMs));
  }

  get lastRenewedAt(): Date {
    return new Date(this.#confirmed.sentAtWallMs);
  }

  get deadlineMs(): number {
    return endsAtMs(this.#confirmed, this.terms.timings);
  }

  get heldForMs(): number {
    const untilMs = this.isOver ? this.#endedAtMs : this.terms.clock.monotonicMs();
    return untilMs - this.acquiredAtMs;
  }

  get isOver(): boolean {
    return this.#state === 'lost' || this.#state === 'released';
  }

  get lossReason(): LossReason | null {
    return this.#lossReason;
  }

  /** May new work begin? */
  isHeld(): boolean {
    if (this.#state !== 'held') return false;
    const nowMs = this.terms.clock.monotonicMs();
    if (!this.#insideDeadline(nowMs)) return false;
    if (!isInDoubt(this.#confirmed, this.terms.timings, this.terms.clock, nowMs)) return true;
    this.doubt('clock_jump');
    this.terms.renewNow(this);
    return false;
  }

  /** May work in flight go on? Throws if not. */
  assertHeld(): void {
    // Asking this first notices a jump of the clock, and sends the renewal that it calls for.
    if (this.isHeld()) return;
    if (this.#handedIn || this.isOver || !this.#insideDeadline()) throw this.lostError();
    if (this.remainingMs() > 0) return;
    // The host may have slept past the deadline while the monotonic clock stood still. Fail closed; the renewal that was
    // sent says in a moment whether the key is still ours.
    const byMs = Math.abs(jumpMs(this.#confirmed, this.terms.clock));
    throw new LeaseUncertainError({ key: this.key, fence: this.fence, jumpMs: byMs });
  }

  /** Until the deadline; 0 when it is over, or when the clocks disagree about that: see `base/deadline.ts`. */
  remainingMs(): number {
    if (this.#handedIn || this.isOver || !this.#insideDeadline()) return 0;
    return remainingMs(this.#confirmed, this.terms.timings, this.terms.clock);
  }

  /** What `remainingMs` is worked out from: for another process of this host, which acts under this tenure. */
  get deadline(): Deadline {
    const { validMs, jumpMs: toleratedMs } = this.terms.timings;
    const isGood = !this.#handedIn && !this.isOver;
    return { ...this.#confirmed, validMs: isGood ? validMs : 0, jumpMs: toleratedMs };
  }

  /** Fires when the tenure is over, or its work is asked to stop. Made on first use: most tenures never need one. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      this.#insideDeadline();
      if (this.isOver || this.#handedIn) this.#controller.abort(this.lostError());
    }
    return this.#controller.signal;
  }

  /** Asks the work to stop while the tenure still covers it. */
  recall(reason: Error): void {
    this.#controller ??= new AbortController();
    this.#controller.abort(reason);
  }

  /** The store has confirmed a request sent at `confirmed`. */
  confirm(confirmed: Confirmation): void {
    // An answer that comes after the deadline never resurrects: somebody may have seen the tenure as lost already.
    if (this.isOver || !this.#insideDeadline()) return;
    this.#confirmed = confirmed;
    if (this.#state !== 'uncertain') return;
    this.#state = 'held';
    this.terms.events.emit('lease.confirmed', this.facts);
  }

  /** A renewal failed, or the clocks disagree. One failure never surrenders a lease inside its deadline. */
  doubt(reason: DoubtReason): void {
    if (this.#state !== 'held' || !this.#insideDeadline()) return;
    this.#state = 'uncertain';
    this.terms.events.emit('lease.uncertain', {
      ...this.facts,
      reason,
      remainingMs: this.deadlineMs - this.terms.clock.monotonicMs(),
    });
  }

  /** The deadline has passed, or the store names somebody else, or can not tell. */
  lose(reason: LossReason, cause?: Error): void {
    if (this.isOver) return;
    this.#lossReason = reason;
    this.#lossCause = cause;
    this.#end('lost');
    const { clock, events, timings } = this.terms;
    // Timers of a process that stood still are late, and so is this.
    const lateMs = Math.max(0, elapsedMs(this.#confirmed, timings, clock) - timings.validMs);
    events.emit('lease.lost', { ...this.facts, reason, heldForMs: this.heldForMs, lateMs });
    this.#controller?.abort(this.lostError());
    this.terms.onLost(this, reason);
  }

  /** The holder lets go: no new work from here on. False if there is nothing left to let go. */
  beginRelease(): boolean {
    if (this.isOver || !this.#insideDeadline() || this.#state === 'releasing') return false;
    this.#state = 'releasing';
    if (this.terms.events.hasListener('lease.releasing')) {
      this.terms.events.emit('lease.releasing', this.facts);
    }
    return true;
  }

  /** The store is about to be told: from now on the key may be another's at any moment. */
  handIn(): void {
    this.#handedIn = true;
    this.#controller?.abort(this.lostError());
  }

  /** The store has been told, or the key is left to run out. */
  endRelease(): void {
    if (this.isOver) return;
    if (this.#state !== 'releasing')
      throw new Error(`a tenure can not go from ${this.#state} to released`);
    this.#end('released');
    this.#controller?.abort(this.lostError());
  }

  /** The work this tenure covered has stopped: the same holder may have the key anew. */
  settle(): void {
    if (this.#settled) return;
    this.#settled = true;
    for (const run of this.#onSettled ?? []) run();
    this.#onSettled = null;
  }

  get isSettled(): boolean {
    return this.#settled;
  }

  /**
   * How long the same holder has to wait yet for its work to settle. Where nothing is known of work, that of a lost tenure
   * counts as settled at its deadline: until then it was good for that.
   */
  unsettledForMs(): number {
    if (this.#settled) return 0;
    if (this.untilReleased || this.state !== 'lost') return Number.POSITIVE_INFINITY;
    return Math.max(0, this.deadlineMs - this.terms.clock.monotonicMs());
  }

  onSettled(run: () => void): void {
    if (this.#settled) {
      run();
      return;
    }
    this.#onSettled ??= [];
    this.#onSettled.push(run);
  }

  lostError(): LeaseLostError {
    const isLetGo = this.#handedIn || this.#state === 'released';
    const reason = this.#lossReason ?? (isLetGo ? 'released' : 'expired');
    const options = this.#lossCause && { cause: this.#lossCause };
    return new LeaseLostError({ ...this.facts, reason, heldForMs: this.heldForMs }, options);
  }

  /** Reads the clock, and makes the end known to whoever listens if this is the first to see it. */
  #insideDeadline(nowMs: number = this.terms.clock.monotonicMs()): boolean {
    if (nowMs < this.deadlineMs) return true;
    // What has been handed in ends by the store's answer, not by the clock.
    if (!this.#handedIn) this.lose('expired');
    return false;
  }

  #end(state: 'lost' | 'released'): void {
    this.#endedAtMs = this.terms.clock.monotonicMs();
    this.#state = state;
  }
}
