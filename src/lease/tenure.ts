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
 * loop makes them late, so every check reads the clocks itself. While the host sleeps the monotonic clock stands still;
 * a wall clock that has moved on without it is therefore never ignored.
 */
import type { Clock } from '../base/clock.ts';
import { LeaseLostError, LeaseUncertainError, type LossReason } from '../base/errors.ts';
import type { DoubtReason, Emitter } from '../base/events.ts';
import type { LeaseClass } from './classes.ts';
import type { Timings } from './timings.ts';

export type TenureState = 'held' | 'uncertain' | 'releasing' | 'released' | 'lost';

/** When the request was sent that the store has confirmed, on both clocks. One serves a whole batch of tenures. */
export interface Confirmation {
  readonly sentAtMs: number;
  readonly sentAtWallMs: number;
}

export function confirmationNow(clock: Clock): Confirmation {
  return { sentAtMs: clock.monotonicMs(), sentAtWallMs: clock.wallMs() };
}

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
  #state: TenureState = 'held';
  #confirmed: Confirmation;
  #lossReason: LossReason | null = null;
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
    return this.#confirmed.sentAtMs + this.terms.timings.validMs;
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
    if (Math.abs(this.#jumpMs(nowMs)) <= this.terms.timings.jumpMs) return true;
    this.doubt('clock_jump');
    this.terms.renewNow(this);
    return false;
  }

  /** May work in flight go on? Throws if not. */
  assertHeld(): void {
    // Asking this first notices a jump of the clock, and sends the renewal that it calls for.
    if (this.isHeld()) return;
    const nowMs = this.terms.clock.monotonicMs();
    if (this.#handedIn || this.isOver || !this.#insideDeadline(nowMs)) throw this.lostError();
    if (this.#remainingInDoubtMs(nowMs) > 0) return;
    // The host may have slept past the deadline while the monotonic clock stood still. Fail closed; the renewal that was
    // sent says in a moment whether the key is still ours.
    const jumpMs = Math.abs(this.#jumpMs(nowMs));
    throw new LeaseUncertainError({ key: this.key, fence: this.fence, jumpMs });
  }

  /** Until the deadline, by the less hopeful of the two clocks where they disagree; 0 when it is over. */
  remainingMs(): number {
    const nowMs = this.terms.clock.monotonicMs();
    if (this.#handedIn || this.isOver || !this.#insideDeadline(nowMs)) return 0;
    return this.#remainingInDoubtMs(nowMs);
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

  /** The deadline has passed, or the store names somebody else. */
  lose(reason: LossReason): void {
    if (this.isOver) return;
    this.#lossReason = reason;
    this.#end('lost');
    this.terms.events.emit('lease.lost', { ...this.facts, reason, heldForMs: this.heldForMs });
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
    return new LeaseLostError({ ...this.facts, reason, heldForMs: this.heldForMs });
  }

  /** Reads the clock, and makes the end known to whoever listens if this is the first to see it. */
  #insideDeadline(nowMs: number = this.terms.clock.monotonicMs()): boolean {
    if (nowMs < this.deadlineMs) return true;
    // What has been handed in ends by the store's answer, not by the clock.
    if (!this.#handedIn) this.lose('expired');
    return false;
  }

  /** How far the wall clock has moved ahead of the monotonic one since the last confirmation; negative: behind it. */
  #jumpMs(nowMs: number): number {
    const wallElapsedMs = this.terms.clock.wallMs() - this.#confirmed.sentAtWallMs;
    return wallElapsedMs - (nowMs - this.#confirmed.sentAtMs);
  }

  /**
   * Until the deadline, as far as the clocks agree. A wall clock that is ahead may show a sleep, and counts. One that was set
   * back shows nothing: whatever the host has slept is hidden in it, and nothing is left until a renewal says otherwise.
   */
  #remainingInDoubtMs(nowMs: number): number {
    const jumpMs = this.#jumpMs(nowMs);
    const { jumpMs: toleratedMs } = this.terms.timings;
    if (jumpMs < -toleratedMs) return 0;
    const remainingMs = this.deadlineMs - nowMs;
    return jumpMs > toleratedMs ? Math.max(0, remainingMs - jumpMs) : remainingMs;
  }

  #end(state: 'lost' | 'released'): void {
    this.#endedAtMs = this.terms.clock.monotonicMs();
    this.#state = state;
  }
}
