import { statSync } from 'node:fs';
import type { Clock } from '../../../core/clock.ts';
import { libsqlPromise } from './libsql.ts';

/** A log of this size is written back to the file: about four thousand pages. */
const LOG_BYTES = 16 * 2 ** 20;
/** How often its size is looked at, at most. */
const LOOK_EVERY_MS = 10;
/** How long the writing back may wait for others to leave the file alone; on a thread of libsql's, not on ours. */
const WAIT_MS = 50;
/** After it could not be finished, the next attempt comes no sooner than this. */
const AGAIN_MS = 250;

/**
 * Most is written back without the lock of the file, and the rest with it. Whoever begins a new log waits for the disk once more: so
 * that is done here, too, with a change that changes nothing.
 */
const WRITE_BACK = `
PRAGMA synchronous = NORMAL;
PRAGMA wal_checkpoint(PASSIVE);
PRAGMA wal_checkpoint(TRUNCATE);
UPDATE marker SET latest = latest;
`;

/**
 * Writes the log back to the file, and empties it. SQLite would do that by itself in somebody's COMMIT, and two fsyncs
 * would stop that process's event loop for as long as the disk likes. So it is done on another thread, over a connection
 * made for it. For everybody's calls that is a lock like any other.
 *
 * A process that was stopped while reading keeps the log from being emptied, and it grows until that process goes on or ends.
 */
export class Checkpoints {
  readonly #path: string;
  readonly #clock: Clock;
  #notBeforeMs = Number.NEGATIVE_INFINITY;
  #underWay: Promise<void> | null = null;

  constructor(path: string, clock: Clock) {
    this.#path = path;
    this.#clock = clock;
  }

  /** Something was committed. */
  look(): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#underWay !== null || nowMs < this.#notBeforeMs) return;
    this.#notBeforeMs = nowMs + LOOK_EVERY_MS;
    if (this.#logBytes() >= LOG_BYTES) void this.run();
  }

  /** Resolves when it is done, or could not be. */
  run(): Promise<void> {
    this.#underWay ??= this.#writeBack().finally(() => {
      this.#underWay = null;
      if (this.#logBytes() >= LOG_BYTES) this.#notBeforeMs = this.#clock.monotonicMs() + AGAIN_MS;
    });
    return this.#underWay;
  }

  async #writeBack(): Promise<void> {
    try {
      if (this.#logBytes() === 0) return;
      const Database = libsqlPromise();
      const connection = new Database(this.#path, { timeout: WAIT_MS });
      try {
        await connection.exec(WRITE_BACK);
      } finally {
        connection.close();
      }
    } catch {
      // A full disk, or a file that is gone: whoever writes next is told.
    }
  }

  #logBytes(): number {
    return statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }
}
