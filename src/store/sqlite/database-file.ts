import { accessSync, constants } from 'node:fs';
import type { Clock } from '../../base/clock.ts';
import { ClosedError, StoreUnreachableError, StoreUnsuitableError } from '../../base/errors.ts';
import type { Emitter } from '../../base/events.ts';
import { Checkpoints } from './checkpoints.ts';
import { asFailure, isBroken, isBusy, type Stage } from './failures.ts';
import { judgeFileSystem } from './file-system.ts';
import type { Marker } from './marker.ts';
import { ensureFile, ensureFolder, identityOf } from './place.ts';
import { completeTables, isNew, makeTables } from './schema.ts';
import { Session, type Tx } from './session.ts';

/** A log that had to grow beyond this, because somebody stood still while reading, is cut back afterwards. */
const LOG_BYTES = 32 * 2 ** 20;
/** How long closing waits for the log to be written back. */
const CLOSE_MS = 500;

export interface DatabaseFileOptions {
  readonly path: string;
  readonly name: string;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly marker: Marker;
  readonly fileSystemType: (folder: string) => number;
}

/** The file, opened when it is needed, and again when it has been replaced or could not be used any more. */
export class DatabaseFile {
  readonly #options: DatabaseFileOptions;
  readonly #checkpoints: Checkpoints;
  #session: Session | null = null;
  #identity = '';
  /** A connection that could not be made ready yet, because of a lock. */
  #unready: { session: Session; mark: string } | null = null;
  #isClosed = false;
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
      stage = 'work';
      session.exec(kind === 'write' ? 'BEGIN IMMEDIATE' : 'BEGIN');
      const nowMs = marker.check(session, clock.monotonicMs(), kind === 'write');
      const tx: Tx = { session, nowMs, wallMs: clock.wallMs(), after: [] };
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
    session.close();
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
    await doneOrLate(this.#options.clock, CLOSE_MS, this.#checkpoints.run());
    session.close();
  }

  #rollBack(): void {
    try {
      if (this.#session?.inTransaction) this.#session.exec('ROLLBACK');
    } catch (error) {
      this.drop(`a transaction could not be rolled back: ${(error as Error).message}`);
    }
  }

  /** The connection to the file that has the name now. */
  #opened(operation: string): Session {
    if (this.#isClosed) throw new ClosedError(operation);
    if (this.#session !== null && identityOf(this.#options.path)?.mark === this.#identity)
      return this.#session;
    this.drop('the file was deleted or replaced');
    const session = this.#open(operation);
    this.#session = session;
    this.generation++;
    const { events, name } = this.#options;
    events.emit('store.connected', { store: name });
    return session;
  }

  #open(operation: string): Session {
    const { name, path, fileSystemType } = this.#options;
    const gone = (why: string) =>
      new StoreUnreachableError({ store: name, operation, why }, { cause: new Error(why) });
    const folder = ensureFolder(path);
    const { level, fact, advice } = judgeFileSystem(fileSystemType(folder));
    if (level === 'refuse')
      throw new StoreUnsuitableError({ store: name, problems: [fact, advice ?? ''] });
    if (!ensureFile(path)) throw gone('another process is just making the file');
    const identity = identityOf(path);
    if (identity === null) throw gone('the file vanished while it was opened');
    if (!identity.stats.isFile())
      throw new StoreUnsuitableError({ store: name, problems: ['This is not a file.'] });
    // SQLite would open it all the same, and fail later in words that say less.
    accessSync(path, constants.R_OK | constants.W_OK);
    accessSync(folder, constants.W_OK);
    const session =
      this.#unready?.mark === identity.mark ? this.#unready.session : new Session(path);
    this.#unready = null;
    try {
      const tell = this.#prepare(session, identity.inode);
      if (identityOf(path)?.mark !== identity.mark)
        throw gone('the file was replaced while it was opened');
      tell();
      this.#identity = identity.mark;
      return session;
    } catch (error) {
      // A connection that only met a lock is used again: closed ones keep their handles until the garbage is collected.
      if (isBusy(error)) this.#unready = { session: session.atRest(), mark: identity.mark };
      else session.close();
      throw error;
    }
  }

  /** Makes the file ours if it is new, and has the marker look at it; gives what to tell then. */
  #prepare(session: Session, inode: string): () => void {
    const { clock, name, marker } = this.#options;
    const isEmpty = isNew(session, name);
    if (session.look('PRAGMA journal_mode') !== 'wal') session.exec('PRAGMA journal_mode = WAL');
    if (session.look('PRAGMA journal_mode') !== 'wal')
      throw new StoreUnsuitableError({ store: name, problems: [NO_LOG] });
    session.exec(PRAGMAS);
    session.exec('BEGIN IMMEDIATE');
    // Somebody else may have made it since.
    if (isEmpty && isNew(session, name)) makeTables(session);
    completeTables(session);
    const tell = marker.examine(session, inode, clock.monotonicMs());
    session.exec('COMMIT');
    return tell;
  }
}

/**
 * NORMAL does not wait for the disk at every commit: the file stays whole when the host loses power, but its last commits may be
 * missing. That costs nothing here. Another start of the host voids every lease, and fences are made from the time, so
 * none is given twice. What a process has committed survives the process in any case.
 */
const PRAGMAS = `
PRAGMA synchronous = NORMAL;
PRAGMA wal_autocheckpoint = 0;
PRAGMA journal_size_limit = ${LOG_BYTES};
`;
const NO_LOG =
  'SQLite can not keep a write-ahead log here: the file system lacks shared memory. Put the file on a local disk.';

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
