import { accessSync, constants } from 'node:fs';
import { basename } from 'node:path';
import { type Clock, isDoneWithin } from '../../../core/clock.ts';
import { ClosedError, StoreUnreachableError, StoreUnsuitableError } from '../../../core/errors.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import { fenceTime } from '../../fence-time.ts';
import { sqliteDriver } from '../driver/driver.ts';
import { completeTables, isNew, makeTables } from '../tables/schema.ts';
import { asStoreError, isBroken, isBusy, type Stage } from './failures.ts';
import { judgeFileSystem } from './file-system.ts';
import type { SqliteOptions } from './options.ts';
import {
  ensureFile,
  ensureFolder,
  type FileLocation,
  hasLog,
  type Identity,
  identityOf,
  isMountPoint,
  logBytes,
  logMark,
  nameCount,
} from './place.ts';
import { SqliteConnection, type Tx } from './sqlite-connection.ts';
import type { StoreClock } from './store-clock.ts';

/** A log of this size is written back to the file. It has about four thousand pages. */
const LONG_LOG_BYTES = 16 * 2 ** 20;
/** SQLite truncates a log that grew beyond this, because a reader was stopped, afterwards. */
const MAX_LOG_BYTES = 32 * 2 ** 20;
/** The size of the log is read at most this often. */
const CHECK_SIZE_MS = 10;
/** A checkpoint waits this long for the lock, on a thread of its own. */
const LOCK_WAIT_MS = 50;
/** After a checkpoint that could not finish, the next one begins no sooner than this. */
const RETRY_MS = 250;
/** A connection checks at most this often whether its log is still there. */
const CHECK_LOG_MS = 10;
/** `close` waits this long for the log to be written back. */
const CLOSE_MS = 500;

/**
 * The logs that this process has open, by the mark of their file. SQLite has one log per file and
 * process. A connection opened after the log was removed would read the index of the removed log
 * with the content of the new one.
 */
const openLogs = new Map<string, { readonly log: string; users: number }>();
/** Never closed, so never garbage-collected: see `FileConnection.#closeConnection`. */
const withLostLogs = new Set<SqliteConnection>();

/**
 * The connection of a store to its file. The first transaction opens it, and a later one opens it
 * again if the file was replaced or broke.
 */
export class FileConnection {
  readonly location: FileLocation;
  readonly #rt: BaseRuntime;
  readonly #clock: Clock;
  readonly #storeClock: StoreClock;
  readonly #options: SqliteOptions;
  #connection: SqliteConnection | null = null;
  #identity = '';
  #log = '';
  #logCheckedAtMs = Number.NEGATIVE_INFINITY;
  /** A connection whose preparation met a lock. The next attempt uses it again. */
  #unready: { connection: SqliteConnection; mark: string } | null = null;
  /** The next checkpoint begins no sooner than this. */
  #checkpointAtMs = Number.NEGATIVE_INFINITY;
  #checkpoint: Promise<void> | null = null;
  #isClosed = false;
  readonly #fenceTime = () => fenceTime(this.#clock);
  /** Counts the connections, so that a caller can tell that there is a new one. */
  generation = 0;

  constructor(
    rt: BaseRuntime,
    location: FileLocation,
    storeClock: StoreClock,
    options: SqliteOptions,
  ) {
    this.location = location;
    this.#rt = rt;
    this.#clock = rt.clock;
    this.#storeClock = storeClock;
    this.#options = options;
  }

  /**
   * Runs `work` in a transaction at once, and opens the file first if needed. Throws an `isBusy`
   * error if another connection holds the lock, else a HoldfastError. The file is unchanged then,
   * except after an OutcomeUnknownError.
   */
  transaction<T>(operation: string, kind: 'read' | 'write', work: (tx: Tx) => T): T {
    const clock = this.#clock;
    const beganMs = clock.monotonicMs();
    let stage: Stage = 'open';
    try {
      const connection = this.#opened(operation);
      connection.exec(kind === 'write' ? 'BEGIN IMMEDIATE' : 'BEGIN');
      const nowMs = this.#storeClock.check(connection, this.#hostMs(), kind === 'write');
      stage = 'work';
      const tx: Tx = {
        connection,
        scope: this.#options.prefix,
        nowMs,
        wallMs: clock.wallMs(),
        fenceTime: this.#fenceTime,
        afterCommit: [],
      };
      const result = work(tx);
      stage = 'commit';
      connection.exec('COMMIT');
      if (kind === 'write') this.#shortenLog();
      for (const run of tx.afterCommit) run();
      return result;
    } catch (error) {
      this.#rollBack();
      if (isBusy(error)) throw error;
      if (isBroken(error)) this.drop((error as Error).message);
      const where = { store: this.location.name, operation };
      throw asStoreError(error, where, stage, clock.monotonicMs() - beganMs);
    }
  }

  /** Throws if the file is missing and this process may not make it. */
  checkExists(): void {
    const { name: store, path } = this.location;
    if (this.#options.create || (identityOf(path)?.stats.size ?? 0) > 0) return;
    const why = 'the file does not exist, and a process that only reads does not create it';
    const advice =
      "Start what uses it, such as 'holdfast up' or 'holdfast run', or name another store with --store or HOLDFAST_STORE";
    throw new StoreUnreachableError({ store, operation: 'connect', why, advice });
  }

  /** Returns a number that changes when another connection commits; null without a connection. */
  dataVersion(): number | null {
    try {
      return this.#connection?.row<[number]>('PRAGMA data_version')?.[0] ?? null;
    } catch {
      // The next transaction meets the same error and reports it.
      return null;
    }
  }

  /** Closes the connection. The next transaction opens a new one. */
  drop(why: string): void {
    const connection = this.#connection;
    if (connection === null) return;
    this.#connection = null;
    this.#closeConnection(connection);
    this.#rt.events.emit('store.disconnected', { store: this.location.name, why });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const connection = this.#connection;
    this.#connection = null;
    this.#unready?.connection.close();
    this.#unready = null;
    if (connection === null) return;
    // Empties the log unless another process is using it. A slow disk delays `close` only briefly.
    const isLong = logBytes(this.location.path) > sqliteDriver().shortLogBytes;
    if (isLong && !this.#hasLostLog()) await isDoneWithin(this.#clock, CLOSE_MS, this.#writeBack());
    this.#closeConnection(connection);
  }

  /** Begins to write the log back if it is long. Called after each commit. */
  #shortenLog(): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#checkpoint !== null || nowMs < this.#checkpointAtMs) return;
    this.#checkpointAtMs = nowMs + CHECK_SIZE_MS;
    if (logBytes(this.location.path) >= LONG_LOG_BYTES) void this.#writeBack();
  }

  /** Writes the log back. Resolves when the checkpoint has ended or failed. Never rejects. */
  #writeBack(): Promise<void> {
    const { path } = this.location;
    this.#checkpoint ??= writeLogBack(path).finally(() => {
      this.#checkpoint = null;
      if (logBytes(path) >= LONG_LOG_BYTES)
        this.#checkpointAtMs = this.#clock.monotonicMs() + RETRY_MS;
    });
    return this.#checkpoint;
  }

  /** Returns the host's monotonic time, which is the same in all time namespaces. */
  #hostMs(): number {
    return this.#clock.monotonicMs() - this.#options.host.clockAheadMs;
  }

  /** Whether the connection writes to a log that other processes cannot find. */
  #hasLostLog(): boolean {
    const { path } = this.location;
    return identityOf(path)?.mark === this.#identity && logMark(path) !== this.#log;
  }

  /**
   * Closes a connection, unless its log is lost. SQLite writes the log back to the file when it
   * closes, and removes the log's names: the pages of a lost log would overwrite later changes of
   * other processes.
   */
  #closeConnection(connection: SqliteConnection): void {
    if (this.#hasLostLog()) withLostLogs.add(connection.rolledBack());
    else {
      leaveLog(this.#identity);
      connection.close();
    }
  }

  #rollBack(): void {
    try {
      if (this.#connection?.inTransaction) this.#connection.exec('ROLLBACK');
    } catch (error) {
      this.drop(`a transaction could not be rolled back: ${(error as Error).message}`);
    }
  }

  /** Returns a connection to the file that has the name now. */
  #opened(operation: string): SqliteConnection {
    if (this.#isClosed) throw new ClosedError({ operation });
    const identity = identityOf(this.location.path);
    if (this.#connection !== null && identity?.mark === this.#identity) {
      this.#checkNames(identity);
      this.#checkLog();
      return this.#connection;
    }
    this.drop('the file was deleted or replaced');
    const connection = this.#open(operation);
    this.#connection = connection;
    this.generation++;
    this.#rt.events.emit('store.connected', { store: this.location.name });
    return connection;
  }

  #open(operation: string): SqliteConnection {
    const { name, path } = this.location;
    const gone = (why: string) =>
      new StoreUnreachableError({ store: name, operation, why }, { cause: new Error(why) });
    if (!this.#options.create && identityOf(path) === null) throw gone('the file does not exist');
    const folder = ensureFolder(path);
    const { level, fact, advice } = judgeFileSystem(this.#options.fileSystemType(folder));
    if (level === 'refuse')
      throw new StoreUnsuitableError({ store: name, problems: [fact, advice ?? ''] });
    if (!ensureFile(path)) throw gone('another process is making the file just now');
    const identity = identityOf(path);
    if (identity === null) throw gone('the file was deleted while it was opened');
    if (!identity.stats.isFile())
      throw new StoreUnsuitableError({ store: name, problems: [NOT_A_FILE] });
    this.#checkNames(identity);
    if (isMountPoint(path)) throw this.#unsuitable(MOUNTED);
    // The connections of a process share one log: a second connection must not open another log.
    const log = logMark(path);
    if ((openLogs.get(identity.mark)?.log ?? log) !== log) throw this.#unsuitable(lostLog(path));
    // SQLite would open the file anyway, and fail later with a message that says less.
    accessSync(path, constants.R_OK | constants.W_OK);
    accessSync(folder, constants.W_OK);
    // Opening would begin a second log beside the one that the other process uses.
    if (!hasLog(path) && isInUse(path)) throw gone(usedLogGone(path));
    const connection =
      this.#unready?.mark === identity.mark ? this.#unready.connection : new SqliteConnection(path);
    this.#unready = null;
    try {
      const emitFindings = this.#prepare(connection, identity.inode);
      if (identityOf(path)?.mark !== identity.mark)
        throw gone('the file was replaced while it was opened');
      emitFindings();
      this.#identity = identity.mark;
      this.#log = logMark(path);
      this.#logCheckedAtMs = this.#clock.monotonicMs();
      enterLog(this.#identity, this.#log);
      return connection;
    } catch (error) {
      // A connection that met a lock is used again: a closed one keeps its file handles until it is
      // garbage-collected.
      if (isBusy(error))
        this.#unready = { connection: connection.rolledBack(), mark: identity.mark };
      else connection.close();
      throw error;
    }
  }

  /** SQLite keeps the log beside the name it opened: a second name has its own log and leases. */
  #checkNames(identity: Identity): void {
    const { given, path } = this.location;
    const count = nameCount(path, identity);
    if (count > 1) throw this.#unsuitable(twoNames(count));
    if (given !== path && identityOf(given)?.mark !== identity.mark)
      throw this.#unsuitable(ledElsewhere(given, path));
  }

  /** Rarely is enough: no process begins another log while this one uses the file (`isInUse`). */
  #checkLog(): void {
    const { path } = this.location;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#logCheckedAtMs < CHECK_LOG_MS) return;
    if (logMark(path) !== this.#log) throw this.#unsuitable(lostLog(path));
    this.#logCheckedAtMs = nowMs;
  }

  /** For a file on which two processes could hold one lease. */
  #unsuitable(problem: string): StoreUnsuitableError {
    const { name: store } = this.location;
    return new StoreUnsuitableError({ store, problems: [problem], voidsLeases: true });
  }

  /** Makes the tables of a new file, and examines its marker. The result emits the findings. */
  #prepare(connection: SqliteConnection, inode: string): () => void {
    const { name } = this.location;
    const { create, unfinished } = this.#options;
    const isEmpty = isNew(connection, name, unfinished);
    if (isEmpty && !create)
      throw new StoreUnsuitableError({ store: name, problems: [NOT_A_STORE] });
    if (connection.value('PRAGMA journal_mode') !== 'wal')
      connection.exec('PRAGMA journal_mode = WAL');
    if (connection.value('PRAGMA journal_mode') !== 'wal')
      throw new StoreUnsuitableError({ store: name, problems: [NO_LOG] });
    connection.exec(PRAGMAS);
    connection.exec('BEGIN IMMEDIATE');
    // Another process may have made them since.
    if (isEmpty && isNew(connection, name, unfinished)) makeTables(connection);
    completeTables(connection);
    const emitFindings = this.#storeClock.examine(connection, inode, this.#hostMs());
    connection.exec('COMMIT');
    return emitFindings;
  }
}

/**
 * NORMAL does not wait for the disk at every commit. After a power loss the file is consistent, but
 * its last commits may be missing. Leases lose nothing by that: another start of the host voids
 * every lease, and fences are made from the time, so none is minted twice. For other data see
 * `DurableQueue`. A commit survives the death of its process in any case.
 */
const PRAGMAS = `
PRAGMA synchronous = NORMAL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = ${MAX_LOG_BYTES};
`;
const NOT_A_FILE = 'The path is a folder or a device. Give the path of a file.';

const NO_LOG =
  'SQLite cannot keep a write-ahead log here, because the file system has no shared memory. ' +
  'Put the file on a local disk.';

const NOT_A_STORE =
  'The file is not a Holdfast store, and this process may not make one. Check the path.';

const MOUNTED =
  'The file itself is a mount point (a bind mount of one file). Its log would stay on this side of the mount, ' +
  'and other processes would not see it. Mount the folder that contains the file instead.';

function twoNames(count: number): string {
  return (
    `The file has ${count} names (hard links), and each of them would have a log and leases of its own. ` +
    'Remove the other names. To share the file, share the folder that contains it.'
  );
}

function ledElsewhere(given: string, path: string): string {
  return `${given} led to ${path} when this process opened it, and no longer does. Restart this process.`;
}

function usedLogGone(path: string): string {
  const file = basename(path);
  return `${file}-wal or ${file}-shm is missing, but another process still uses it: restart that process`;
}

function lostLog(path: string): string {
  const file = basename(path);
  return (
    `${file}-wal or ${file}-shm was removed or replaced while this process had it open. Restart every process ` +
    'that uses the file. The last writes may be missing.'
  );
}

/**
 * The first checkpoint writes most pages back without the lock, the second the rest with it. The
 * first commit to a new log waits for the disk again. So that commit is made here, with an update
 * that changes nothing.
 */
const WRITE_BACK = `
PRAGMA synchronous = NORMAL;
PRAGMA wal_checkpoint(PASSIVE);
PRAGMA wal_checkpoint(TRUNCATE);
UPDATE marker SET latest = latest;
`;

/**
 * Writes the log back to the file, and empties it. SQLite would do that within a COMMIT, and two
 * fsyncs would block that process's event loop for as long as the disk takes. So it runs on another
 * thread, over a connection of its own. Other calls meet its lock as any other.
 *
 * A process that was stopped while reading keeps the log from being emptied. The log grows until
 * that process continues or ends.
 */
async function writeLogBack(path: string): Promise<void> {
  try {
    if (logBytes(path) > 0) await sqliteDriver().execAside(path, WRITE_BACK, LOCK_WAIT_MS);
  } catch {
    // A full disk or a missing file: the next write reports it.
  }
}

/** Whether a connection to the file is open in any process. SQLite asks the kernel's locks. */
function isInUse(path: string): boolean {
  const connection = new SqliteConnection(path);
  try {
    connection.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK');
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  } finally {
    // No statement was prepared, so this releases the lock at once.
    connection.close();
  }
}

function enterLog(file: string, log: string): void {
  const known = openLogs.get(file);
  if (known === undefined) openLogs.set(file, { log, users: 1 });
  else known.users++;
}

function leaveLog(file: string): void {
  const known = openLogs.get(file);
  if (known !== undefined && --known.users === 0) openLogs.delete(file);
}
