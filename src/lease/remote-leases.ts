/**
 * Leases of holders in other programs, which reach the store through this process over HTTP.
 *
 * This process asks the store for them and keeps nothing: it renews no such lease, and any other
 * process can serve the holder's next request. So the log of a lease may come from several
 * processes, and the holder itself counts until when it may act: from the moment at which it *sent*
 * the last request that was confirmed.
 *
 * A holder is known by its name and its fence together. Repeating a renewal or a release with both
 * is safe. Repeating an acquire grants the key again, with a new fence.
 */
import type { Duration } from '../core/duration.ts';
import { ClosedError, LeaseNotHeldError } from '../core/errors.ts';
import type { LeaseFacts } from '../core/events.ts';
import { checkHolder, checkKey } from '../core/ids.ts';
import type { ReadReply } from '../store/port/lease-store.ts';
import type { Runtime } from '../store/runtime.ts';
import { checkFence } from './fence.ts';
import type { AcquireResult, Leases } from './leases.ts';
import type { AcquireOptions } from './options.ts';
import { LEASE_CLASSES } from './timings.ts';

const { keyspace, claimWindowMs } = LEASE_CLASSES.lease;

/** One lease of one holder, by its fence. */
export interface RemoteLease {
  readonly key: string;
  readonly holder: string;
  readonly fence: number;
}

export interface RemoteGrant extends RemoteLease {
  /** How long the lease lasts in the store, from when it received the request. */
  readonly ttlMs: number;
  /** PostgreSQL: the statement that ties a transaction of the holder to the lease. */
  readonly guardSql?: string | undefined;
}

/** Of a holder elsewhere, which chooses its name. `signal` fires when it hangs up. */
export interface RemoteAcquireOptions {
  readonly holder: string;
  readonly ttl?: Duration | undefined;
  readonly wait?: Duration | undefined;
  readonly fenceFloor?: number | undefined;
  readonly signal: AbortSignal;
}

export class RemoteLeases {
  readonly #rt: Runtime;
  readonly #leases: Leases;

  constructor(rt: Runtime, leases: Leases) {
    this.#rt = rt;
    this.#leases = leases;
  }

  /**
   * Acquires the key for the holder, or says who has it. A grant that comes after the holder has
   * hung up is released again.
   */
  async acquire(
    key: string,
    options: RemoteAcquireOptions,
  ): Promise<RemoteGrant | Extract<AcquireResult, { ok: false }>> {
    const { holder, ttl, wait, fenceFloor, signal } = options;
    const acquire: AcquireOptions = { holder, signal };
    if (ttl !== undefined) acquire.ttl = ttl;
    if (wait !== undefined) acquire.wait = wait;
    if (fenceFloor !== undefined) acquire.fenceFloor = fenceFloor;
    const { ttlMs } = this.#leases.check(acquire);
    const result = await this.#leases.acquire(key, acquire);
    if (!result.ok) return result;
    const { lease } = result;
    const { fence } = lease;
    if (signal.aborted) {
      await lease.release();
      throw signal.reason;
    }
    // From here on the holder keeps the lease, not this process.
    lease.concede(holder);
    const guardSql = this.#rt.store.guard?.sql(keyspace + key, fence);
    return { key, holder, fence, ttlMs, guardSql };
  }

  /** Throws `LEASE_NOT_HELD` unless the store names this holder and this fence. */
  async renew(lease: RemoteLease, ttl?: Duration): Promise<RemoteGrant> {
    checkRemote(lease);
    const timings = this.#leases.check(ttl === undefined ? {} : { ttl });
    const { ttlMs, operationTimeoutMs: timeoutMs } = timings;
    const { key, holder, fence } = lease;
    const renewal = { key: keyspace + key, holder, fence };
    const call = { ttlMs, timeoutMs, keepFences: true };
    const [reply] = await this.#rt.store.leases.renew([renewal], call);
    if (reply?.kind === 'failed') throw reply.error;
    // The store renews by holder. A later tenure of the same holder has another fence.
    const seen = await this.#read(key, timeoutMs);
    if (reply?.kind !== 'renewed' || seen.kind !== 'held' || !isOf(lease, seen))
      throw notHeld(lease, seen);
    return { key, holder, fence, ttlMs };
  }

  /** Whether the lease was still held. A repeated release returns false, and changes nothing. */
  async release(lease: RemoteLease): Promise<boolean> {
    checkRemote(lease);
    const { key, holder, fence } = lease;
    const { operationTimeoutMs: timeoutMs } = this.#leases.check({});
    const tenancy = { key: keyspace + key, holder, fence };
    const [reply] = await this.#rt.store.leases.release([tenancy], { timeoutMs });
    if (reply === undefined) throw new ClosedError({ operation: 'release' });
    if (reply.kind === 'failed') throw reply.error;
    if (reply.kind !== 'released') return false;
    this.#rt.events.emit('lease.released', { ...factsOf(lease), heldForMs: null, keptForMs: 0 });
    if (reply.woke) this.#leases.watchFreed('lease', key);
    return true;
  }

  /** Names the successor as holder for two seconds: it acquires the key as itself to claim it. */
  async transfer(lease: RemoteLease, successor: string): Promise<{ windowMs: number }> {
    checkRemote(lease);
    checkHolder(successor, 'successor');
    const { key, holder, fence } = lease;
    const { operationTimeoutMs: timeoutMs } = this.#leases.check({});
    const handover = { key: keyspace + key, holder, fence, successor };
    const call = { windowMs: claimWindowMs, timeoutMs };
    const [reply] = await this.#rt.store.leases.transfer([handover], call);
    if (reply?.kind === 'failed') throw reply.error;
    if (reply?.kind !== 'transferred') throw notHeld(lease, await this.#read(key, timeoutMs));
    this.#rt.events.emit('lease.transferred', { ...factsOf(lease), successor, heldForMs: null });
    return { windowMs: claimWindowMs };
  }

  async #read(key: string, timeoutMs: number): Promise<Exclude<ReadReply, { kind: 'failed' }>> {
    const [reply] = await this.#rt.store.leases.read([keyspace + key], { timeoutMs });
    if (reply === undefined) throw new ClosedError({ operation: 'read' });
    if (reply.kind === 'failed') throw reply.error;
    return reply;
  }
}

function factsOf({ key, holder, fence }: RemoteLease): LeaseFacts {
  return { leaseClass: 'lease', key, holder, fence };
}

function checkRemote({ key, holder, fence }: RemoteLease): void {
  checkKey(key);
  checkHolder(holder);
  checkFence(fence);
}

function isOf(lease: RemoteLease, seen: { holder: string; fence: number }): boolean {
  return seen.holder === lease.holder && seen.fence === lease.fence;
}

function notHeld(lease: RemoteLease, seen: Exclude<ReadReply, { kind: 'failed' }>): Error {
  const current = seen.kind === 'held' ? seen.holder : null;
  const { key, holder, fence } = lease;
  return new LeaseNotHeldError({ key, holder, fence, current, currentFence: seen.fence });
}
