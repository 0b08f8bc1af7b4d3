/**
 * The part of the port that moves a store: everything that lasts, as entries of some nouns, in a
 * form that every store reads and writes. `store/copy.ts` copies with it, while every process of
 * both stores is stopped.
 *
 * Leases, members, keepalives, waiters and hints are not moved: none of them outlives its process.
 * A claim of a processor or worker becomes a retry that is due when the claim would have expired.
 * The shared log is not moved either: its positions belong to one store.
 *
 * `begin` marks a store as unfinished: its format is then `UNFINISHED_FORMAT`, so every Holdfast,
 * also an older one, refuses to open it. Only a copy opens it, with `unfinished: true`. `finish`
 * removes the mark in one step.
 */
import type { Call } from './store.ts';

export interface CopyStore {
  /** Whether a copy into this store has begun and has not finished. */
  isUnfinished(call: Call): Promise<boolean>;
  /** Marks the store as unfinished. Removes what an earlier unfinished copy has left. */
  begin(call: Call): Promise<void>;
  finish(call: Call): Promise<void>;
  /**
   * All entries of a noun, in an order that is the same in every store. Each batch is one request
   * with this timeout. It may miss an entry that changes meanwhile.
   */
  export<N extends CopyNoun>(noun: N, call: Call): AsyncIterable<readonly CopyEntries[N][]>;
  /**
   * Writes entries, in the order of their export. Only between `begin` and `finish`, and only
   * entries that the store does not have. A fence is an exception: the higher one stays.
   */
  import<N extends CopyNoun>(
    noun: N,
    entries: readonly CopyEntries[N][],
    call: Call,
  ): Promise<void>;
  /** The store's time, in microseconds, as it mints fences. */
  fenceClock(call: Call): Promise<number>;
}

/** In the order in which they are copied: a lane of actions needs its workflow. */
export const COPY_NOUNS = {
  coordination: ['fences'],
  work: ['records', 'workflows', 'sessions', 'streams', 'lanes', 'dead'],
} as const;

export type CopyNoun = (typeof COPY_NOUNS)[keyof typeof COPY_NOUNS][number];

/** Times are on the store's wall clock. `json` is the JSON of a value. */
export interface CopyEntries {
  fences: CopiedFence;
  records: CopiedRecord;
  workflows: CopiedWorkflow;
  sessions: CopiedSession;
  /** Every stream that anything was ever added to. */
  streams: { readonly name: string };
  lanes: CopiedLane;
  dead: CopiedDead;
}

export interface CopiedFence {
  /** Null for the last fence that was given out with an entry of a stream. */
  readonly key: string | null;
  readonly fence: number;
}

export interface CopiedRecord {
  readonly collection: string;
  readonly id: string;
  readonly json: string;
  readonly revision: number;
  readonly fence: number;
}

export interface CopiedWorkflow {
  readonly id: string;
  readonly leaseId: string | null;
  /** handed: its next tenure has yet to begin. revoked: it is in no tenure. */
  readonly phase: 'begun' | 'handed' | 'revoked';
  readonly epoch: number;
  readonly updatedEpoch: number | null;
  readonly state: string;
  readonly inbox: string;
  readonly createdMs: number;
  readonly changedMs: number;
  /** By epoch. */
  readonly actions: readonly CopiedAction[];
  /** The last action that each target has taken, by target. */
  readonly taken: readonly { target: string; epoch: number; actionId: string }[];
  /** The oldest first. */
  readonly results: readonly CopiedResult[];
  readonly history: readonly CopiedEvent[];
  readonly run: CopiedRun | null;
  readonly steps: readonly CopiedStep[];
  readonly signals: readonly CopiedSignal[];
}

export interface CopiedAction {
  readonly id: string;
  readonly target: string;
  readonly priority: number;
  readonly body: string;
  readonly leaseId: string;
  readonly epoch: number;
  readonly isParked: boolean;
}

export interface CopiedResult {
  readonly actionId: string;
  readonly target: string;
  readonly epoch: number;
  readonly outcome: string;
  readonly json: string;
  readonly atMs: number;
  readonly isUnread: boolean;
  /** It answers a repeated request for its action. */
  readonly isKnown: boolean;
}

export interface CopiedEvent {
  readonly atMs: number;
  readonly epoch: number;
  readonly leaseId: string | null;
  /** As JSON. */
  readonly what: string;
}

export interface CopiedRun {
  readonly function: string;
  readonly phase: string;
  /** In microseconds; null if no time is set. */
  readonly dueUs: number | null;
  readonly tries: number;
  readonly waits: string;
  readonly value: string;
  readonly input: string;
}

export interface CopiedStep {
  readonly name: string;
  readonly kind: string;
  readonly isDone: boolean;
  readonly json: string;
  readonly atUs: number;
}

export interface CopiedSignal {
  readonly id: string;
  readonly name: string;
  readonly json: string;
  readonly atUs: number;
  readonly isReceived: boolean;
}

/** The oldest first. */
export interface CopiedSession {
  readonly id: string;
  readonly tenant: string;
  readonly kind: string;
  readonly label: string;
  readonly state: string;
  readonly revision: number;
  readonly body: string;
  readonly status: string;
  readonly priority: number;
  readonly clientCount: number;
  readonly createdMs: number;
  readonly changedMs: number;
  /** Sorted, here and below; none for a session that has ended. */
  readonly keys: readonly string[];
  readonly clients: readonly string[];
}

/** Those that wait come first, in the order of their turns. */
export interface CopiedLane {
  readonly stream: string;
  readonly lane: string;
  /** How often its first entry was given out. */
  readonly tries: number;
  /** Null while it waits for its turn; else when its first entry is due, in microseconds. */
  readonly dueUs: number | null;
  /** A consumer has the first entry, or had it until `dueUs`. */
  readonly isClaimed: boolean;
  /** In the stream of an action: the id of the action, as JSON. */
  readonly entries: readonly { priority: number; json: string }[];
}

/** By stream, the oldest first. */
export interface CopiedDead {
  readonly stream: string;
  readonly lane: string;
  readonly json: string;
  readonly tries: number;
  readonly reason: string;
  readonly atMs: number;
}
