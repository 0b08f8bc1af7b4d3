/**
 * The whole terminal, borrowed: what stood there is there again afterwards, whatever ends the
 * process, but for SIGKILL. Only lines that are otherwise than before are written, all at once.
 */
import { isBehind, write } from '../../ui/output.ts';

const CSI = '\u001b[';
/**
 * Another screen, no cursor; and what is too wide is cut, since a line more would move all others.
 */
const ENTER = `${CSI}?1049h${CSI}?25l${CSI}?7l${CSI}2J`;
const LEAVE = `${CSI}?7h${CSI}?25h${CSI}?1049l`;
const DEFAULT_COLUMNS = 80;
const DEFAULT_ROWS = 24;

export interface ScreenEvents {
  onKeys(input: string): void;
  onResize(): void;
  /** Nobody looks any more. */
  onGone(): void;
}

export class ScreenOutput {
  readonly #events: ScreenEvents;
  #lines: readonly string[] = [];
  #isEntered = false;
  readonly #leave = () => this.leave();
  readonly #onData = (input: Buffer) => this.#events.onKeys(input.toString());
  readonly #onResize = () => {
    // Terminals wrap and move what they show when they change their size: nothing of it can be
    // relied upon.
    this.#lines = [];
    if (this.#isEntered) write(1, `${CSI}2J`);
    this.#events.onResize();
  };

  constructor(events: ScreenEvents) {
    this.#events = events;
  }

  get size(): { columns: number; rows: number } {
    const { columns, rows } = process.stdout;
    return { columns: columns || DEFAULT_COLUMNS, rows: rows || DEFAULT_ROWS };
  }

  enter(): void {
    this.#isEntered = true;
    process.once('exit', this.#leave);
    process.stdout.on('resize', this.#onResize);
    if (process.stdin.isTTY) {
      process.stdin.setRawMode(true);
      process.stdin.on('data', this.#onData);
      process.stdin.on('end', this.#events.onGone);
    }
    write(1, ENTER);
  }

  draw(lines: readonly string[]): void {
    if (!this.#isEntered || isBehind(1)) return;
    const count = Math.max(lines.length, this.#lines.length);
    let changed = '';
    for (let row = 0; row < count; row++) {
      const line = lines[row] ?? '';
      if (line !== (this.#lines[row] ?? '')) changed += `${CSI}${row + 1};1H${CSI}2K${line}`;
    }
    this.#lines = lines;
    if (changed !== '' && !write(1, changed)) this.#events.onGone();
  }

  /** Gives the terminal back. Idempotent. */
  leave(): void {
    if (!this.#isEntered) return;
    this.#isEntered = false;
    write(1, LEAVE);
    process.off('exit', this.#leave);
    process.stdout.off('resize', this.#onResize);
    if (!process.stdin.isTTY) return;
    process.stdin.off('data', this.#onData);
    process.stdin.off('end', this.#events.onGone);
    process.stdin.setRawMode(false);
    process.stdin.pause();
  }
}
