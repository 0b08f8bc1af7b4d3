import type { Call } from './store.ts';

/**
 * Events in one order for all readers: JSON values that are kept for a while and never change.
 */
export interface LogStore {
  /**
   * Adds entries at the end, all of them or none, and drops the oldest where there are too many.
   * One request, however many they are; so no more than a page of them at a time.
   */
  append(values: readonly unknown[], call: Call): Promise<void>;
  /**
   * One page of the entries after a position, the oldest first. Without a position it begins with
   * the oldest entry.
   */
  read(call: LogReadCall): Promise<LogPage>;
  /**
   * One page of the entries before a position, the newest first. Without a position it begins with
   * the newest entry.
   */
  recall(call: LogRecallCall): Promise<LogPage>;
  /**
   * Drops entries that are older, on the store's clock, the oldest first; says how many. As long as
   * it says any, there may be more.
   */
  trim(call: LogTrimCall): Promise<number>;
}

export interface LogReadCall extends Call {
  readonly after?: string | undefined;
  /** How many entries at most; default and limit `LOG_PAGE`. */
  readonly most?: number | undefined;
}

export interface LogRecallCall extends Call {
  readonly before?: string | undefined;
  readonly most?: number | undefined;
}

export interface LogTrimCall extends Call {
  readonly keptMs: number;
}

export interface LogPage {
  readonly entries: readonly LogEntry[];
  /** There are more in this direction. */
  readonly more: boolean;
  /**
   * Entries after `after` have been dropped already, or the position is not of this log: entries
   * are missing. A page of `read` then begins with the oldest entry; an empty page means that the
   * caller asks again without a position.
   */
  readonly gap: boolean;
}

export interface LogEntry {
  /** Opaque. The next call continues from here. */
  readonly position: string;
  /** Undefined for an entry of another program that is not JSON. */
  readonly value: unknown;
}

export const LOG_PAGE = 1_000;
/** A log keeps this many entries, or a few more. */
export const LOG_KEPT = 100_000;
