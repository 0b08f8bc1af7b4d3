/**
 * Where the truth lives: the port every store implements. Stores differ in reach (one process, one host, many hosts),
 * never in meaning: `holdfast/testing` has one conformance suite, and all of them pass it.
 *
 * Verbs that can be batched take arrays and answer with one reply per request, in order; one bad key never spoils its
 * batch. A rejected promise means that the whole call failed: `STORE_UNREACHABLE` and `STORE_REFUSED` say that nothing
 * happened, `OUTCOME_UNKNOWN` that anything may have. No verb takes longer than its `timeoutMs`, and none is ever sent
 * twice. The store's own clock decides when a lease expires.
 */
import type { Examination } from './examination.ts';
import type { IntentStore } from './intent-store.ts';
import type { MaxTtls } from './keyspaces.ts';
import type { StreamStore } from './stream-store.ts';
import type { WorkflowStore } from './workflow-store.ts';

export type { ClockOffset, Examination, Finding } from './examination.ts';

export interface Store {
  /** How to name this store in messages: its address without secrets. */
  readonly name: string;
  /** What tells it from every other store that processes of this host use; absent where its name does. */
  readonly identity?: string;
  readonly leases: LeaseStore;
  readonly members: MemberStore;
  readonly records: RecordStore;
  readonly signals: SignalStore;
  readonly log: LogStore;
  readonly streams: StreamStore;
  readonly workflows: WorkflowStore;
  readonly intents: IntentStore;
  /** Absent where nothing is ever lost, and so nothing recorded. */
  readonly bounds?: BoundStore;
  /** What a person should know about this store before trusting it with leases. */
  examine(): Promise<Examination>;
  /** Ends every connection and timer of this store. Idempotent. */
  close(): Promise<void>;
}

export interface Call {
  timeoutMs: number;
}

/** The bounds of `keyspaces.ts`, as this store has recorded them. */
export interface BoundStore {
  read(call: Call): Promise<Partial<MaxTtls>>;
  /** For a store in which no process holds a lease. Begins a quarantine; clients with other bounds are refused from then on. */
  change(to: MaxTtls, call: Call): Promise<void>;
}

/** The form of what this version keeps in a store. A store of a later form is refused. */
export const STORE_FORMAT = 2;

// ---- Leases ---------------------------------------------------------------------------------------------------------

export interface LeaseStore {
  /** The bounds this store was opened with (`keyspaces.ts`); absent where it never loses data, and for an observer. */
  readonly maxTtls?: MaxTtls;
  /**
   * Grants each free key and mints its fence, `max(previous + 1, store time in µs, floor)`, in one atomic step per key.
   * A requester that presents the current fence is refreshed and keeps it; one that the store names as holder without
   * presenting it gets the key with a new fence. A lease that the requester already has is never shortened.
   */
  acquire(requests: readonly AcquireRequest[], call: AcquireCall): Promise<AcquireReply[]>;
  /** Lengthens each lease whose holder the store names. Never creates one, and never shortens one. */
  renew(tenures: readonly Holding[], call: RenewCall): Promise<RenewReply[]>;
  /**
   * Puts back leases that vanished under their holders: only where the key is absent and the fence record is the
   * holder's; or, with `forgotten`, is absent too, and then only after the store has stopped making new grants.
   */
  reassert(tenures: readonly Tenancy[], call: ReassertCall): Promise<ReassertReply[]>;
  /** Ends each tenure the store names by holder and fence, and wakes the next waiter. An absent fence record is equal. */
  release(tenures: readonly Tenancy[], call: Call): Promise<ReleaseReply[]>;
  /**
   * Names a successor as holder for a short claim window, with a new fence; the successor acquires to claim. In a quarantine
   * it may claim what it was handed since that began, and anyone what it has not claimed in time; nothing of earlier handovers, for the
   * store may have forgotten what became of them.
   */
  transfer(handovers: readonly Handover[], call: TransferCall): Promise<TransferReply[]>;
  /**
   * Ends a tenure against its holder's will: bumps the fence and leaves a tombstone for the remaining time, or, with
   * `force`, frees the key at once. Only the tenure of `fence`: a revocation that arrives late, or a second time, ends no
   * other one.
   */
  revoke(key: string, call: RevokeCall): Promise<RevokeReply>;
  read(keys: readonly string[], call: Call): Promise<ReadReply[]>;
  /** One page of the leases whose key begins with `prefix`; for people, not for loops. */
  list(prefix: string, call: ListCall): Promise<LeasePage>;
  /**
   * Present where parts of the store can fail apart. Keys of different lanes are best asked for in different calls: then
   * a part that hangs keeps only its own waiting.
   */
  lane?(key: string): string;
  /**
   * Wakes the next in line for each key that is free, and says how many it woke. An inbox that leaves is taken out of
   * the lines first. Every inbox that is woken is out of the line until it asks again, and keeps its place by the time
   * it has waited.
   */
  wakeNext(keys: readonly string[], call: WakeCall): Promise<number[]>;
}

export interface WakeCall extends Call {
  /** The inbox that leaves the lines. */
  readonly leaving?: string;
  /** How many to wake at most. The first is told to ask at once, each other `apartMs` after the one before it. */
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
  /** Infinity for a key without expiry: somebody else's doing. */
  readonly expiresInMs: number;
}

export interface RenewCall extends Call {
  readonly ttlMs: number;
  /** Also keeps the fence records of what it renews for another `FENCE_RECORD_MS`: a tenure may last longer than that. */
  readonly keepFences?: boolean;
}

export type RenewReply =
  | { readonly kind: 'renewed' }
  /** The key is absent; `fence` is what the fence record says, 0 for nothing. */
  | { readonly kind: 'vanished'; readonly fence: number; readonly revoked: boolean }
  | { readonly kind: 'other'; readonly holder: string; readonly revoked: boolean }
  | { readonly kind: 'failed'; readonly error: Error };

export interface ReassertCall extends Call {
  readonly ttlMs: number;
  readonly forgotten: boolean;
}

export type ReassertReply = 'reasserted' | 'refused';

export type ReleaseReply =
  /** `woke`: a waiter was told. It may be frozen: see to it that the key is taken (`wakeNext`). */
  | { readonly kind: 'released'; readonly woke: boolean }
  /** The store does not name this holder and fence; what it names instead, if anything. */
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
  /** The tenure that is meant, by the fence that `read` shows; 0 for a key without a fence record. */
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
  /** The store does not name this fence, or it is revoked already; what it names instead, if anything. */
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

/** The value of a lease key that was revoked and may not be granted yet. No holder may begin with `!`. */
export const TOMBSTONE = '!revoked';

/** How long a fence record is kept from its minting, or since a renewal kept it: longer than any lease lasts without one. */
export const FENCE_RECORD_MS = 24 * 3_600_000;

// ---- Members --------------------------------------------------------------------------------------------------------

export interface MemberStore {
  /** Says that a member lives, for `ttlMs` more, and what it says of itself. */
  beat(member: Member, call: BeatCall): Promise<void>;
  /** Says that it does not any more. */
  leave(id: string, call: Call): Promise<void>;
  /** Who lives now. With `thorough`, also whom another program has put there: that walks the keyspace, so do it rarely. */
  list(call: MemberListCall): Promise<LiveMember[]>;
}

export interface Member {
  readonly id: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

export interface BeatCall extends Call {
  readonly ttlMs: number;
}

export interface MemberListCall extends Call {
  readonly thorough?: boolean;
}

export interface LiveMember {
  readonly id: string;
  /** Null for a member of another make: its heartbeat is not an object of ours. */
  readonly attributes: Readonly<Record<string, unknown>> | null;
  /** Infinity for a heartbeat without expiry: somebody else's doing. */
  readonly expiresInMs: number;
}

// ---- Records --------------------------------------------------------------------------------------------------------

/** JSON documents, in named collections. */
export interface RecordStore {
  get(collection: string, ids: readonly string[], call: Call): Promise<GetReply[]>;
  /**
   * Writes each record whose conditions hold: with a fence, that the record has seen none higher; with `ifRevision`, that
   * it has this revision, 0 meaning that there is none.
   */
  put(collection: string, writes: readonly RecordWrite[], call: Call): Promise<PutReply[]>;
  /** Removes each record whose conditions hold, as for `put`. What it has seen of fences is kept for a day. */
  remove(collection: string, removals: readonly RecordRef[], call: Call): Promise<RemoveReply[]>;
  /**
   * Which records have changed since a version, 0 for all there are. One page, the earliest change first: ask again with
   * its `version` and `began` while there is `more`. It leaves none out, but may name one whose write was refused. A listing
   * from 0 ends however many records were removed before it began; `change-reader.ts` reads it as a caller should.
   */
  changes(collection: string, call: ChangesCall): Promise<ChangesPage>;
  /**
   * Looks for what another program has written, changed or removed without telling, and puts it among the changes; says
   * how many there were. Walks the keyspace, so do it rarely. 0 at once where nobody else can write.
   */
  discover(collection: string, call: Call): Promise<number>;
}

export interface RecordRef {
  readonly id: string;
  readonly fence?: number;
  readonly ifRevision?: number;
}

export interface RecordWrite extends RecordRef {
  readonly value: unknown;
}

export interface StoredRecord {
  readonly value: unknown;
  /** Counts the writes of this record. */
  readonly revision: number;
  /** The highest fence it has seen; 0 for none. */
  readonly fence: number;
}

export type GetReply =
  | ({ readonly kind: 'found' } & StoredRecord)
  | { readonly kind: 'absent' }
  | { readonly kind: 'failed'; readonly error: Error };

export type PutReply = { readonly kind: 'written'; readonly revision: number } | RefusedWrite;

export type RemoveReply = { readonly kind: 'removed' } | { readonly kind: 'absent' } | RefusedWrite;

export type RefusedWrite =
  | { readonly kind: 'stale'; readonly seen: number }
  /** The record is at another revision; 0: there is none. */
  | { readonly kind: 'conflict'; readonly revision: number }
  | { readonly kind: 'failed'; readonly error: Error };

export interface ChangesCall extends Call {
  readonly since: number;
  /** Of the page before, in a listing that began at 0: what was removed before it began does not concern its reader. */
  readonly began?: number | undefined;
  /** How many changes at most; default and limit `CHANGES_PAGE`. */
  readonly most?: number;
}

export interface ChangesPage {
  /** The ids of records written since, each once. */
  readonly written: readonly string[];
  readonly removed: readonly string[];
  /** What to ask with next. Grows with every change, also over a loss of data. */
  readonly version: number;
  readonly more: boolean;
  /** The version at which a listing from 0 began, while it has more. */
  readonly began?: number | undefined;
  /** What was removed since then, or since `began`, cannot be told any more: begin again at 0, and drop what does not appear. */
  readonly reset: boolean;
}

/** How many changes one page has at most. */
export const CHANGES_PAGE = 1_000;

/** A collection remembers at least this many removals. A reader that has missed an older one is told to begin again. */
export const REMOVALS_KEPT = 1_000;

// ---- Signals --------------------------------------------------------------------------------------------------------

/** Hints only: losing every signal may cost time, never correctness. */
export interface SignalStore {
  publish(topic: string, message: string): Promise<void>;
  /**
   * Resolves once messages published from now on arrive. `onGap` is called when some may have been lost. The function
   * returned unsubscribes.
   */
  subscribe(topic: string, subscriber: Subscriber): Promise<() => void>;
}

export interface Subscriber {
  onMessage(message: string): void;
  onGap(): void;
}

// ---- Log -------------------------------------------------------------------------------------------------------------

/** What has happened, in one order for all: JSON values that are kept for a while and never change. */
export interface LogStore {
  /**
   * Adds entries at the end, all of them or none, and drops the oldest where there are too many. One request, however many
   * they are; so no more than a page of them at a time.
   */
  append(values: readonly unknown[], call: Call): Promise<void>;
  /** One page of what comes after a position, the oldest first; from the oldest there is without one. */
  read(call: LogReadCall): Promise<LogPage>;
  /** One page of what came before a position, the newest first; from the newest there is without one. */
  recall(call: LogRecallCall): Promise<LogPage>;
  /** Drops entries that are older, on the store's clock, the oldest first; says how many. As long as it says any, there may be more. */
  trim(call: LogTrimCall): Promise<number>;
}

export interface LogReadCall extends Call {
  readonly after?: string;
  /** How many entries at most; default and limit `LOG_PAGE`. */
  readonly most?: number;
}

export interface LogRecallCall extends Call {
  readonly before?: string;
  readonly most?: number;
}

export interface LogTrimCall extends Call {
  readonly keptMs: number;
}

export interface LogPage {
  readonly entries: readonly LogEntry[];
  /** There are more in this direction. */
  readonly more: boolean;
  /**
   * Something after `after` has been dropped already, or the position is none of this log's: what is missing can not be
   * told. A page of `read` then begins with the oldest there is; where there is none, ask again without a position.
   */
  readonly gap: boolean;
}

export interface LogEntry {
  /** Opaque, and the way to go on from here. */
  readonly position: string;
  /** Undefined for what another program has put there, and is no JSON. */
  readonly value: unknown;
}

export const LOG_PAGE = 1_000;
/** A log keeps this many entries, or a few more. */
export const LOG_KEPT = 100_000;
