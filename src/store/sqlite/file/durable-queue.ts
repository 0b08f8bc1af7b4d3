import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isDoneWithin, type Timer } from '../../../core/clock.ts';
import { ConfigError, OutcomeUnknownError } from '../../../core/errors.ts';
import type { BaseRuntime } from '../../../core/runtime.ts';
import type { Call } from '../../port/store.ts';
import type { Batch, LockQueue, Transactions } from './lock-queue.ts';
import type { SqliteOptions } from './options.ts';
import type { FileLocation } from './place.ts';
import type { Tx } from './sqlite-connection.ts';

/** `everysec`: durable data is on the disk within a second. `always`: before the call resolves. */
export type SyncMode = 'everysec' | 'always';

export function checkSync(mode: unknown): asserts mode is SyncMode {
  if (mode !== 'everysec' && mode !== 'always')
    throw new ConfigError({ field: 'sync', value: mode, rule: "it is 'everysec' or 'always'" });
}

/** A sync begins this long after a commit. With the sync itself that is less than a second. */
const SYNC_AFTER_MS = 500;

/**
 * Queues transactions that write durable data, and brings their commits to the disk. SQLite waits
 * for the disk only when it writes the log back, after 16 MB of changes. One sync of the log covers
 * all earlier writes of all processes. Leases, members and signals are not durable data: a start of
 * the host voids them anyway.
 */
export class DurableQueue implements Transactions {
  readonly #rt: BaseRuntime;
  readonly #location: FileLocation;
  readonly #queue: LockQueue;
  readonly #mode: SyncMode;
  /** Resolves when all earlier writes to the log of this file are on the disk. */
  readonly #syncLog: (path: string) => Promise<void>;
  #timer: Timer | null = null;
  /** Never rejects. */
  #running: Promise<unknown> = Promise.resolve();
  /** A sync that has yet to begin. It covers all commits until then. */
  #next: Promise<void> | null = null;
  #hasWarned = false;

  constructor(
    rt: BaseRuntime,
    location: FileLocation,
    queue: LockQueue,
    { sync, syncLog }: SqliteOptions,
  ) {
    this.#rt = rt;
    this.#location = location;
    this.#queue = queue;
    this.#mode = sync;
    this.#syncLog = syncLog;
  }

  read<T, R>(batch: Batch<T, R>, call: Call): Promise<R[]> {
    return this.#queue.read(batch, call);
  }

  readOne<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R> {
    return this.#queue.readOne(operation, call, each);
  }

  async write<T, R>(batch: Batch<T, R>, call: Call): Promise<R[]> {
    const sentMs = this.#rt.clock.monotonicMs();
    let replies: R[];
    try {
      replies = await this.#queue.write(batch, call);
    } finally {
      // A batch that failed may have been executed in part.
      this.#schedule();
    }
    if (this.#mode === 'always') await this.#awaitSync(batch.operation, sentMs, call);
    return replies;
  }

  async writeOne<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R> {
    return (await this.write({ operation, items: [null], each }, call))[0] as R;
  }

  /** Runs a scheduled sync now. Never rejects. */
  async flush(): Promise<void> {
    if (this.#timer !== null) await this.#syncScheduled();
    await this.#running;
  }

  #schedule(): void {
    if (this.#timer !== null || this.#mode === 'always') return;
    this.#timer = this.#rt.clock.after(SYNC_AFTER_MS, () => void this.#syncScheduled());
  }

  /** Never rejects: its callers have their replies already. */
  async #syncScheduled(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = null;
    await this.#sync().catch((error: unknown) => this.#warn(error));
  }

  /** Resolves when all commits are on the disk. One sync runs at a time, for all its callers. */
  #sync(): Promise<void> {
    this.#next ??= this.#afterRunning();
    return this.#next;
  }

  async #afterRunning(): Promise<void> {
    await this.#running;
    this.#next = null;
    const synced = this.#syncLog(this.#location.path);
    this.#running = synced.catch(() => {});
    return synced;
  }

  async #awaitSync(operation: string, sentMs: number, { timeoutMs }: Call): Promise<void> {
    const { clock } = this.#rt;
    const { name: store } = this.#location;
    const unknown = (why: string, cause?: unknown) => {
      const afterMs = clock.monotonicMs() - sentMs;
      return new OutcomeUnknownError({ store, operation, afterMs, why }, { cause });
    };
    const synced = this.#sync().catch((error: unknown) => {
      throw unknown(`it was committed, but could not be synced to the disk: ${error}`, error);
    });
    const leftMs = Math.max(0, timeoutMs - (clock.monotonicMs() - sentMs));
    const isDone = await isDoneWithin(clock, leftMs, synced);
    if (!isDone) throw unknown('it was committed, but is not on the disk yet');
    await synced;
  }

  #warn(error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#rt.events.emit('store.warned', {
      store: this.#location.name,
      finding: `The log could not be synced to the disk: ${(error as Error).message}.`,
      advice: 'A loss of power would lose the last writes. Check the disk.',
    });
  }
}

/**
 * Syncs the log of a file. Syncs the folder, too, if the log is a new one: otherwise its name may
 * be lost. SQLite has no locks on the log itself, so opening and closing it here drops none.
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

/** Null if the last process that closed the file removed the log. SQLite has synced it then. */
async function openLog(path: string): Promise<FileHandle | null> {
  try {
    return await open(`${path}-wal`, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Some systems cannot sync a folder, and need not. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r').catch(() => null);
  await folder?.sync().catch(() => {});
  await folder?.close();
}
