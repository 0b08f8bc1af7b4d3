import type { Call } from './store.ts';

/** JSON documents, in named collections. */
export interface RecordStore {
  get(collection: string, ids: readonly string[], call: Call): Promise<GetReply[]>;
  /**
   * Writes each record whose conditions hold: with a fence, that the record has seen none higher;
   * with `ifRevision`, that it has this revision, 0 meaning that there is none.
   */
  put(collection: string, writes: readonly RecordWrite[], call: Call): Promise<PutReply[]>;
  /**
   * Removes each record whose conditions hold, as for `put`. The highest fence that the record has
   * seen is kept for a day.
   */
  remove(collection: string, removals: readonly RecordRef[], call: Call): Promise<RemoveReply[]>;
  /**
   * Which records have changed since a version, 0 for all there are. One page, the earliest change
   * first: ask again with its `version` and `began` while there is `more`. It leaves none out, but
   * may name one whose write was refused. A listing from 0 ends however many records were removed
   * before it began; `change-reader.ts` reads it as a caller should.
   */
  changes(collection: string, call: ChangesCall): Promise<ChangesPage>;
  /**
   * Finds records that another program has written, changed or removed, and enters them among the
   * changes. Returns how many there were. Walks the keyspace, so do it rarely. Returns 0 at once
   * where no other program can write.
   */
  discover(collection: string, call: Call): Promise<number>;
}

export interface RecordRef {
  readonly id: string;
  readonly fence?: number | undefined;
  readonly ifRevision?: number | undefined;
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
  /**
   * Of the page before, in a listing that began at 0: its reader does not need removals from before
   * the listing.
   */
  readonly began?: number | undefined;
  /** How many changes at most; default and limit `CHANGES_PAGE`. */
  readonly most?: number;
}

export interface ChangesPage {
  /** The ids of records written since, each once. */
  readonly written: readonly string[];
  readonly removed: readonly string[];
  /** The version for the next call. Grows with every change, also over a loss of data. */
  readonly version: number;
  readonly more: boolean;
  /** The version at which a listing from 0 began, while it has more. */
  readonly began?: number | undefined;
  /**
   * The store has forgotten removals since then, or since `began`: begin again at 0, and drop the
   * records that do not appear.
   */
  readonly reset: boolean;
}

/** How many changes one page has at most. */
export const CHANGES_PAGE = 1_000;

/**
 * A collection remembers at least this many removals. A reader that has missed an older one is told
 * to begin again.
 */
export const REMOVALS_KEPT = 1_000;
