import { type Clock, systemClock, type Timer } from '../../../core/clock.ts';
import { isBehind, write } from '../../ui/output.ts';
import { printable, spanOf } from '../../ui/text.ts';
import type { Wanted } from './wanted.ts';

const EVERY_MS = 1_000;
const DEFAULT_COLUMNS = 80;

/** One line on the terminal that shows the holder while `run` waits. It disappears afterwards. */
export class WaitingOutput {
  readonly #wanted: Wanted;
  readonly #clock: Clock;
  readonly #sinceMs: number;
  #timer: Timer | null = null;
  #isOver = false;

  constructor(wanted: Wanted, clock: Clock = systemClock) {
    this.#wanted = wanted;
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
    const who = await this.#wanted.holders().catch(() => 'the store does not answer');
    if (this.#isOver) return;
    const waited = spanOf(this.#clock.monotonicMs() - this.#sinceMs);
    const text = printable(`Waited ${waited} for '${this.#wanted.name}': ${who}`);
    // A longer line would wrap, and its first half would stay.
    const columns = process.stderr.columns || DEFAULT_COLUMNS;
    if (!isBehind(2)) write(2, `${CLEAR_LINE}${text.slice(0, columns - 1)}`);
    this.#timer = this.#clock.after(EVERY_MS, () => void this.#refresh());
  }
}

/** Moves to the first column and clears the line. */
const CLEAR_LINE = '\r\u001b[2K';
