/**
 * SQLite itself, which one of two drivers brings: Node's own (`node:sqlite`), or the package
 * libsql.
 *
 * A process uses one driver for all its files. Two SQLite libraries in one process would drop each
 * other's locks: the kernel releases every lock of a process on a file when that process closes any
 * handle of the file.
 */
import { ConfigError, StoreUnsuitableError } from '../../../core/errors.ts';
import { libsqlDriver } from './libsql.ts';
import { nodeDriver } from './node-sqlite.ts';

export type Value = string | number | null;

export interface Statement {
  /** Runs it and returns how many rows it changed. */
  run(values: readonly Value[]): number;
  /** Returns the first row as an array of its columns. */
  row(values: readonly Value[]): Value[] | undefined;
  rows(values: readonly Value[]): Value[][];
}

/** One connection. No method waits: a lock of another connection is an error at once. */
export interface Database {
  readonly inTransaction: boolean;
  prepare(sql: string): Statement;
  exec(sql: string): void;
  close(): void;
}

export interface Driver {
  readonly name: 'node' | 'libsql';
  open(path: string): Database;
  /**
   * Runs statements on another thread, over a connection of its own, which waits this long for a
   * lock.
   */
  execAside(path: string, sql: string, lockWaitMs: number): Promise<void>;
  /** A log of at most this size is left to the close of the last connection. */
  readonly shortLogBytes: number;
}

/** Which driver to use. Without it: `node` on every Node that has it, else `libsql`. */
const VARIABLE = 'HOLDFAST_SQLITE_DRIVER';

let loaded: Driver | null = null;

/** Returns the driver of this process, which the first call loads. Throws if there is none. */
export function sqliteDriver(): Driver {
  loaded ??= load(process.env[VARIABLE]);
  return loaded;
}

function load(wanted: string | undefined): Driver {
  if (wanted === undefined || wanted === '') return nodeDriver() ?? libsqlDriver();
  if (wanted === 'libsql') return libsqlDriver();
  if (wanted !== 'node')
    throw new ConfigError({
      field: VARIABLE,
      value: wanted,
      rule: "it must be 'node' or 'libsql'",
    });
  const driver = nodeDriver();
  if (driver !== null) return driver;
  throw new Error(`Node ${process.versions.node} has no node:sqlite`);
}

/** Throws if there is no driver, before any file is made. */
export function checkDriver(store: string): void {
  try {
    sqliteDriver();
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const why = error instanceof Error ? error.message.split('\n', 1)[0] : String(error);
    const problem =
      `The embedded store needs Node 22.13 or later, or the package libsql, which cannot be loaded here (${why}). ` +
      "Use such a Node, run 'npm install libsql' on this platform, or use Redis, Valkey or PostgreSQL.";
    throw new StoreUnsuitableError({ store, problems: [problem] });
  }
}
