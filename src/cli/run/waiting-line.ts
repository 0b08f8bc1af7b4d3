import { type Clock, systemClock, type Timer } from '../../base/clock.ts';
import type { Holdfast } from '../../holdfast.ts';
import { write } from '../output.ts';
import { printable, spanOf } from '../text.ts';

const EVERY_MS = 1_000;
const DEFAULT_COLUMNS = 80;

/** One line on the terminal that says who is being waited for; gone when the wait is over. */
export class WaitingLine {
  readonly #holdfast: Holdfast;
  readonly #key: string;
  readonly #clock: Clock;
  readonly #sinceMs: number;
  #timer: Timer | null = null;
  #isOver = false;

  constructor(holdfast: Holdfast, key: string, clock: Clock = systemClock) {
    this.#holdfast = holdfast;
    this.#key = key;
    this.#clock = clock;
    this.#sinceMs = clock.monotonicMs();
    void this.#refresh();
  }

  close(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    write(2, CLEAR_LINE);
  }

  async #refresh(): Promise<void> {
    const who = await this.#holdfast.inspect(this.#key).then(
      (lease) => {
        if (lease.kind !== 'held') return 'not held, but not to be had yet';
        return `held by ${lease.holder}, expires in ${spanOf(lease.expiresInMs)}`;
      },
      () => 'the store does not answer',
    );
    if (this.#isOver) return;
    const waited = spanOf(this.#clock.monotonicMs() - this.#sinceMs);
    const text = printable(`Waited ${waited} for '${this.#key}': ${who}`);
    // A line that is too long would become two, of which one stays.
    const columns = process.stderr.columns || DEFAULT_COLUMNS;
    write(2, `${CLEAR_LINE}${text.slice(0, columns - 1)}`);
    this.#timer = this.#clock.after(EVERY_MS, () => void this.#refresh());
  }
}

/** To the first column, and nothing behind it. */
const CLEAR_LINE = '\r\u001b[2K';
