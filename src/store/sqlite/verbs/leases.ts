import { keyspaceOf, type MaxTtls } from '../../port/keyspaces.ts';
import {
  type AcquireCall,
  type AcquireReply,
  type AcquireRequest,
  type Handover,
  type Holding,
  type LeasePage,
  type LeaseStore,
  type ListCall,
  type ReadReply,
  type ReassertCall,
  type ReassertReply,
  type ReleaseReply,
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
import type { LockQueue } from '../file/lock-queue.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import type { StoreClock } from '../file/store-clock.ts';
import type { ExpiredRows } from '../tables/expired-rows.ts';
import {
  deleteLease,
  isOffered,
  keepFence,
  keepFenceLonger,
  type LeaseState,
  leaseState,
  lengthen,
  mint,
  setLease,
  setOffer,
} from '../tables/leases.ts';
import type { Names } from '../tables/names.ts';
import type { LeaseHandover, TenureLeases } from '../tables/tenure-leases.ts';
import type { Waiters } from '../tables/waiters.ts';
import type { SqliteSignals } from './signals.ts';

/** How many leases one page of a listing has at most. */
const PAGE = 500;
/** Comes after every other character: what begins with a prefix lies between it and it with this behind. */
const LAST = '\u{10ffff}';

interface Parts {
  readonly names: Names;
  readonly turns: LockQueue;
  readonly marker: StoreClock;
  readonly lines: Waiters;
  readonly signals: SqliteSignals;
  readonly sweep: ExpiredRows;
  readonly maxTtls: MaxTtls | null;
}

export class SqliteLeases implements LeaseStore, TenureLeases {
  readonly #names: Names;
  readonly #turns: LockQueue;
  readonly #marker: StoreClock;
  readonly #lines: Waiters;
  readonly #signals: SqliteSignals;
  readonly #sweep: ExpiredRows;
  readonly maxTtls?: MaxTtls;

  constructor(parts: Parts) {
    if (parts.maxTtls !== null) this.maxTtls = parts.maxTtls;
    this.#names = parts.names;
    this.#turns = parts.turns;
    this.#marker = parts.marker;
    this.#lines = parts.lines;
    this.#signals = parts.signals;
    this.#sweep = parts.sweep;
  }

  acquire(requests: readonly AcquireRequest[], call: AcquireCall): Promise<AcquireReply[]> {
    const each = (tx: Tx, i: number) => this.#acquireOne(tx, requests[i] as AcquireRequest, call);
    return this.#turns.write({ operation: 'acquire', count: requests.length, each, failed }, call);
  }

  renew(tenures: readonly Holding[], call: RenewCall): Promise<RenewReply[]> {
    const each = (tx: Tx, i: number): RenewReply => {
      const { key, holder } = tenures[i] as Holding;
      const name = this.#names.of(key);
      if (lengthen(tx, name, holder, call.ttlMs)) {
        if (call.keepFences) keepFenceLonger(tx, name);
        return RENEWED;
      }
      const { fence, revoked, holder: other } = leaseState(tx, name);
      if (other === null) return { kind: 'vanished', fence, revoked };
      return { kind: 'other', holder: other, revoked: other === TOMBSTONE };
    };
    return this.#turns.write({ operation: 'renew', count: tenures.length, each, failed }, call);
  }

  reassert(tenures: readonly Tenancy[], call: ReassertCall): Promise<ReassertReply[]> {
    const { forgotten, ttlMs } = call;
    const each = (tx: Tx, i: number): ReassertReply => {
      const { key, holder, fence } = tenures[i] as Tenancy;
      const name = this.#names.of(key);
      const state = leaseState(tx, name);
      if (state.holder !== null || state.revoked) return 'refused';
      if (state.fence !== fence && (state.fence > 0 || !forgotten)) return 'refused';
      // A store that has forgotten must stop granting, for everybody, before anything vanished may be put back.
      if (state.fence === 0 && !this.#marker.forgot(tx.session, keyspaceOf(key), tx.nowMs))
        return 'refused';
      setLease(tx, name, holder, ttlMs);
      if (state.fence === 0) keepFence(tx, name, fence);
      return 'reasserted';
    };
    return this.#turns.write({ operation: 'reassert', count: tenures.length, each }, call);
  }

  release(tenures: readonly Tenancy[], call: Call): Promise<ReleaseReply[]> {
    const each = (tx: Tx, i: number): ReleaseReply => {
      const tenure = tenures[i] as Tenancy;
      const name = this.#names.of(tenure.key);
      const state = leaseState(tx, name);
      if (!isNamed(state, tenure)) return notHeld(state);
      deleteLease(tx, name);
      // A tenure longer than its fence record leaves a fresh one, for a next clock that may lag behind this one.
      if (state.fence === 0) keepFence(tx, name, tenure.fence);
      return { kind: 'released', woke: this.#lines.wake(tx, name) > 0 };
    };
    return this.#turns.write({ operation: 'release', count: tenures.length, each, failed }, call);
  }

  transfer(handovers: readonly Handover[], call: TransferCall): Promise<TransferReply[]> {
    const each = (tx: Tx, i: number): TransferReply => {
      const handover = handovers[i] as Handover;
      const name = this.#names.of(handover.key);
      const state = leaseState(tx, name);
      if (!isNamed(state, handover)) return notHeld(state);
      const floor = handover.fence + 1;
      return { kind: 'transferred', fence: this.handOver(tx, { ...handover, ...call, floor }) };
    };
    const count = handovers.length;
    return this.#turns.write({ operation: 'transfer', count, each, failed }, call);
  }

  revoke(key: string, call: RevokeCall): Promise<RevokeReply> {
    return this.#turns.writeOne('revoke', call, (tx): RevokeReply => {
      const name = this.#names.of(key);
      const state = leaseState(tx, name);
      const { holder, fence: previous, expiresInMs: mayActForMs } = state;
      const isBarred = holder === TOMBSTONE && !call.force;
      if (holder === null || isBarred || previous !== call.fence) return notHeld(state);
      const fence = mint(tx, name, previous, 0, call.force);
      if (call.force) deleteLease(tx, name);
      else setLease(tx, name, TOMBSTONE, mayActForMs);
      const woke = call.force && this.#lines.wake(tx, name) > 0;
      return { kind: 'revoked', holder, fence, mayActForMs, woke };
    });
  }

  read(keys: readonly string[], call: Call): Promise<ReadReply[]> {
    const each = (tx: Tx, i: number): ReadReply => {
      const { holder, fence, expiresInMs } = leaseState(tx, this.#names.of(keys[i] as string));
      if (holder === null) return { kind: 'free', fence };
      return holder === TOMBSTONE
        ? { kind: 'revoked', fence, expiresInMs }
        : { kind: 'held', holder, fence, expiresInMs };
    };
    return this.#turns.read({ operation: 'read', count: keys.length, each, failed }, call);
  }

  list(prefix: string, call: ListCall): Promise<LeasePage> {
    return this.#turns.readOne('list', call, ({ session, nowMs }): LeasePage => {
      const from = this.#names.of(prefix);
      const after = call.cursor === undefined ? '' : this.#names.of(call.cursor);
      const rows = session.rows<[string, string, number, number | null]>(
        `SELECT l.key, l.holder, l.expires, f.fence FROM leases l LEFT JOIN fences f ON f.key = l.key AND f.expires > ?
         WHERE l.key >= ? AND l.key < ? AND l.key > ? ORDER BY l.key LIMIT ${PAGE}`,
        nowMs,
        from,
        from + LAST,
        after,
      );
      const leases = rows
        .filter(([, holder, expires]) => expires > nowMs && holder !== TOMBSTONE)
        .map(([name, holder, expires, fence]) => {
          const key = this.#names.plain(name);
          return { key, holder, fence: fence ?? 0, expiresInMs: expires - nowMs };
        });
      const last = rows.length === PAGE ? rows.at(-1)?.[0] : undefined;
      return last === undefined ? { leases } : { leases, cursor: this.#names.plain(last) };
    });
  }

  wakeNext(keys: readonly string[], call: WakeCall): Promise<number[]> {
    const each = (tx: Tx, i: number): number => {
      const name = this.#names.of(keys[i] as string);
      if (call.leaving !== undefined) this.#lines.leave(tx, name, call.leaving);
      return leaseState(tx, name).holder === null ? this.#lines.wake(tx, name, call) : 0;
    };
    return this.#turns.write({ operation: 'wake', count: keys.length, each }, call);
  }

  look(tx: Tx, key: string): LeaseState {
    return leaseState(tx, this.#names.of(key));
  }

  handOver(tx: Tx, { key, successor, windowMs, floor = 0 }: LeaseHandover): number {
    const name = this.#names.of(key);
    const fence = mint(tx, name, leaseState(tx, name).fence, floor);
    setLease(tx, name, successor, windowMs);
    const era = this.#marker.handoverEra(tx.nowMs);
    if (era !== '') setOffer(tx, name, era, fence);
    this.#signals.send(tx, this.#names.of(inboxOf(successor)), key);
    return fence;
  }

  free(tx: Tx, key: string): number {
    const name = this.#names.of(key);
    const fence = mint(tx, name, leaseState(tx, name).fence, 0, true);
    deleteLease(tx, name);
    this.#lines.wake(tx, name);
    return fence;
  }

  /**
   * Whether the key was handed over since the quarantine began, and is the holder's to claim, or anyone's because the successor's time
   * is up. The giver held it until then, so nobody else can act on a grant that the file has forgotten.
   */
  #isHandedOver(tx: Tx, key: string, holder: string, state: LeaseState): boolean {
    if (state.holder !== null && state.holder !== holder) return false;
    return isOffered(tx, key, this.#marker.handoverEra(tx.nowMs), state.fence);
  }

  #acquireOne(tx: Tx, request: AcquireRequest, call: AcquireCall): AcquireReply {
    const { holder, fence: presented, fenceFloor = 0, waitedMs } = request;
    const { ttlMs, inbox } = call;
    const key = this.#names.of(request.key);
    const state = leaseState(tx, key);
    const leftMs = this.#marker.ask(keyspaceOf(request.key), tx.nowMs);
    if (leftMs > 0 && !this.#isHandedOver(tx, key, holder, state))
      return { kind: 'busy', reason: 'quarantine', holder: '', fence: 0, expiresInMs: leftMs };
    if (state.holder !== null && state.holder !== holder) {
      const { expiresInMs } = state;
      if (waitedMs !== undefined)
        this.#lines.join(tx, key, inbox, waitedMs, 2 * Math.max(expiresInMs, ttlMs));
      const reason = state.holder === TOMBSTONE ? 'revoked' : 'held';
      return { kind: 'busy', reason, holder: state.holder, fence: state.fence, expiresInMs };
    }
    this.#sweep.step(tx);
    const isRefreshed =
      state.holder !== null && presented !== undefined && state.fence === presented;
    const fence = isRefreshed ? presented : mint(tx, key, state.fence, fenceFloor);
    // A holder that has the lease already keeps the longer of the two times: this request may be late.
    setLease(tx, key, holder, Math.max(state.expiresInMs, ttlMs));
    this.#signals.expectNoMore(key);
    return { kind: 'granted', fence };
  }
}

const RENEWED: RenewReply = { kind: 'renewed' };

function failed(error: Error): { kind: 'failed'; error: Error } {
  return { kind: 'failed', error };
}

/** Whether the store names this holder and fence; an absent fence record is equal. */
function isNamed(state: LeaseState, { holder, fence }: Tenancy): boolean {
  return state.holder === holder && (state.fence === 0 || state.fence === fence);
}

function notHeld({ holder, fence }: LeaseState) {
  return { kind: 'not-held' as const, holder, fence };
}

/** A holder is an instance id, or begins with one and a slash; its instance listens on this topic. */
function inboxOf(holder: string): string {
  return holder.split('/', 1)[0] ?? holder;
}
