import { type FSWatcher, watch } from 'node:fs';
import type { Clock, Timer } from '../../../core/clock.ts';

/** The last of a transaction's writes commits it. `onWritten` runs this long after the first. */
const COMMIT_MS = 1;
/** `onWritten` runs no more often than this: it reads the file, in a transaction of its own. */
const MIN_GAP_MS = 5;

/**
 * Calls `onWritten` when a process may have written to the database. The kernel reports writes to
 * the log. This is only a hint: where the system has no watches left, it reports nothing, so the
 * caller polls as well.
 */
export class LogWatch {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #onWritten: () => void;
  #watcher: FSWatcher | null = null;
  #timer: Timer | null = null;
  #calledAtMs = Number.NEGATIVE_INFINITY;

  /** `path` is that of the database. */
  constructor(clock: Clock, path: string, onWritten: () => void) {
    this.#path = `${path}-wal`;
    this.#clock = clock;
    this.#onWritten = onWritten;
  }

  get isWatching(): boolean {
    return this.#watcher !== null;
  }

  /** Watches the log that has the name now. */
  open(): void {
    this.close();
    try {
      const watcher = watch(this.#path, { persistent: false }, () => this.#schedule());
      watcher.on('error', () => this.close());
      this.#watcher = watcher;
    } catch {
      // No log yet, no permission, or no watch left: polling finds the writes.
    }
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = null;
    this.#timer?.cancel();
    this.#timer = null;
  }

  #schedule(): void {
    if (this.#timer !== null) return;
    const sinceMs = this.#clock.monotonicMs() - this.#calledAtMs;
    this.#timer = this.#clock.after(Math.max(COMMIT_MS, MIN_GAP_MS - sinceMs), () => {
      this.#timer = null;
      this.#calledAtMs = this.#clock.monotonicMs();
      this.#onWritten();
    });
  }
}
