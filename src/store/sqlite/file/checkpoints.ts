import { statSync } from 'node:fs';
import type { Clock } from '../../../core/clock.ts';
import { libsqlPromise } from './libsql.ts';

/** A log of this size is written back to the file. It has about four thousand pages. */
const MAX_LOG_BYTES = 16 * 2 ** 20;
/** The size is read at most this often. */
const CHECK_SIZE_MS = 10;
/** A checkpoint waits this long for the lock, on a thread of libsql. */
const LOCK_WAIT_MS = 50;
/** After a checkpoint that could not finish, the next one begins no sooner than this. */
const RETRY_MS = 250;

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
export class Checkpoints {
  readonly #path: string;
  readonly #clock: Clock;
  #notBeforeMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | null = null;

  constructor(clock: Clock, path: string) {
    this.#path = path;
    this.#clock = clock;
  }

  /** Begins a checkpoint if the log is long. Called after each commit. */
  runIfLong(): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#running !== null || nowMs < this.#notBeforeMs) return;
    this.#notBeforeMs = nowMs + CHECK_SIZE_MS;
    if (this.#logBytes() >= MAX_LOG_BYTES) void this.run();
  }

  /** Resolves when the checkpoint has ended, even if it failed. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#writeBack().finally(() => {
      this.#running = null;
      if (this.#logBytes() >= MAX_LOG_BYTES)
        this.#notBeforeMs = this.#clock.monotonicMs() + RETRY_MS;
    });
    return this.#running;
  }

  async #writeBack(): Promise<void> {
    try {
      if (this.#logBytes() === 0) return;
      const Database = libsqlPromise();
      const connection = new Database(this.#path, { timeout: LOCK_WAIT_MS });
      try {
        await connection.exec(WRITE_BACK);
      } finally {
        connection.close();
      }
    } catch {
      // A full disk or a missing file: the next write reports it.
    }
  }

  #logBytes(): number {
    return statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }
}
