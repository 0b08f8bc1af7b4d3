import type { Clock, Timer } from '../../core/clock.ts';

/** Progress is written at most this often. */
const WRITE_EVERY_MS = 1_000;
/** Longer values, as JSON, are not written. */
const MAX_CHARACTERS = 2_000;

/**
 * The progress of one pipeline: of the values that it reports, the last one is written once a
 * second.
 */
export class ProgressWriter {
  readonly #clock: Clock;
  readonly #write: (value: unknown) => Promise<boolean>;
  #waiting: { readonly value: unknown } | null = null;
  #timer: Timer | null = null;
  #isClosed = false;

  /** `write` resolves with false if the value could not be written now. */
  constructor(clock: Clock, write: (value: unknown) => Promise<boolean>) {
    this.#clock = clock;
    this.#write = write;
  }

  report(value: unknown): void {
    if (this.#isClosed || !isShortJson(value)) return;
    this.#waiting = { value };
    if (this.#timer === null) this.#writeNext();
  }

  /** Drops a value that has not been written yet. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  #writeNext(): void {
    this.#timer = null;
    const waiting = this.#waiting;
    if (waiting === null || this.#isClosed) return;
    this.#waiting = null;
    this.#timer = this.#clock.after(WRITE_EVERY_MS, () => this.#writeNext());
    // If the store is unavailable this value is dropped: the next one says more.
    this.#write(waiting.value).then(
      (isWritten) => isWritten || this.#keep(waiting),
      () => {},
    );
  }

  /** The session is not `RUNNING` yet, or another writer has just changed it: try again later. */
  #keep(value: { readonly value: unknown }): void {
    if (this.#isClosed) return;
    this.#waiting ??= value;
    this.#timer ??= this.#clock.after(WRITE_EVERY_MS, () => this.#writeNext());
  }
}

function isShortJson(value: unknown): boolean {
  try {
    return (JSON.stringify(value)?.length ?? Number.POSITIVE_INFINITY) <= MAX_CHARACTERS;
  } catch {
    return false;
  }
}
