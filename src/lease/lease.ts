/**
 * What a holder of a lease has in hand.
 *
 * **What a lease does not promise.** That nobody else acts at this instant: a process can be stopped between a check and
 * the write that follows it, and wake when the lease is long another's. No lease on any store can prevent that. Two
 * things contain it. The lease ends *here* before it ends in the store, and every check looks at the clocks itself; so
 * who asks before acting never acts late by more than one step. And each tenure has a `fence` higher than all before
 * it: a resource that remembers the highest fence it has seen, and refuses lower ones, is safe from that one step too.
 *
 * After the store has lost data that it had acknowledged (a failover to a replica that lagged, a flush), two may hold for
 * up to one TTL where quarantine is off or can not see it. Fences go on growing even then.
 */

import type { Duration } from '../core/duration.ts';
import type { LossReason } from '../core/errors.ts';
import type { Deadline } from '../core/validity.ts';
import type { Tenure, TenureState } from './tenure.ts';

export interface ReleaseOptions {
  /** Resolves when the work has stopped; until then the lease is kept and renewed. Default: it has stopped. */
  settled?: Promise<unknown>;
  /** How long to wait for that. Work that has not stopped by then is never handed over: its key is left to run out. */
  within?: Duration;
}

export interface TransferOptions extends ReleaseOptions {
  /** How long the successor has to claim; default that of the lease's class. */
  window?: Duration;
}

export type ReleaseResult =
  | { readonly released: true }
  /** `unsettled`: the work did not stop. `unknown`: the store did not answer; the key runs out, or is given back later. */
  | {
      readonly released: false;
      readonly reason: LossReason | 'unsettled' | 'unknown' | 'released';
    };

export type TransferResult =
  | { readonly transferred: true; readonly fence: number }
  | {
      readonly transferred: false;
      readonly reason: LossReason | 'unsettled' | 'unknown' | 'released';
    };

/** Who lets go of tenures. */
export interface LettingGo {
  release(tenure: Tenure, options: ReleaseOptions): Promise<ReleaseResult>;
  transfer(tenure: Tenure, successor: string, options: TransferOptions): Promise<TransferResult>;
  renew(tenure: Tenure): Promise<boolean>;
  concede(tenure: Tenure, successor: string): void;
  giveUp(tenure: Tenure): void;
}

export class Lease implements AsyncDisposable {
  readonly #tenure: Tenure;
  readonly #desk: LettingGo;
  /** Letting go happens once, however often it is asked for. */
  #lettingGo: Promise<ReleaseResult> | null = null;

  constructor(tenure: Tenure, desk: LettingGo) {
    this.#tenure = tenure;
    this.#desk = desk;
  }

  get key(): string {
    return this.#tenure.key;
  }

  get holder(): string {
    return this.#tenure.holder;
  }

  /** Proof of this tenure for whatever it protects: higher than that of every tenure of this key before it. */
  get fence(): number {
    return this.#tenure.fence;
  }

  get state(): TenureState {
    return this.#tenure.state;
  }

  /** Why it is over, if it was lost. */
  get lossReason(): LossReason | null {
    return this.#tenure.lossReason;
  }

  /** When the request was sent that this tenure was granted for. */
  get acquiredAt(): Date {
    return this.#tenure.acquiredAt;
  }

  /** When the last request was sent that the store has confirmed. */
  get lastRenewedAt(): Date {
    return this.#tenure.lastRenewedAt;
  }

  /** Fires when the lease is over. Pass it to `fetch` and `spawn`, and losing the lease stops them. */
  get signal(): AbortSignal {
    return this.#tenure.signal;
  }

  /** May **new** work begin? Synchronous, no I/O, reads the clocks itself. */
  isHeld(): boolean {
    return this.#tenure.isHeld();
  }

  /** May work **in flight** go on? Throws `LEASE_LOST` or `LEASE_UNCERTAIN` if not. Ask before every step that matters. */
  assertHeld(): void {
    this.#tenure.assertHeld();
  }

  /** How long this lease is good for without another renewal. */
  remainingMs(): number {
    return this.#tenure.remainingMs();
  }

  /** What `remainingMs` is worked out from: a supervisor of this host that has it gets the same answer. */
  get deadline(): Deadline {
    return this.#tenure.deadline;
  }

  /** Asks the store for another TTL at once, and says whether it was granted; before its time is up it is renewed by itself. */
  renew(): Promise<boolean> {
    return this.#desk.renew(this.#tenure);
  }

  /**
   * Lets go. Throws for options that make no sense, never for what the store does: what it could not be told is given
   * back later, or runs out.
   */
  release(options: ReleaseOptions = {}): Promise<ReleaseResult> {
    return this.#lettingGo ?? this.#once(this.#desk.release(this.#tenure, options));
  }

  /** Hands the key to a successor, which claims it by acquiring as that holder. */
  async transfer(successor: string, options: TransferOptions = {}): Promise<TransferResult> {
    if (this.#lettingGo !== null) return { transferred: false, reason: 'released' };
    const transfer = this.#desk.transfer(this.#tenure, successor, options);
    void this.#once(
      transfer.then((result) => {
        return { released: false, reason: result.transferred ? 'released' : result.reason };
      }),
    );
    return transfer;
  }

  /** The store names the successor already: a larger step, of which handing over was a part, has seen to that. */
  concede(successor: string): void {
    this.#desk.concede(this.#tenure, successor);
    this.#lettingGo ??= Promise.resolve({ released: false, reason: 'released' });
  }

  /** Waits no longer for the work of a lease that is being let go of: its key is left to run out, as after `within`. */
  giveUp(): void {
    this.#desk.giveUp(this.#tenure);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Remembers the letting go, unless it was refused for its options: then nothing has happened yet. */
  #once(lettingGo: Promise<ReleaseResult>): Promise<ReleaseResult> {
    this.#lettingGo = lettingGo;
    lettingGo.catch(() => {
      this.#lettingGo = null;
    });
    return lettingGo;
  }
}

/** Several leases taken together: all of them, or none. */
export class LeaseSet implements AsyncDisposable {
  readonly leases: readonly Lease[];
  #signal: AbortSignal | null = null;

  constructor(leases: readonly Lease[]) {
    this.leases = leases;
  }

  /** The lease of one key of the set. */
  get(key: string): Lease | undefined {
    return this.leases.find((lease) => lease.key === key);
  }

  /** Fires when the first of them is over. */
  get signal(): AbortSignal {
    this.#signal ??= AbortSignal.any(this.leases.map(({ signal }) => signal));
    return this.#signal;
  }

  isHeld(): boolean {
    return this.leases.every((lease) => lease.isHeld());
  }

  assertHeld(): void {
    for (const lease of this.leases) lease.assertHeld();
  }

  remainingMs(): number {
    return Math.min(...this.leases.map((lease) => lease.remainingMs()));
  }

  async release(options: ReleaseOptions = {}): Promise<ReleaseResult[]> {
    return Promise.all(this.leases.map((lease) => lease.release(options)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
