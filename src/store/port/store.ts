/**
 * Where the truth lives: the port every store implements. Stores differ in reach (one process, one
 * host, many hosts), never in meaning: `holdfast/testing` has one conformance suite, and all of
 * them pass it.
 *
 * Verbs that can be batched take arrays and answer with one reply per request, in order; one bad
 * key never spoils its batch. A rejected promise means that the whole call failed:
 * `STORE_UNREACHABLE` and `STORE_REFUSED` say that nothing happened, `OUTCOME_UNKNOWN` that
 * anything may have. No verb takes longer than its `timeoutMs`, and none is ever sent twice. The
 * store's own clock decides when a lease expires.
 *
 * The port has two layers: coordination, and work. `coordination-only.ts` completes a store that
 * offers the first alone.
 */
import type { BoundStore } from './bound-store.ts';
import type { CopyStore } from './copy-store.ts';
import type { Examination } from './examination.ts';
import type { GuardStore } from './guard-store.ts';
import type { IntentStore } from './intent-store.ts';
import type { LeaseStore } from './lease-store.ts';
import type { LogStore } from './log-store.ts';
import type { MemberStore } from './member-store.ts';
import type { RecordStore } from './record-store.ts';
import type { RunStore } from './run-store.ts';
import type { SignalStore } from './signal-store.ts';
import type { StreamStore } from './stream-store.ts';
import type { WorkflowStore } from './workflow-store.ts';

/** The layer that leases need. A store may offer this layer alone. */
export interface CoordinationStore {
  /** How to name this store in messages: its address without secrets. */
  readonly name: string;
  /**
   * What tells it from every other store that processes of this host use; absent where its name
   * does.
   */
  readonly identity?: string;
  readonly leases: LeaseStore;
  readonly members: MemberStore;
  readonly signals: SignalStore;
  /** Absent where nothing is ever lost, and so nothing recorded. */
  readonly bounds?: BoundStore;
  /** Absent where the store is not in a database that has the user's rows. */
  readonly guard?: GuardStore;
  /** Absent where nothing outlives the process. */
  readonly copies?: CopyStore;
  /** What a person should know about this store before trusting it with leases. */
  examine(): Promise<Examination>;
  /** Ends every connection and timer of this store. Idempotent. */
  close(): Promise<void>;
}

/** The layer that targets, the shared log, workflows and intents need. */
export interface WorkStore {
  readonly records: RecordStore;
  readonly log: LogStore;
  readonly streams: StreamStore;
  readonly workflows: WorkflowStore;
  readonly intents: IntentStore;
  readonly runs: RunStore;
}

export interface Store extends CoordinationStore, WorkStore {}

export interface Call {
  timeoutMs: number;
}

/** The form of what this version keeps in a store. A store of a later form is refused. */
export const STORE_FORMAT = 4;

/** The format of a store into which a copy has begun and has not finished: later than any. */
export const UNFINISHED_FORMAT = 1_000_000_000;

/** What to tell a caller that opens such a store. */
export const UNFINISHED_PROBLEM =
  "A copy into it has begun and has not finished. Run the same 'holdfast store copy' again, which starts over, or use another store.";
