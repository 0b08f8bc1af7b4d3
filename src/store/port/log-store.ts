import type { Call } from './store.ts';

/**
 * What has happened, in one order for all: JSON values that are kept for a while and never change.
 */
export interface LogStore {
  /**
   * Adds entries at the end, all of them or none, and drops the oldest where there are too many.
   * One request, however many they are; so no more than a page of them at a time.
   */
  append(values: readonly unknown[], call: Call): Promise<void>;
  /**
   * One page of what comes after a position, the oldest first; from the oldest there is without
   * one.
   */
  read(call: LogReadCall): Promise<LogPage>;
  /**
   * One page of what came before a position, the newest first; from the newest there is without
   * one.
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
   * Something after `after` has been dropped already, or the position is none of this log's: what
   * is missing cannot be told. A page of `read` then begins with the oldest there is; where there
   * is none, ask again without a position.
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
