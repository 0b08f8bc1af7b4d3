import {
  type AcquireCall,
  type AcquireReply,
  type AcquireRequest,
  type Call,
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
} from '../store.ts';
import {
  deleteLease,
  keepFence,
  type LeaseState,
  leaseState,
  lengthen,
  mint,
  setLease,
} from './lease-rows.ts';
import type { Lines } from './lines.ts';
import type { Marker } from './marker.ts';
import type { Names } from './names.ts';
import type { Tx } from './session.ts';
import type { SqliteSignals } from './signals.ts';
import type { Sweep } from './sweep.ts';
import type { LeaseHandover, TenureLeases } from './tenure-leases.ts';
import type { Turns } from './turns.ts';

/** How many leases one page of a listing has at most. */
const PAGE = 500;
/** Comes after every other character: what begins with a prefix lies between it and it with this behind. */
const LAST = '\u{10ffff}';

interface Parts {
  readonly names: Names;
  readonly turns: Turns;
  readonly marker: Marker;
  readonly lines: Lines;
  readonly signals: SqliteSignals;
  readonly sweep: Sweep;
}

export class SqliteLeases implements LeaseStore, TenureLeases {
  readonly #names: Names;
  readonly #turns: Turns;
  readonly #marker: Marker;
  readonly #lines: Lines;
  readonly #signals: SqliteSignals;
  readonly #sweep: Sweep;

  constructor(parts: Parts) {
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
      if (lengthen(tx, name, holder, call.ttlMs)) return RENEWED;
      const { fence, revoked, holder: other } = leaseState(tx, name);
      if (other === null) return { kind: 'vanished', fence, revoked };
      return { kind: 'other', holder: other, revoked: other === TOMBSTONE };
    };
    return this.#turns.write({ operation: 'renew', count: tenures.length, each, failed }, call);
  }

  reassert(tenures: readonly Tenancy[], call: ReassertCall): Promise<ReassertReply[]> {
    const { forgotten, leaseClass, ttlMs } = call;
    const each = (tx: Tx, i: number): ReassertReply => {
      const { key, holder, fence } = tenures[i] as Tenancy;
      const name = this.#names.of(key);
      const state = leaseState(tx, name);
      if (state.holder !== null || state.revoked) return 'refused';
      if (state.fence !== fence && (state.fence > 0 || !forgotten)) return 'refused';
      this.#marker.use(tx, leaseClass, ttlMs);
      // A store that has forgotten must stop granting, for everybody, before anything vanished may be put back.
      if (state.fence === 0 && !this.#marker.forgot(tx.session, leaseClass, tx.nowMs))
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
      this.#lines.wake(tx, name);
      return RELEASED;
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
      const { holder, fence: previous, expiresInMs: mayActForMs } = leaseState(tx, name);
      if (holder === null || (holder === TOMBSTONE && !call.force)) return { kind: 'not-held' };
      if (call.force) return { kind: 'revoked', holder, fence: this.free(tx, key), mayActForMs };
      const fence = mint(tx, name, previous, 0);
      setLease(tx, name, TOMBSTONE, mayActForMs);
      return { kind: 'revoked', holder, fence, mayActForMs };
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

  async forgo(key: string, inbox: string, call: Call): Promise<void> {
    await this.#turns.writeOne('forgo', call, (tx) => {
      const name = this.#names.of(key);
      this.#lines.leave(tx, name, inbox);
      if (leaseState(tx, name).holder === null) this.#lines.wake(tx, name);
    });
  }

  look(tx: Tx, key: string): LeaseState {
    return leaseState(tx, this.#names.of(key));
  }

  handOver(tx: Tx, { key, successor, windowMs, floor = 0 }: LeaseHandover): number {
    const name = this.#names.of(key);
    const fence = mint(tx, name, leaseState(tx, name).fence, floor);
    setLease(tx, name, successor, windowMs);
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

  #acquireOne(tx: Tx, request: AcquireRequest, call: AcquireCall): AcquireReply {
    const { holder, fence: presented, fenceFloor = 0, waitedMs } = request;
    const { leaseClass, ttlMs, inbox } = call;
    const leftMs = this.#marker.leftMs(leaseClass, tx.nowMs);
    if (leftMs > 0)
      return { kind: 'busy', reason: 'quarantine', holder: '', fence: 0, expiresInMs: leftMs };
    const key = this.#names.of(request.key);
    const state = leaseState(tx, key);
    if (state.holder !== null && state.holder !== holder) {
      const { expiresInMs } = state;
      if (waitedMs !== undefined)
        this.#lines.join(tx, key, inbox, waitedMs, 2 * Math.max(expiresInMs, ttlMs));
      const reason = state.holder === TOMBSTONE ? 'revoked' : 'held';
      return { kind: 'busy', reason, holder: state.holder, fence: state.fence, expiresInMs };
    }
    this.#marker.use(tx, leaseClass, ttlMs);
    this.#sweep.step(tx);
    const isRefreshed =
      state.holder !== null && presented !== undefined && state.fence === presented;
    const fence = isRefreshed ? presented : mint(tx, key, state.fence, fenceFloor);
    setLease(tx, key, holder, ttlMs);
    this.#signals.expectNoMore(key);
    return { kind: 'granted', fence };
  }
}

const RENEWED: RenewReply = { kind: 'renewed' };
const RELEASED: ReleaseReply = { kind: 'released' };

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
