/** For how long it is known how things were: no more than this can be lost at the end. */
export const LOSS_MS = 10_000;
/** How many entries too old to be of use are kept before they are taken away together. */
const MOST_STALE = 1_024;

/** How to undo each of the last changes, so that a server can be what it was some moments ago. */
export class Journal {
  readonly #nowMs: () => number;
  readonly #atMs: number[] = [];
  readonly #undo: (() => void)[] = [];
  /** How many at the front are too old. */
  #stale = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** A change is being made, and this undoes it. */
  note(undo: () => void): void {
    const nowMs = this.#nowMs();
    this.#atMs.push(nowMs);
    this.#undo.push(undo);
    while ((this.#atMs[this.#stale] ?? nowMs) < nowMs - LOSS_MS) this.#stale++;
    if (this.#stale < MOST_STALE) return;
    this.#atMs.splice(0, this.#stale);
    this.#undo.splice(0, this.#stale);
    this.#stale = 0;
  }

  /**
   * Undoes the changes of the last `ms`, the last first. A change exactly that long ago stays.
   */
  undoLast(ms: number): void {
    if (ms > LOSS_MS) throw new RangeError(`no more than ${LOSS_MS} ms can be undone, not ${ms}`);
    const sinceMs = this.#nowMs() - ms;
    while ((this.#atMs.at(-1) ?? sinceMs) > sinceMs) {
      this.#atMs.pop();
      this.#undo.pop()?.();
    }
    this.#stale = Math.min(this.#stale, this.#atMs.length);
  }

  clear(): void {
    this.#atMs.length = 0;
    this.#undo.length = 0;
    this.#stale = 0;
  }
}
