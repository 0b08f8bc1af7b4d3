/**
 * One tenure: `(key, holder, fence)`, from its grant to its end. No I/O happens here: `Renewer` and
 * `Releaser` bring the answers of the store, and `Tenure` decides their meaning.
 *
 * **Held.** In: the store granted the key. New work may begin. Out: a renewal fails or the wall
 * clock jumps → uncertain; the holder releases → releasing; the store names another holder, or the
 * deadline passes → lost.
 *
 * **Uncertain.** In: as above. No other holder can have the key yet, so work in flight may continue
 * until the deadline, but no new work begins. Out: a renewal is confirmed → held; the holder
 * releases → releasing; as above → lost.
 *
 * **Releasing.** In: the holder releases. Renewals continue while its work stops; no new work
 * begins. Once the tenure is handed in, work in flight must be over too, because the key may have
 * another holder before the answer comes. Out: the store has answered, or the wait for the work was
 * given up and the key is left to expire → released; as above → lost.
 *
 * **Released**, **Lost.** Ends. A tenure never comes back: a late answer to a renewal changes
 * nothing.
 *
 * The deadline is `when the last confirmed request was SENT + ttl − guard`, on the monotonic clock,
 * and never later than `maxHold` after the request that was granted: from there on no renewal
 * helps.
 * The store counts its TTL from a later moment, so it expires the key after our deadline. Timers
 * only announce the end promptly: a blocked event loop makes them late, so every check reads the
 * clocks itself. If the clocks disagree, `core/validity.ts` decides.
 */
import { assert } from '../core/assert.ts';
import { LeaseLostError, LeaseUncertainError, type LossReason } from '../core/errors.ts';
import type { DoubtReason } from '../core/events.ts';
import type { BaseRuntime } from '../core/runtime.ts';
import type { TimerEntry } from '../core/timer-heap.ts';
import {
  type Confirmation,
  type Deadline,
  elapsedMs,
  endsAtMs,
  isInDoubt,
  jumpMs,
  remainingMs,
  type Validity,
} from '../core/validity.ts';
import type { Claim } from './acquisition.ts';
import type { KeepaliveState } from './keepalive.ts';
import type { Renewer } from './renewer.ts';
import type { LeasePolicy } from './timings.ts';

export type TenureState = 'held' | 'uncertain' | 'releasing' | 'released' | 'lost';

/** The requests of a tenure. `handed-in`: its release is being sent, so no renewal may follow. */
type RequestPhase = 'idle' | 'renewing' | 'handed-in';

export class Tenure implements Claim, TimerEntry {
  readonly policy: LeasePolicy;
  readonly key: string;
  readonly storeKey: string;
  readonly holder: string;
  readonly fence: number;
  readonly acquiredAtMs: number;
  dueAtMs = 0;
  index = -1;
  /** When a renewal last told the store to keep its fence record. */
  fenceKeptAtMs: number;
  /** The keepalive that the store has attached the lease to; null while its row is renewed. */
  keepalive: KeepaliveState | null = null;
  /** A request to attach the lease was sent. */
  mayBeAttached = false;
  /** The store has confirmed that it does not have this lease any more. */
  hasLeftStore = false;
  /** The work may continue after a loss, until the lease is released. */
  untilReleased = false;
  /** Called when the tenure was released, and no waiter was woken for its key. */
  onFreed: (() => void) | undefined;
  readonly #rt: BaseRuntime;
  readonly #renewer: Pick<Renewer, 'renew' | 'renewNow' | 'remove'>;
  #state: TenureState = 'held';
  #requests: RequestPhase = 'idle';
  #confirmed: Confirmation;
  #lossReason: LossReason | null = null;
  #lossCause: Error | undefined;
  #endedAtMs = 0;
  #controller: AbortController | null = null;
  #hasWorkEnded = false;
  #onWorkEnded: (() => void)[] | null = null;

  constructor(
    rt: BaseRuntime,
    renewer: Pick<Renewer, 'renew' | 'renewNow' | 'remove'>,
    { policy, key, storeKey, holder }: Claim,
    { fence, sent }: { fence: number; sent: Confirmation },
  ) {
    this.policy = policy;
    this.key = key;
    this.storeKey = storeKey;
    this.holder = holder;
    this.fence = fence;
    this.acquiredAtMs = sent.sentAtMs;
    this.fenceKeptAtMs = sent.sentAtMs;
    this.#rt = rt;
    this.#renewer = renewer;
    this.#confirmed = sent;
  }

  get state(): TenureState {
    this.#checkDeadline();
    return this.#state;
  }

  /** This tenure as the store knows it. */
  get tenancy(): { key: string; holder: string; fence: number } {
    return { key: this.storeKey, holder: this.holder, fence: this.fence };
  }

  /** This tenure as events show it. */
  get facts(): { leaseClass: string; key: string; holder: string; fence: number } {
    const { key, holder, fence } = this;
    return { leaseClass: this.policy.leaseClass.name, key, holder, fence };
  }

  get acquiredAt(): Date {
    const { clock } = this.#rt;
    return new Date(clock.wallMs() - (clock.monotonicMs() - this.acquiredAtMs));
  }

  get lastRenewedAt(): Date {
    return new Date(this.#confirmed.sentAtWallMs);
  }

  get deadlineMs(): number {
    const { timings, maxHoldMs } = this.policy;
    const endsMs = endsAtMs(this.#confirmed, timings);
    return maxHoldMs === undefined ? endsMs : Math.min(endsMs, this.#holdEndsAtMs);
  }

  get heldForMs(): number {
    const hasEnded = this.isOver || this.isHandedIn;
    const untilMs = hasEnded ? this.#endedAtMs : this.#rt.clock.monotonicMs();
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
    const { clock } = this.#rt;
    const nowMs = clock.monotonicMs();
    if (!this.#checkDeadline(nowMs)) return false;
    if (!isInDoubt(this.#confirmed, this.policy.timings, clock, nowMs)) return true;
    this.doubt('clock_jump');
    this.#renewer.renewNow(this);
    return false;
  }

  /** May work in flight continue? Throws if not. */
  assertHeld(): void {
    // `isHeld` also notices a jump of the clock, and sends the renewal that the jump calls for.
    if (this.isHeld()) return;
    if (this.isHandedIn || this.isOver || !this.#checkDeadline()) throw this.lostError();
    if (this.remainingMs() > 0) return;
    // The host may have slept past the deadline while the monotonic clock stood still. Fail closed:
    // the answer to the renewal says in a moment whether this holder still has the key.
    const byMs = Math.abs(jumpMs(this.#confirmed, this.#rt.clock));
    throw new LeaseUncertainError({ key: this.key, fence: this.fence, jumpMs: byMs });
  }

  /**
   * Until the deadline; 0 when it has passed, or when the clocks disagree: see `core/validity.ts`.
   */
  remainingMs(): number {
    if (this.isHandedIn || this.isOver) return 0;
    const { clock } = this.#rt;
    const nowMs = clock.monotonicMs();
    if (!this.#checkDeadline(nowMs)) return 0;
    return remainingMs(this.#confirmed, this.#validity, clock, nowMs);
  }

  /**
   * The facts behind `remainingMs`, for another process of this host that acts under this tenure.
   */
  get deadline(): Deadline {
    const { validMs, jumpMs: toleratedMs } = this.#validity;
    const isGood = !this.isHandedIn && !this.isOver;
    return { ...this.#confirmed, validMs: isGood ? validMs : 0, jumpMs: toleratedMs };
  }

  /**
   * Fires when the tenure is over, or its work is asked to stop. Made on first use: most tenures
   * need none.
   */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      this.#checkDeadline();
      if (this.isOver || this.isHandedIn) this.#controller.abort(this.lostError());
    }
    return this.#controller.signal;
  }

  /** Asks the work to stop while the tenure still covers it. */
  stopWork(reason: Error): void {
    this.#controller ??= new AbortController();
    this.#controller.abort(reason);
  }

  /** Renews at once; see `Renewer.renew`. */
  renew(): Promise<boolean> {
    return this.#renewer.renew(this);
  }

  get isRenewing(): boolean {
    return this.#requests === 'renewing';
  }

  /** The release is being sent, or was sent. */
  get isHandedIn(): boolean {
    return this.#requests === 'handed-in';
  }

  beginRenewal(): void {
    assert(
      this.#requests === 'idle',
      'a tenure has one renewal at a time, and none after its release',
    );
    this.#requests = 'renewing';
  }

  /** The renewal was answered, or failed. */
  endRenewal(): void {
    if (this.isHandedIn) return; // The release decides, not this answer.
    assert(this.#requests === 'renewing', 'a renewal is answered only after it was sent');
    this.#requests = 'idle';
  }

  /** The store has confirmed a request, which was learnt at `nowMs`. */
  confirm(sent: Confirmation, nowMs: number = this.#rt.clock.monotonicMs()): void {
    // An answer after the deadline never resurrects: a check may have reported the tenure as lost
    // already.
    if (this.isOver || !this.#checkDeadline(nowMs)) return;
    // Requests for a row and for a keepalive may be answered in another order than sent.
    if (sent.sentAtMs >= this.#confirmed.sentAtMs) this.#confirmed = sent;
    if (this.#state !== 'uncertain') return;
    this.#state = 'held';
    this.#rt.events.emit('lease.confirmed', this.facts);
  }

  /**
   * A renewal failed, or the clocks disagree. One failure never ends a tenure before its deadline.
   */
  doubt(reason: DoubtReason): void {
    if (this.#state !== 'held' || !this.#checkDeadline()) return;
    this.#state = 'uncertain';
    this.#rt.events.emit('lease.uncertain', {
      ...this.facts,
      reason,
      remainingMs: this.deadlineMs - this.#rt.clock.monotonicMs(),
    });
  }

  /** The deadline has passed: no renewal came in time, or the tenure has lasted for `maxHold`. */
  expire(): void {
    this.lose(this.#rt.clock.monotonicMs() < this.#holdEndsAtMs ? 'expired' : 'max_hold');
  }

  /** The deadline has passed, or the store names another holder, or no longer counts. */
  lose(reason: LossReason, cause?: Error): void {
    if (this.isOver) return;
    this.#lossReason = reason;
    this.#lossCause = cause;
    this.#end('lost');
    const { clock, events } = this.#rt;
    const validity = this.#validity;
    // The timers of a process that stood still are late, and so is this event.
    const lateMs = Math.max(0, elapsedMs(this.#confirmed, validity, clock) - validity.validMs);
    events.emit('lease.lost', { ...this.facts, reason, heldForMs: this.heldForMs, lateMs });
    this.#controller?.abort(this.lostError());
    this.#renewer.remove(this);
  }

  /**
   * The holder releases: no new work from here on. False if the tenure is over or releasing
   * already.
   */
  beginRelease(): boolean {
    if (this.isOver || !this.#checkDeadline() || this.#state === 'releasing') return false;
    this.#state = 'releasing';
    if (this.#rt.events.hasListener('lease.releasing')) {
      this.#rt.events.emit('lease.releasing', this.facts);
    }
    return true;
  }

  /** The release is about to be sent: from now on another holder may have the key at any moment. */
  handIn(): void {
    assert(this.#state === 'releasing', 'a tenure is releasing when it is handed in');
    assert(!this.isHandedIn, 'a tenure is handed in once');
    this.#requests = 'handed-in';
    this.#endedAtMs = this.#rt.clock.monotonicMs();
    this.#controller?.abort(this.lostError());
  }

  /** The store has answered the release, or the key is left to expire. */
  endRelease(): void {
    if (this.isOver) return;
    assert(this.#state === 'releasing', 'a tenure is releasing before it is released');
    this.#end('released');
    this.#controller?.abort(this.lostError());
  }

  /** The work under this tenure has stopped: the same holder may be granted the key again. */
  endWork(): void {
    if (this.#hasWorkEnded) return;
    this.#hasWorkEnded = true;
    for (const run of this.#onWorkEnded ?? []) run();
    this.#onWorkEnded = null;
  }

  onWorkEnded(run: () => void): void {
    if (this.#hasWorkEnded) {
      run();
      return;
    }
    // Not a list that grows: that has room for seventeen, and most tenures have one.
    if (this.#onWorkEnded === null) this.#onWorkEnded = [run];
    else this.#onWorkEnded.push(run);
  }

  /**
   * How long the same holder has to wait at most until its work has ended. Without `untilReleased`,
   * the work of a lost tenure counts as ended at the deadline.
   */
  workLeftMs(): number {
    if (this.#hasWorkEnded) return 0;
    if (this.untilReleased || this.state !== 'lost') return Number.POSITIVE_INFINITY;
    return Math.max(0, this.deadlineMs - this.#rt.clock.monotonicMs());
  }

  lostError(): LeaseLostError {
    const isReleased = this.isHandedIn || this.#state === 'released';
    const reason = this.#lossReason ?? (isReleased ? 'released' : 'expired');
    const options = this.#lossCause && { cause: this.#lossCause };
    return new LeaseLostError({ ...this.facts, reason, heldForMs: this.heldForMs }, options);
  }

  /**
   * Whether the deadline is ahead. The first check after it ends the tenure, without waiting for a
   * timer.
   */
  #checkDeadline(nowMs: number = this.#rt.clock.monotonicMs()): boolean {
    if (nowMs < this.deadlineMs) return true;
    // A tenure that is handed in ends by the store's answer, not by the clock.
    if (!this.isHandedIn) this.expire();
    return false;
  }

  /** When the tenure has lasted for as long as it may; Infinity without a limit. */
  get #holdEndsAtMs(): number {
    return this.acquiredAtMs + (this.policy.maxHoldMs ?? Number.POSITIVE_INFINITY);
  }

  /** How long the last confirmation counts. */
  get #validity(): Validity {
    const { timings, maxHoldMs } = this.policy;
    if (maxHoldMs === undefined) return timings;
    const holdLeftMs = Math.max(0, this.#holdEndsAtMs - this.#confirmed.sentAtMs);
    return { validMs: Math.min(timings.validMs, holdLeftMs), jumpMs: timings.jumpMs };
  }

  #end(state: 'lost' | 'released'): void {
    if (!this.isHandedIn) this.#endedAtMs = this.#rt.clock.monotonicMs();
    this.#state = state;
  }
}
