import { type FSWatcher, watch } from 'node:fs';
import type { Clock, Timer } from '../../../core/clock.ts';

/** A transaction is several writes, and the last one makes it count: so long after the first of them is it looked for. */
const SETTLE_MS = 1;
/** While others write all the time, it is looked for this often and no more: every look is a transaction, too. */
const LEAST_GAP_MS = 5;

/**
 * Tells when somebody may have written to the database: the kernel sees writes to its log, and wakes those who watch it. A hint, and
 * nothing more: where there is no such watch, or no more of them, nothing is told, and whoever listens has to look now and then anyway.
 */
export class LogWatch {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #onWritten: () => void;
  #watcher: FSWatcher | null = null;
  #timer: Timer | null = null;
  #toldMs = Number.NEGATIVE_INFINITY;

  /** `path` is that of the database. */
  constructor(path: string, clock: Clock, onWritten: () => void) {
    this.#path = `${path}-wal`;
    this.#clock = clock;
    this.#onWritten = onWritten;
  }

  get isWatching(): boolean {
    return this.#watcher !== null;
  }

  /** Watches the file that has the name now. */
  open(): void {
    this.close();
    try {
      const watcher = watch(this.#path, { persistent: false }, () => this.#hear());
      watcher.on('error', () => this.close());
      this.#watcher = watcher;
    } catch {
      // No log yet, no right, or no watch left: what is written is found by looking.
    }
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = null;
    this.#timer?.cancel();
    this.#timer = null;
  }

  #hear(): void {
    if (this.#timer !== null) return;
    const sinceMs = this.#clock.monotonicMs() - this.#toldMs;
    this.#timer = this.#clock.after(Math.max(SETTLE_MS, LEAST_GAP_MS - sinceMs), () => {
      this.#timer = null;
      this.#toldMs = this.#clock.monotonicMs();
      this.#onWritten();
    });
  }
}
