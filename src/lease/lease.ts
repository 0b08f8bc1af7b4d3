/**
 * What the holder of a lease has in its hands.
 *
 * **What a lease does not promise.** That no other process acts at this instant: a process can be
 * stopped between a check and the write that follows it, and wake when another holder has the
 * lease. No lease on any store can prevent that. Two things contain it. The lease ends *here*
 * before it ends in the store, and every check reads the clocks itself: a process that checks
 * before it acts is never late by more than one step. And each tenure has a `fence` higher than all
 * before it: a resource that remembers the highest fence it has seen, and refuses lower ones, is
 * safe from that one step too.
 *
 * After the store has lost data that it had acknowledged (a failover to a replica that lagged, a
 * flush), two processes may hold a lease for up to one TTL if quarantine is off or cannot see the
 * loss. Fences grow even then.
 */

import { GuardNotOfferedError, type LossReason } from '../core/errors.ts';
import type { Deadline } from '../core/validity.ts';
import type { Store } from '../store/port/store.ts';
import { type GuardableTransaction, runGuard } from './guard.ts';
import type {
  ReleaseOptions,
  ReleaseResult,
  Releaser,
  TransferOptions,
  TransferResult,
} from './release.ts';
import type { Tenure, TenureState } from './tenure.ts';

export class Lease implements AsyncDisposable {
  readonly #tenure: Tenure;
  readonly #releaser: Releaser;
  readonly #store: Pick<Store, 'name' | 'guard'>;
  /** A lease is released once, however often that is asked for. */
  #release: Promise<ReleaseResult> | null = null;

  constructor(tenure: Tenure, releaser: Releaser, store: Pick<Store, 'name' | 'guard'>) {
    this.#tenure = tenure;
    this.#releaser = releaser;
    this.#store = store;
  }

  get key(): string {
    return this.#tenure.key;
  }

  get holder(): string {
    return this.#tenure.holder;
  }

  /** Proves this tenure to the resource it protects: higher than every earlier fence of the key. */
  get fence(): number {
    return this.#tenure.fence;
  }

  get state(): TenureState {
    return this.#tenure.state;
  }

  /** Why the lease was lost; null if it was not. */
  get lossReason(): LossReason | null {
    return this.#tenure.lossReason;
  }

  /** When the request that was granted was sent. */
  get acquiredAt(): Date {
    return this.#tenure.acquiredAt;
  }

  /** When the last request that the store confirmed was sent. */
  get lastRenewedAt(): Date {
    return this.#tenure.lastRenewedAt;
  }

  /**
   * Fires when the lease is over. Pass it to `fetch` and `spawn`, and losing the lease stops them.
   */
  get signal(): AbortSignal {
    return this.#tenure.signal;
  }

  /** May **new** work begin? Synchronous, no I/O, reads the clocks itself. */
  isHeld(): boolean {
    return this.#tenure.isHeld();
  }

  /**
   * May work **in flight** continue? Throws `LEASE_LOST` or `LEASE_UNCERTAIN` if not. Call it
   * before every step that matters.
   */
  assertHeld(): void {
    this.#tenure.assertHeld();
  }

  /**
   * PostgreSQL: ties a transaction of yours to this lease. Call it first in the transaction. It
   * throws `FENCE_STALE` if the lease is over. Otherwise no other holder is granted the lease until
   * your transaction has ended, so a process that has lost its lease cannot commit.
   */
  async guard(transaction: GuardableTransaction): Promise<void> {
    const sql = this.guardSql();
    if (this.#tenure.state === 'lost') this.assertHeld();
    await runGuard(transaction, sql, { key: this.key, fence: this.fence });
  }

  /** The statement that `guard` runs, for clients that `guard` does not know. */
  guardSql(): string {
    const { guard, name } = this.#store;
    if (guard === undefined) throw new GuardNotOfferedError({ store: name, key: this.key });
    return guard.sql(this.#tenure.storeKey, this.fence);
  }

  /** How long this lease is valid without another renewal. */
  remainingMs(): number {
    return this.#tenure.remainingMs();
  }

  /** The facts behind `remainingMs`. A supervisor on this host gets the same answer from them. */
  get deadline(): Deadline {
    return this.#tenure.deadline;
  }

  /**
   * Renews at once, and returns whether the store confirmed it. Leases are also renewed
   * automatically.
   */
  renew(): Promise<boolean> {
    return this.#tenure.renew();
  }

  /**
   * Releases the lease. Throws for invalid options, never for an error of the store: a key that
   * could not be released is released later, or expires.
   */
  release(options: ReleaseOptions = {}): Promise<ReleaseResult> {
    return this.#release ?? this.#once(this.#releaser.release(this.#tenure, options));
  }

  /** Hands the key to a successor, which claims it by acquiring it as that holder. */
  async transfer(successor: string, options: TransferOptions = {}): Promise<TransferResult> {
    if (this.#release !== null) return { transferred: false, reason: 'released' };
    const transfer = this.#releaser.transfer(this.#tenure, successor, options);
    void this.#once(
      transfer.then((result) => {
        return { released: false, reason: result.transferred ? 'released' : result.reason };
      }),
    );
    return transfer;
  }

  /**
   * Ends the lease here: the store names the successor already, because another request handed the
   * key over.
   */
  concede(successor: string): void {
    this.#releaser.concede(this.#tenure, successor);
    this.#release ??= Promise.resolve({ released: false, reason: 'released' });
  }

  /**
   * Stops waiting for the work of a lease that is being released: its key is left to expire, as
   * after `within`.
   */
  giveUp(): void {
    this.#releaser.giveUp(this.#tenure);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Remembers the release, unless it was refused for its options. */
  #once(release: Promise<ReleaseResult>): Promise<ReleaseResult> {
    this.#release = release;
    release.catch(() => {
      this.#release = null;
    });
    return release;
  }
}

/** Several leases that were acquired together: all of them, or none. */
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

  /** Fires when the first of the leases is over. */
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

  /** Ties a transaction of yours to all leases of the set, as `Lease.guard` does to one. */
  async guard(transaction: GuardableTransaction): Promise<void> {
    for (const lease of this.leases) await lease.guard(transaction);
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
