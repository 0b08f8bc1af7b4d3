import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Clock, isDoneWithin, type Timer } from '../../../core/clock.ts';
import { ConfigError, OutcomeUnknownError } from '../../../core/errors.ts';
import type { Emitter } from '../../../core/events.ts';
import type { Call } from '../../port/store.ts';
import type { Batch, Transactions } from './lock-queue.ts';
import type { Tx } from './sqlite-connection.ts';

/** `everysec`: what is durable is on the disk within a second. `always`: it is there before its caller has an answer. */
export type SyncMode = 'everysec' | 'always';

export function checkSync(mode: unknown): asserts mode is SyncMode {
  if (mode !== 'everysec' && mode !== 'always')
    throw new ConfigError({ field: 'sync', value: mode, rule: "it is 'everysec' or 'always'" });
}

/** From a commit until the log is synced; with the sync itself that is less than a second, unless the disk is slow. */
const SYNC_AFTER_MS = 500;

export interface LogSyncParts {
  readonly path: string;
  readonly name: string;
  readonly clock: Clock;
  readonly events: Emitter;
  readonly mode: SyncMode;
  /** Resolves when everything that was written to the log of this file before is on the disk. */
  readonly sync: (path: string) => Promise<void>;
}

/**
 * Brings the log of the file to the disk. SQLite would wait for the disk only when it writes the log back, which takes 16 MB of changes.
 * A sync covers whatever any process has written to the log before.
 */
export class LogSync {
  readonly #parts: LogSyncParts;
  #timer: Timer | null = null;
  /** Never rejects. */
  #running: Promise<unknown> = Promise.resolve();
  /** One that has yet to begin: it covers all that is committed until then. */
  #next: Promise<void> | null = null;
  #hasWarned = false;

  constructor(parts: LogSyncParts) {
    this.#parts = parts;
  }

  /** Something durable was committed. */
  committed(): void {
    if (this.#timer !== null || this.#parts.mode === 'always') return;
    this.#timer = this.#parts.clock.after(SYNC_AFTER_MS, () => void this.#soon());
  }

  /** Resolves when all that has been committed is on the disk. One sync is under way at a time, for as many as wait for it. */
  now(): Promise<void> {
    this.#next ??= this.#afterRunning();
    return this.#next;
  }

  /** What still waits to be synced is synced now. Never rejects. */
  async flush(): Promise<void> {
    if (this.#timer !== null) await this.#soon();
    await this.#running;
  }

  /** Never rejects: its callers have their answers already. */
  async #soon(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = null;
    await this.now().catch((error: unknown) => this.#warn(error));
  }

  async #afterRunning(): Promise<void> {
    await this.#running;
    this.#next = null;
    const { sync, path } = this.#parts;
    const synced = sync(path);
    this.#running = synced.catch(() => {});
    return synced;
  }

  #warn(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const { events, name: store } = this.#parts;
    const finding = `The log could not be brought to the disk: ${(error as Error).message}.`;
    const advice = 'A loss of power would take what was written last. Look at the disk.';
    events.emit('store.warned', { store, finding, advice });
  }
}

/** Transactions that write what has to outlive a loss of power: not leases, members or signals, which a start of the host voids anyway. */
export class DurableTransactions implements Transactions {
  readonly #turns: Transactions;
  readonly #sync: LogSync;
  readonly #parts: LogSyncParts;

  constructor(turns: Transactions, sync: LogSync, parts: LogSyncParts) {
    this.#turns = turns;
    this.#sync = sync;
    this.#parts = parts;
  }

  read<R>(batch: Batch<R>, call: Call): Promise<R[]> {
    return this.#turns.read(batch, call);
  }

  readOne<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R> {
    return this.#turns.readOne(operation, call, each);
  }

  async write<R>(batch: Batch<R>, call: Call): Promise<R[]> {
    const sentMs = this.#parts.clock.monotonicMs();
    let replies: R[];
    try {
      replies = await this.#turns.write(batch, call);
    } finally {
      // A batch that failed may have been carried out in part.
      this.#sync.committed();
    }
    if (this.#parts.mode === 'always') await this.#settled(batch.operation, sentMs, call);
    return replies;
  }

  async writeOne<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R> {
    return (await this.write({ operation, count: 1, each }, call))[0] as R;
  }

  async #settled(operation: string, sentMs: number, { timeoutMs }: Call): Promise<void> {
    const { clock, name: store } = this.#parts;
    const unknown = (why: string, cause?: unknown) => {
      const afterMs = clock.monotonicMs() - sentMs;
      return new OutcomeUnknownError({ store, operation, afterMs, why }, { cause });
    };
    const synced = this.#sync.now().catch((error: unknown) => {
      throw unknown(`it was committed, and could not be brought to the disk: ${error}`, error);
    });
    const leftMs = Math.max(0, timeoutMs - (clock.monotonicMs() - sentMs));
    const isDone = await isDoneWithin(clock, leftMs, synced);
    if (!isDone) throw unknown('it was committed, and is not on the disk yet');
    await synced;
  }
}

/**
 * Syncs the log of a file, and the folder when the log is another one than before: otherwise the name of a new log may be lost. No lock of
 * SQLite's is on the log itself, so opening and closing it here gives none away.
 */
export function logSyncer(): (path: string) => Promise<void> {
  let syncedInode: number | null = null;
  return async (path) => {
    const log = await openLog(path);
    if (log === null) return;
    try {
      await log.datasync();
      const { ino } = await log.stat();
      if (ino === syncedInode) return;
      await syncFolder(dirname(path));
      syncedInode = ino;
    } finally {
      await log.close();
    }
  };
}

/** Null for a log that was written back and removed by the last process that closed the file: SQLite has synced it then. */
async function openLog(path: string): Promise<FileHandle | null> {
  try {
    return await open(`${path}-wal`, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Some systems cannot do that with a folder, and need not. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r').catch(() => null);
  await folder?.sync().catch(() => {});
  await folder?.close();
}
