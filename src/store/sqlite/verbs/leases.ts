import { keyspaceOf, type MaxTtls } from '../../port/keyspaces.ts';
import {
  type AcquireCall,
  type AcquireReply,
  type AcquireRequest,
  type Attachment,
  type Handover,
  type KeepAliveCall,
  type KeepAliveReply,
  type LeasePage,
  type LeaseStore,
  type ListCall,
  type ReadReply,
  type ReassertCall,
  type ReassertReply,
  type ReleaseReply,
  type Renewal,
  type RenewCall,
  type RenewReply,
  type RevokeCall,
  type RevokeReply,
  type Tenancy,
  TOMBSTONE,
  type TransferCall,
  type TransferReply,
  type WakeCall,
} from '../../port/lease-store.ts';
import type { Call } from '../../port/store.ts';
import { wakeHint } from '../../port/wake-hint.ts';
import type { LockQueue } from '../file/lock-queue.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import type { StoreClock } from '../file/store-clock.ts';
import { attachLease, buryKeepalive, keepAlive, raiseKeepalive } from '../tables/keepalives.ts';
import {
  deleteLease,
  isOffered,
  keepFence,
  keepFenceLonger,
  type LeaseState,
  leaseState,
  lengthen,
  mint,
  putWaiter,
  removeWaiter,
  setLease,
  setOffer,
  type Waiter,
  waitersOf,
} from '../tables/leases.ts';
import type { RowRetention } from '../tables/row-retention.ts';
import type { LeaseHandover, TxLeases } from './orchestrator-steps.ts';
import type { SqliteSignals } from './signals.ts';

/** A page of a listing has at most so many leases. */
const PAGE = 500;
/** The last character: keys with a prefix lie between `prefix` and `prefix + LAST`. */
const LAST = '\u{10ffff}';

export class SqliteLeases implements LeaseStore, TxLeases {
  readonly #queue: LockQueue;
  readonly #storeClock: StoreClock;
  readonly #signals: SqliteSignals;
  readonly #retention: RowRetention;
  readonly maxTtls?: MaxTtls;

  constructor(
    queue: LockQueue,
    storeClock: StoreClock,
    signals: SqliteSignals,
    retention: RowRetention,
  ) {
    if (storeClock.maxTtls !== null) this.maxTtls = storeClock.maxTtls;
    this.#queue = queue;
    this.#storeClock = storeClock;
    this.#signals = signals;
    this.#retention = retention;
  }

  acquire(requests: readonly AcquireRequest[], call: AcquireCall): Promise<AcquireReply[]> {
    const each = (tx: Tx, request: AcquireRequest) => this.#acquireOne(tx, request, call);
    return this.#queue.write({ operation: 'acquire', items: requests, each, failed }, call);
  }

  renew(tenures: readonly Renewal[], call: RenewCall): Promise<RenewReply[]> {
    const attach = call.attachTo && attaching(call.attachTo, call.ttlMs);
    const each = (tx: Tx, { key, holder, fence }: Renewal): RenewReply => {
      const name = tx.scope + key;
      if (lengthen(tx, name, holder, call.ttlMs)) {
        if (call.keepFences) keepFenceLonger(tx, name);
        return fence === undefined || attach === undefined ? RENEWED : attach(tx, name, fence);
      }
      const { fence: current, revoked, holder: other } = leaseState(tx, name);
      if (other === null) return { kind: 'vanished', fence: current, revoked };
      return { kind: 'other', holder: other, revoked: other === TOMBSTONE };
    };
    return this.#queue.write({ operation: 'renew', items: tenures, each, failed }, call);
  }

  keepAlive(id: string, call: KeepAliveCall): Promise<KeepAliveReply> {
    return this.#queue.writeOne('keep alive', call, (tx) => keepAlive(tx, id, call));
  }

  reassert(tenures: readonly Tenancy[], call: ReassertCall): Promise<ReassertReply[]> {
    const { forgotten, ttlMs } = call;
    const each = (tx: Tx, { key, holder, fence }: Tenancy): ReassertReply => {
      const name = tx.scope + key;
      const state = leaseState(tx, name);
      if (state.holder !== null || state.revoked) return 'refused';
      if (state.fence !== fence && (state.fence > 0 || !forgotten)) return 'refused';
      // The store must stop granting, for every process, before a lost lease is put back.
      if (
        state.fence === 0 &&
        !this.#storeClock.beginQuarantine(tx.connection, keyspaceOf(key), tx.nowMs)
      )
        return 'refused';
      setLease(tx, name, holder, ttlMs);
      if (state.fence === 0) keepFence(tx, name, fence);
      return 'reasserted';
    };
    return this.#queue.write({ operation: 'reassert', items: tenures, each }, call);
  }

  release(tenures: readonly Tenancy[], call: Call): Promise<ReleaseReply[]> {
    const each = (tx: Tx, tenure: Tenancy): ReleaseReply => {
      const name = tx.scope + tenure.key;
      const state = leaseState(tx, name);
      if (!isNamed(state, tenure)) return notHeld(state);
      deleteLease(tx, name);
      // The fence record has expired. A new one is left, in case the clock is set back.
      if (state.fence === 0) keepFence(tx, name, tenure.fence);
      return { kind: 'released', woke: this.#wake(tx, name) > 0 };
    };
    return this.#queue.write({ operation: 'release', items: tenures, each, failed }, call);
  }

  transfer(handovers: readonly Handover[], call: TransferCall): Promise<TransferReply[]> {
    const each = (tx: Tx, handover: Handover): TransferReply => {
      const name = tx.scope + handover.key;
      const state = leaseState(tx, name);
      if (!isNamed(state, handover)) return notHeld(state);
      const floor = handover.fence + 1;
      return { kind: 'transferred', fence: this.handOver(tx, { ...handover, ...call, floor }) };
    };
    return this.#queue.write({ operation: 'transfer', items: handovers, each, failed }, call);
  }

  revoke(key: string, call: RevokeCall): Promise<RevokeReply> {
    return this.#queue.writeOne('revoke', call, (tx): RevokeReply => {
      const name = tx.scope + key;
      const state = leaseState(tx, name);
      const { holder, fence: previous, expiresInMs: mayActForMs } = state;
      const isBarred = holder === TOMBSTONE && !call.force;
      if (holder === null || isBarred || previous !== call.fence) return notHeld(state);
      const fence = mint(tx, name, previous, 0, call.force);
      if (call.force) deleteLease(tx, name);
      else setLease(tx, name, TOMBSTONE, mayActForMs);
      const woke = call.force && this.#wake(tx, name) > 0;
      return { kind: 'revoked', holder, fence, mayActForMs, woke };
    });
  }

  read(keys: readonly string[], call: Call): Promise<ReadReply[]> {
    const each = (tx: Tx, key: string): ReadReply => {
      const { holder, fence, expiresInMs } = leaseState(tx, tx.scope + key);
      if (holder === null) return { kind: 'free', fence };
      return holder === TOMBSTONE
        ? { kind: 'revoked', fence, expiresInMs }
        : { kind: 'held', holder, fence, expiresInMs };
    };
    return this.#queue.read({ operation: 'read', items: keys, each, failed }, call);
  }

  list(prefix: string, call: ListCall): Promise<LeasePage> {
    return this.#queue.readOne('list', call, ({ connection, scope, nowMs }): LeasePage => {
      const from = scope + prefix;
      const after = call.cursor === undefined ? '' : scope + call.cursor;
      const rows = connection.rows<[string, string, number, number | null]>(
        `SELECT l.key, l.holder, max(l.expires, coalesce(a.expires, 0)), f.fence FROM leases l
         LEFT JOIN keepalives a ON a.key = l.keepalive LEFT JOIN fences f ON f.key = l.key AND f.expires > ?
         WHERE l.key >= ? AND l.key < ? AND l.key > ? ORDER BY l.key LIMIT ${PAGE}`,
        nowMs,
        from,
        from + LAST,
        after,
      );
      const leases = rows
        .filter(([, holder, expires]) => expires > nowMs && holder !== TOMBSTONE)
        .map(([name, holder, expires, fence]) => {
          const key = name.slice(scope.length);
          return { key, holder, fence: fence ?? 0, expiresInMs: expires - nowMs };
        });
      const last = rows.length === PAGE ? rows.at(-1)?.[0] : undefined;
      return last === undefined ? { leases } : { leases, cursor: last.slice(scope.length) };
    });
  }

  wakeNext(keys: readonly string[], call: WakeCall): Promise<number[]> {
    const each = (tx: Tx, key: string): number => {
      const name = tx.scope + key;
      if (call.leaving !== undefined) this.#leave(tx, name, call.leaving);
      return leaseState(tx, name).holder === null ? this.#wake(tx, name, call) : 0;
    };
    return this.#queue.write({ operation: 'wake', items: keys, each }, call);
  }

  look(tx: Tx, key: string): LeaseState {
    return leaseState(tx, tx.scope + key);
  }

  handOver(tx: Tx, { key, successor, windowMs, floor = 0 }: LeaseHandover): number {
    const name = tx.scope + key;
    const fence = mint(tx, name, leaseState(tx, name).fence, floor);
    setLease(tx, name, successor, windowMs);
    const era = this.#storeClock.handoverEra(tx.nowMs);
    if (era !== '') setOffer(tx, name, era, fence);
    this.#signals.send(tx, inboxOf(successor), key);
    return fence;
  }

  free(tx: Tx, key: string): number {
    const name = tx.scope + key;
    const fence = mint(tx, name, leaseState(tx, name).fence, 0, true);
    deleteLease(tx, name);
    this.#wake(tx, name);
    return fence;
  }

  /**
   * Whether the key was handed over in this quarantine, and this caller is the successor, or the
   * successor's window is over. The previous holder held the key until the handover, so no other
   * process can have a grant that the file lost.
   */
  #isHandedOver(tx: Tx, key: string, holder: string, state: LeaseState): boolean {
    if (state.holder !== null && state.holder !== holder) return false;
    return isOffered(tx, key, this.#storeClock.handoverEra(tx.nowMs), state.fence);
  }

  #wait(tx: Tx, key: string, waiter: Waiter): void {
    putWaiter(tx, key, waiter);
    this.#signals.beginWait(key);
  }

  #leave(tx: Tx, key: string, inbox: string): void {
    removeWaiter(tx, key, inbox);
    this.#signals.endWait(key);
  }

  /**
   * Sends a wake hint to the first waiters of a key that still subscribe, and returns how many.
   * Each waiter is removed, whether its hint was sent or not.
   */
  #wake(tx: Tx, name: string, { most, apartMs } = { most: 1, apartMs: 0 }): number {
    const key = name.slice(tx.scope.length);
    let woken = 0;
    for (const { inbox, hasExpired } of waitersOf(tx, name)) {
      removeWaiter(tx, name, inbox);
      const hint = wakeHint({ key, inMs: woken * apartMs });
      if (!hasExpired && this.#signals.send(tx, inbox, hint)) woken++;
      if (woken === most) break;
    }
    return woken;
  }

  #acquireOne(tx: Tx, request: AcquireRequest, call: AcquireCall): AcquireReply {
    const { holder, fence: presented, fenceFloor = 0, waitedMs } = request;
    const { ttlMs, inbox } = call;
    const key = tx.scope + request.key;
    const state = leaseState(tx, key);
    const leftMs = this.#storeClock.acquireLeftMs(keyspaceOf(request.key), tx.nowMs);
    if (leftMs > 0 && !this.#isHandedOver(tx, key, holder, state))
      return { kind: 'busy', reason: 'quarantine', holder: '', fence: 0, expiresInMs: leftMs };
    if (state.holder !== null && state.holder !== holder) {
      const { expiresInMs } = state;
      if (waitedMs !== undefined)
        this.#wait(tx, key, { inbox, waitedMs, keptMs: 2 * Math.max(expiresInMs, ttlMs) });
      const reason = state.holder === TOMBSTONE ? 'revoked' : 'held';
      return { kind: 'busy', reason, holder: state.holder, fence: state.fence, expiresInMs };
    }
    this.#retention.removeSome(tx);
    if (state.holder === null) buryKeepalive(tx, key);
    const isRefreshed =
      state.holder !== null && presented !== undefined && state.fence === presented;
    const fence = isRefreshed ? presented : mint(tx, key, state.fence, fenceFloor);
    // A current holder keeps the longer of the two times: this request may be late.
    setLease(tx, key, holder, Math.max(state.expiresInMs, ttlMs));
    this.#signals.endWait(key);
    return { kind: 'granted', fence };
  }
}

const RENEWED: RenewReply = { kind: 'renewed' };

/**
 * Attaches the leases of one call. A long call is several transactions: each raises the version of
 * the keepalive once, and the first that is committed has made it.
 */
function attaching({ id, isNew }: Attachment, ttlMs: number) {
  let latest: Tx | null = null;
  let version: number | undefined;
  let isMade = false;
  return (tx: Tx, name: string, fence: number): RenewReply => {
    if (leaseState(tx, name).fence !== fence) return RENEWED;
    if (tx !== latest) {
      latest = tx;
      version = raiseKeepalive(tx, { id, isNew: isNew && !isMade }, ttlMs);
      tx.afterCommit.push(() => {
        isMade = true;
      });
    }
    if (version === undefined) return RENEWED;
    attachLease(tx, name, id);
    return { kind: 'renewed', version };
  };
}

function failed(error: Error): { kind: 'failed'; error: Error } {
  return { kind: 'failed', error };
}

/** Whether this holder has the lease with this fence. An absent fence record counts as equal. */
function isNamed(state: LeaseState, { holder, fence }: Tenancy): boolean {
  return state.holder === holder && (state.fence === 0 || state.fence === fence);
}

function notHeld({ holder, fence }: LeaseState) {
  return { kind: 'not-held' as const, holder, fence };
}

/** A holder is an instance id, or `<instance id>/…`. The instance subscribes to this topic. */
function inboxOf(holder: string): string {
  return holder.split('/', 1)[0] ?? holder;
}
