import { accessSync, constants } from 'node:fs';
import { basename } from 'node:path';
import type { Clock } from '../../../core/clock.ts';
import { ClosedError, StoreUnreachableError, StoreUnsuitableError } from '../../../core/errors.ts';
import type { Emitter } from '../../../core/events.ts';
import { fenceTime } from '../../fence-time.ts';
import { completeTables, isNew, makeTables } from '../tables/schema.ts';
import { Checkpoints } from './checkpoints.ts';
import { asFailure, isBroken, isBusy, type Stage } from './failures.ts';
import { judgeFileSystem } from './file-system.ts';
import type { Host } from './host.ts';
import { OpenLogs } from './open-logs.ts';
import {
  ensureFile,
  ensureFolder,
  hasLog,
  type Identity,
  identityOf,
  isMountPoint,
  logMark,
  nameCount,
} from './place.ts';
import { SqliteConnection, type Tx } from './sqlite-connection.ts';
import type { StoreClock } from './store-clock.ts';

/** A log that had to grow beyond this, because somebody stood still while reading, is cut back afterwards. */
const LOG_BYTES = 32 * 2 ** 20;
/** How often a connection looks whether its log is still there, at most. */
const LOG_LOOK_MS = 10;
/** How long closing waits for the log to be written back. */
const CLOSE_MS = 500;

const openLogs = new OpenLogs();
/** Never closed, so never collected: see `DatabaseFile.#letGo`. */
const withLostLogs = new Set<SqliteConnection>();

export interface DatabaseFileOptions {
  /** As it was given: it may lead to the file over links. */
  readonly given: string;
  readonly path: string;
  readonly name: string;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly marker: StoreClock;
  readonly host: Host;
  readonly fileSystemType: (folder: string) => number;
  /** Whether a file that does not exist is made. */
  readonly mayCreate: boolean;
}

/** The file, opened when it is needed, and again when it has been replaced or could not be used any more. */
export class DatabaseFile {
  readonly #options: DatabaseFileOptions;
  readonly #checkpoints: Checkpoints;
  #session: SqliteConnection | null = null;
  #identity = '';
  #log = '';
  #logFoundMs = Number.NEGATIVE_INFINITY;
  /** A connection that could not be made ready yet, because of a lock. */
  #unready: { session: SqliteConnection; mark: string } | null = null;
  #isClosed = false;
  readonly #fenceTime = () => fenceTime(this.#options.clock);
  /** Counts the openings: who remembers something about the connection can tell that it is another one. */
  generation = 0;

  constructor(options: DatabaseFileOptions) {
    this.#options = options;
    this.#checkpoints = new Checkpoints(options.path, options.clock);
  }

  /**
   * Runs `work` in a transaction, now; opens the file first if need be. What it throws says what happened: `isBusy`
   * for a lock that somebody else holds, else one of our errors; nothing has happened then, unless it says otherwise.
   */
  transaction<T>(operation: string, kind: 'read' | 'write', work: (tx: Tx) => T): T {
    const { clock, marker } = this.#options;
    const beganMs = clock.monotonicMs();
    let stage: Stage = 'open';
    try {
      const session = this.#opened(operation);
      session.exec(kind === 'write' ? 'BEGIN IMMEDIATE' : 'BEGIN');
      const nowMs = marker.check(session, this.#hostMs(), kind === 'write');
      stage = 'work';
      const tx: Tx = {
        session,
        nowMs,
        wallMs: clock.wallMs(),
        fenceTime: this.#fenceTime,
        after: [],
      };
      const result = work(tx);
      stage = 'commit';
      session.exec('COMMIT');
      if (kind === 'write') this.#checkpoints.look();
      for (const run of tx.after) run();
      return result;
    } catch (error) {
      this.#rollBack();
      if (isBusy(error)) throw error;
      if (isBroken(error)) this.drop((error as Error).message);
      const where = { store: this.#options.name, operation };
      throw asFailure(error, where, stage, clock.monotonicMs() - beganMs);
    }
  }

  /** Refuses a file that is not there, at once: for a process that makes none. */
  checkThere(): void {
    const { name: store, path, mayCreate } = this.#options;
    if (mayCreate || (identityOf(path)?.stats.size ?? 0) > 0) return;
    const why = 'there is no such store, and what only looks does not make one';
    throw new StoreUnreachableError({ store, operation: 'connect', why });
  }

  /** What has been committed by others since it was last asked; null without a connection. Reads one number. */
  dataVersion(): number | null {
    try {
      return this.#session?.row<[number]>('PRAGMA data_version')?.[0] ?? null;
    } catch {
      // Whatever it is, the next transaction finds it, too.
      return null;
    }
  }

  /** Gives up the connection; the next transaction makes another one. */
  drop(why: string): void {
    const session = this.#session;
    if (session === null) return;
    this.#session = null;
    this.#letGo(session);
    const { events, name } = this.#options;
    events.emit('store.disconnected', { store: name, why });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const session = this.#session;
    this.#session = null;
    this.#unready?.session.close();
    this.#unready = null;
    if (session === null) return;
    // Leaves an empty log, if nobody else is at work; but nobody waits for a slow disk for long.
    if (!this.#hasLostLog())
      await doneOrLate(this.#options.clock, CLOSE_MS, this.#checkpoints.run());
    this.#letGo(session);
  }

  /** The host's monotonic time: the same for all its processes, whatever time namespaces they run in. */
  #hostMs(): number {
    const { clock, host } = this.#options;
    return clock.monotonicMs() - host.clockAheadMs;
  }

  /** Whether the connection writes to a log that other processes do not find. */
  #hasLostLog(): boolean {
    const { path } = this.#options;
    return identityOf(path)?.mark === this.#identity && logMark(path) !== this.#log;
  }

  /**
   * Closes a connection, unless its log is lost. SQLite, as it closes, writes the log back to the file and removes
   * what has its name: pages of a lost log would overwrite what others have written since.
   */
  #letGo(session: SqliteConnection): void {
    if (this.#hasLostLog()) withLostLogs.add(session.atRest());
    else {
      openLogs.leave(this.#identity);
      session.close();
    }
  }

  #rollBack(): void {
    try {
      if (this.#session?.inTransaction) this.#session.exec('ROLLBACK');
    } catch (error) {
      this.drop(`a transaction could not be rolled back: ${(error as Error).message}`);
    }
  }

  /** The connection to the file that has the name now. */
  #opened(operation: string): SqliteConnection {
    if (this.#isClosed) throw new ClosedError({ operation });
    const { path } = this.#options;
    const identity = identityOf(path);
    if (this.#session !== null && identity?.mark === this.#identity) {
      this.#checkNames(identity);
      this.#checkLog();
      return this.#session;
    }
    this.drop('the file was deleted or replaced');
    const session = this.#open(operation);
    this.#session = session;
    this.generation++;
    const { events, name } = this.#options;
    events.emit('store.connected', { store: name });
    return session;
  }

  #open(operation: string): SqliteConnection {
    const { name, path, fileSystemType, mayCreate } = this.#options;
    const gone = (why: string) =>
      new StoreUnreachableError({ store: name, operation, why }, { cause: new Error(why) });
    if (!mayCreate && identityOf(path) === null) throw gone('the file does not exist');
    const folder = ensureFolder(path);
    const { level, fact, advice } = judgeFileSystem(fileSystemType(folder));
    if (level === 'refuse')
      throw new StoreUnsuitableError({ store: name, problems: [fact, advice ?? ''] });
    if (!ensureFile(path)) throw gone('another process is just making the file');
    const identity = identityOf(path);
    if (identity === null) throw gone('the file vanished while it was opened');
    if (!identity.stats.isFile())
      throw new StoreUnsuitableError({ store: name, problems: ['This is not a file.'] });
    this.#checkNames(identity);
    if (isMountPoint(path)) throw this.#unsuitable(MOUNTED);
    // The connections of a process share one log: a second one must not bring another.
    if (!openLogs.fits(identity.mark, logMark(path))) throw this.#unsuitable(lostLog(path));
    // SQLite would open it all the same, and fail later in words that say less.
    accessSync(path, constants.R_OK | constants.W_OK);
    accessSync(folder, constants.W_OK);
    // Opening would begin a new log beside theirs.
    if (!hasLog(path) && isInUse(path)) throw gone(usedLogGone(path));
    const session =
      this.#unready?.mark === identity.mark ? this.#unready.session : new SqliteConnection(path);
    this.#unready = null;
    try {
      const tell = this.#prepare(session, identity.inode);
      if (identityOf(path)?.mark !== identity.mark)
        throw gone('the file was replaced while it was opened');
      tell();
      this.#identity = identity.mark;
      this.#log = logMark(path);
      this.#logFoundMs = this.#options.clock.monotonicMs();
      openLogs.enter(this.#identity, this.#log);
      return session;
    } catch (error) {
      // A connection that only met a lock is used again: closed ones keep their handles until the garbage is collected.
      if (isBusy(error)) this.#unready = { session: session.atRest(), mark: identity.mark };
      else session.close();
      throw error;
    }
  }

  /** A log lies beside the name under which its file was opened: two names would be two logs, each with leases of its own. */
  #checkNames(identity: Identity): void {
    const { given, path } = this.#options;
    const count = nameCount(path, identity);
    if (count > 1) throw this.#unsuitable(twoNames(count));
    if (given !== path && identityOf(given)?.mark !== identity.mark)
      throw this.#unsuitable(ledElsewhere(given, path));
  }

  /** No hurry is needed: nobody can begin another log while this process has the file open (`isInUse`). */
  #checkLog(): void {
    const { clock, path } = this.#options;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#logFoundMs < LOG_LOOK_MS) return;
    if (logMark(path) !== this.#log) throw this.#unsuitable(lostLog(path));
    this.#logFoundMs = nowMs;
  }

  /** For what lets two processes hold one lease. */
  #unsuitable(problem: string): StoreUnsuitableError {
    const { name: store } = this.#options;
    return new StoreUnsuitableError({ store, problems: [problem], voidsLeases: true });
  }

  /** Makes the file ours if it is new, and has the marker look at it; gives what to tell then. */
  #prepare(session: SqliteConnection, inode: string): () => void {
    const { name, marker, mayCreate } = this.#options;
    const isEmpty = isNew(session, name);
    if (isEmpty && !mayCreate)
      throw new StoreUnsuitableError({ store: name, problems: [NOT_A_STORE] });
    if (session.look('PRAGMA journal_mode') !== 'wal') session.exec('PRAGMA journal_mode = WAL');
    if (session.look('PRAGMA journal_mode') !== 'wal')
      throw new StoreUnsuitableError({ store: name, problems: [NO_LOG] });
    session.exec(PRAGMAS);
    session.exec('BEGIN IMMEDIATE');
    // Somebody else may have made it since.
    if (isEmpty && isNew(session, name)) makeTables(session);
    completeTables(session);
    const tell = marker.examine(session, inode, this.#hostMs());
    session.exec('COMMIT');
    return tell;
  }
}

/**
 * NORMAL does not wait for the disk at every commit: the file stays whole when the host loses power, but its last commits may be
 * missing. For leases that costs nothing: another start of the host voids every lease, and fences are made from the time, so
 * none is given twice. For the rest see `LogSync`. What a process has committed survives the process in any case.
 */
const PRAGMAS = `
PRAGMA synchronous = NORMAL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = ${LOG_BYTES};
`;
const NO_LOG =
  'SQLite can not keep a write-ahead log here: the file system lacks shared memory. Put the file on a local disk.';

const NOT_A_STORE =
  'The file is not a store of Holdfast, and this process makes none. Check the path.';

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
  return `${given} led to ${path} when this process opened it, and does not any more. Restart this process.`;
}

function usedLogGone(path: string): string {
  const file = basename(path);
  return `${file}-wal or ${file}-shm is missing, and a process still uses the file with it: restart that process`;
}

function lostLog(path: string): string {
  const file = basename(path);
  return (
    `${file}-wal or ${file}-shm was removed or replaced while this process had it open. Restart every process ` +
    'that uses the file. What was written last may be missing.'
  );
}

/** Whether any connection to the file is open, in this process or in another one. SQLite asks the kernel's locks. */
function isInUse(path: string): boolean {
  const session = new SqliteConnection(path);
  try {
    session.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK');
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  } finally {
    // Nothing was prepared, so this gives the lock back at once.
    session.close();
  }
}

/** Waits until it is done or the time is up, and leaves no timer behind. */
function doneOrLate(clock: Clock, ms: number, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, resolve);
    void work.then(() => {
      timer.cancel();
      resolve();
    });
  });
}
