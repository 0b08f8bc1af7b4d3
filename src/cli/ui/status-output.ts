import { isBehind, write } from './output.ts';
import { printable } from './text.ts';

const DEFAULT_COLUMNS = 80;
/** Moves to the first column and clears the line. */
const CLEAR = '\r\u001b[2K';

/** The last line of a terminal. Other output scrolls above it. */
export class StatusOutput {
  #text = '';

  show(text: string): void {
    // A longer line would wrap, and its first half would stay.
    const columns = process.stdout.columns || DEFAULT_COLUMNS;
    this.#text = printable(text).slice(0, columns - 1);
    if (!isBehind(1)) write(1, `${CLEAR}${this.#text}`);
  }

  /** Prints whole lines, which must be printable already. */
  above(lines: string): void {
    write(1, this.#text === '' ? lines : `${CLEAR}${lines}${this.#text}`);
  }

  clear(): void {
    if (this.#text !== '') write(1, CLEAR);
    this.#text = '';
  }
}
