import type { MaxTtls } from './keyspaces.ts';
import type { Call } from './store.ts';

export interface LeaseStore {
  /**
   * The bounds this store was opened with (`keyspaces.ts`); absent where it never loses data, and
   * for an observer.
   */
  readonly maxTtls?: MaxTtls;
  /**
   * Grants each free key and mints its fence, `max(previous + 1, store time in µs, floor)`, in one
   * atomic step per key. A requester that presents the current fence is refreshed and keeps it; one
   * that the store names as holder without presenting it gets the key with a new fence. A lease
   * that the requester already has is never shortened.
   */
  acquire(requests: readonly AcquireRequest[], call: AcquireCall): Promise<AcquireReply[]>;
  /**
   * Lengthens each lease whose holder the store names. Never creates one, and never shortens one.
   * With `attachTo`, each that it lengthens and whose fence is presented is attached to the
   * keepalive, if that is alive.
   */
  renew(tenures: readonly Renewal[], call: RenewCall): Promise<RenewReply[]>;
  /**
   * Lengthens a keepalive, and so every lease that is attached to it. Never creates one, never
   * revives one that has lapsed, and never shortens one. Absent where the store renews lease by
   * lease. See docs/decisions/0035-keepalives.md.
   */
  keepAlive?(id: string, call: KeepAliveCall): Promise<KeepAliveReply>;
  /**
   * Puts back leases that vanished under their holders: only where the key is absent and the fence
   * record is the holder's; or, with `forgotten`, is absent too, and then only after the store has
   * stopped making new grants.
   */
  reassert(tenures: readonly Tenancy[], call: ReassertCall): Promise<ReassertReply[]>;
  /**
   * Ends each tenure the store names by holder and fence, and wakes the next waiter. An absent
   * fence record is equal.
   */
  release(tenures: readonly Tenancy[], call: Call): Promise<ReleaseReply[]>;
  /**
   * Names a successor as holder for a short claim window, with a new fence; the successor acquires
   * to claim. In a quarantine the successor may claim a lease that was handed over since the
   * quarantine began, and after the window any caller may. No caller may claim an earlier handover:
   * the store may have forgotten its end.
   */
  transfer(handovers: readonly Handover[], call: TransferCall): Promise<TransferReply[]>;
  /**
   * Ends a tenure against its holder's will: bumps the fence and leaves a tombstone for the
   * remaining time, or, with `force`, frees the key at once. Only the tenure of `fence`: a
   * revocation that arrives late, or a second time, ends no other one.
   */
  revoke(key: string, call: RevokeCall): Promise<RevokeReply>;
  read(keys: readonly string[], call: Call): Promise<ReadReply[]>;
  /** One page of the leases whose key begins with `prefix`; for people, not for loops. */
  list(prefix: string, call: ListCall): Promise<LeasePage>;
  /**
   * Present where parts of the store can fail apart. Keys of different lanes are best asked for in
   * different calls: then a part that hangs keeps only its own waiting.
   */
  lane?(key: string): string;
  /**
   * Wakes the next in line for each key that is free, and says how many it woke. An inbox that
   * leaves is taken out of the lines first. Every inbox that is woken is out of the line until it
   * asks again, and keeps its place by the time it has waited.
   */
  wakeNext(keys: readonly string[], call: WakeCall): Promise<number[]>;
}

export interface WakeCall extends Call {
  /** The inbox that leaves the lines. */
  readonly leaving?: string;
  /**
   * How many to wake at most. The first is told to ask at once, each other `apartMs` after the one
   * before it.
   */
  readonly most: number;
  readonly apartMs: number;
}

export interface Holding {
  readonly key: string;
  readonly holder: string;
}

export interface Tenancy extends Holding {
  readonly fence: number;
}

export interface Renewal extends Holding {
  /** The fence of the tenure: a lease with another fence is renewed, but not attached. */
  readonly fence?: number;
}

export interface AcquireRequest extends Holding {
  /** The fence of the tenure to refresh; absent for a new one. */
  readonly fence?: number;
  /** The new fence is at least this. */
  readonly fenceFloor?: number;
  /** Present where the requester waits: how long it has, so that it keeps its place in the line. */
  readonly waitedMs?: number;
}

export interface AcquireCall extends Call {
  /** No longer than the bound of the keys' keyspace: the caller checks that. */
  readonly ttlMs: number;
  /** The signal topic on which a waiting requester is woken. */
  readonly inbox: string;
}

export type AcquireReply =
  | { readonly kind: 'granted'; readonly fence: number }
  | BusyReply
  | { readonly kind: 'failed'; readonly error: Error };

export interface BusyReply {
  readonly kind: 'busy';
  readonly reason: 'held' | 'revoked' | 'quarantine';
  readonly holder: string;
  readonly fence: number;
  /** Infinity for a key without expiry, which only another program writes. */
  readonly expiresInMs: number;
}

export interface RenewCall extends Call {
  readonly ttlMs: number;
  /**
   * Also keeps the fence records of renewed leases for another `FENCE_RECORD_MS`: a tenure may last
   * longer than that.
   */
  readonly keepFences?: boolean;
  /** Only where the store has `keepAlive`. */
  readonly attachTo?: Attachment;
}

export interface Attachment {
  /** The id of a keepalive: random, and never used for another one. */
  readonly id: string;
  /** Makes the keepalive. The id was in no earlier request. */
  readonly isNew: boolean;
}

export type RenewReply =
  /** `version`: of the keepalive, since this lease is attached to it; absent if it is not. */
  | { readonly kind: 'renewed'; readonly version?: number }
  /** The key is absent; `fence` is what the fence record says, 0 for nothing. */
  | { readonly kind: 'vanished'; readonly fence: number; readonly revoked: boolean }
  | { readonly kind: 'other'; readonly holder: string; readonly revoked: boolean }
  | { readonly kind: 'failed'; readonly error: Error };

export interface KeepAliveCall extends Call {
  readonly ttlMs: number;
  /**
   * The highest version that a reply told. A store with a lower one has lost attachments: there the
   * keepalive is gone.
   */
  readonly version: number;
  /** The numbers of detachments that need not be told again. */
  readonly acknowledged: readonly number[];
}

export type KeepAliveReply =
  | {
      readonly kind: 'kept';
      /** Leases that are no longer attached to the keepalive, unless they were attached again. */
      readonly detached: readonly { readonly number: number; readonly key: string }[];
    }
  /** It has lapsed, is buried, or was lost. */
  | { readonly kind: 'gone' };

export interface ReassertCall extends Call {
  readonly ttlMs: number;
  readonly forgotten: boolean;
}

export type ReassertReply = 'reasserted' | 'refused';

export type ReleaseReply =
  /** `woke`: a waiter was told. It may be frozen: see to it that the key is taken (`wakeNext`). */
  | { readonly kind: 'released'; readonly woke: boolean }
  /** The store does not name this holder and fence, but these, if any. */
  | { readonly kind: 'not-held'; readonly holder: string | null; readonly fence: number }
  | { readonly kind: 'failed'; readonly error: Error };

export interface Handover extends Tenancy {
  readonly successor: string;
}

export interface TransferCall extends Call {
  readonly windowMs: number;
}

export type TransferReply =
  | { readonly kind: 'transferred'; readonly fence: number }
  | { readonly kind: 'not-held'; readonly holder: string | null; readonly fence: number }
  | { readonly kind: 'failed'; readonly error: Error };

export interface RevokeCall extends Call {
  readonly force: boolean;
  /**
   * The tenure that is meant, by the fence that `read` shows; 0 for a key without a fence record.
   */
  readonly fence: number;
}

export type RevokeReply =
  | {
      readonly kind: 'revoked';
      readonly holder: string;
      readonly fence: number;
      readonly mayActForMs: number;
      /** As for `release`. */
      readonly woke: boolean;
    }
  /**
   * The store does not name this fence, or the tenure is revoked already. These are the holder and
   * the fence that the store names, if any.
   */
  | { readonly kind: 'not-held'; readonly holder: string | null; readonly fence: number };

export type ReadReply =
  | {
      readonly kind: 'held';
      readonly holder: string;
      readonly fence: number;
      readonly expiresInMs: number;
    }
  | { readonly kind: 'revoked'; readonly fence: number; readonly expiresInMs: number }
  | { readonly kind: 'free'; readonly fence: number }
  | { readonly kind: 'failed'; readonly error: Error };

export interface ListCall extends Call {
  readonly cursor?: string;
}

export interface LeasePage {
  readonly leases: readonly { key: string; holder: string; fence: number; expiresInMs: number }[];
  /** Absent on the last page. */
  readonly cursor?: string;
}

/**
 * The value of a lease key that was revoked and may not be granted yet. No holder may begin with
 * `!`.
 */
export const TOMBSTONE = '!revoked';

/**
 * How long a fence record is kept from its minting, or since a renewal kept it: longer than any
 * lease lasts without one.
 */
export const FENCE_RECORD_MS = 24 * 3_600_000;
