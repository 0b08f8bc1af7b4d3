/**
 * The alternate screen of a terminal. The normal screen comes back when the process ends, except
 * by SIGKILL. Each drawing writes only the lines that changed, in one write.
 */
import { isBehind, write } from '../../ui/output.ts';

const CSI = '\u001b[';
/** Alternate screen, no cursor, no wrapping: a wrapped line would move all others. */
const ENTER = `${CSI}?1049h${CSI}?25l${CSI}?7l${CSI}2J`;
const LEAVE = `${CSI}?7h${CSI}?25h${CSI}?1049l`;
const DEFAULT_COLUMNS = 80;
const DEFAULT_ROWS = 24;

export interface ScreenEvents {
  onKeys(input: string): void;
  onResize(): void;
  /** The terminal has ended. */
  onGone(): void;
}

export class ScreenOutput {
  readonly #events: ScreenEvents;
  #lines: readonly string[] = [];
  #isEntered = false;
  readonly #leave = () => this.leave();
  readonly #onData = (input: Buffer) => this.#events.onKeys(input.toString());
  readonly #onResize = () => {
    // A terminal that changes its size wraps and moves its lines, so all are drawn again.
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

  /** Restores the normal screen. Idempotent. */
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
