import { isBehind, write } from './output.ts';
import { printable } from './text.ts';

const DEFAULT_COLUMNS = 80;
/** To the first column, and nothing behind it. */
const CLEAR = '\r\u001b[2K';

/** The last line of a terminal: it changes while what is printed scrolls by above it. */
export class StatusLine {
  #text = '';

  show(text: string): void {
    // A line that is too long would become two, of which one stays.
    const columns = process.stdout.columns || DEFAULT_COLUMNS;
    this.#text = printable(text).slice(0, columns - 1);
    if (!isBehind(1)) write(1, `${CLEAR}${this.#text}`);
  }

  /** Prints whole lines, which are safe already. */
  above(lines: string): void {
    write(1, this.#text === '' ? lines : `${CLEAR}${lines}${this.#text}`);
  }

  clear(): void {
    if (this.#text !== '') write(1, CLEAR);
    this.#text = '';
  }
}
