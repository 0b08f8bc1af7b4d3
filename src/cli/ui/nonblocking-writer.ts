/**
 * Writes without waiting for the reader. A terminal that does not read (Ctrl-S, a hung ssh) blocks
 * its writers: a blocked process would renew no lease, and lose its targets. Bytes that the reader
 * does not take at once wait in a queue. Above the limit of the queue, lines are dropped and
 * counted, and the reader is told when it is back.
 */
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { Clock, Timer } from '../../core/clock.ts';

/** The limit of the queue. Text above it is dropped. */
const MAX_BYTES = 1_048_576;
/** The pauses between two tries double from the first to the second. */
const MIN_PAUSE_MS = 1;
const MAX_PAUSE_MS = 50;
const LINE_FEED = 10;

/** Writes as many bytes as possible now, and returns how many. Throws if the reader has ended. */
export type Accept = (bytes: Buffer) => number;

export interface WriterOptions {
  readonly clock: Clock;
  readonly accept: Accept;
  /** The reader is back, and has missed this many lines. It gets text that is written now. */
  onDropped(lines: number): void;
}

export class NonblockingWriter {
  readonly #options: WriterOptions;
  readonly #queue: Buffer[] = [];
  #queuedBytes = 0;
  #droppedLines = 0;
  #isGone = false;
  #pauseMs = MIN_PAUSE_MS;
  #timer: Timer | null = null;
  #onEmpty: (() => void)[] = [];

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** The reader has not taken all text yet. */
  get isBehind(): boolean {
    return this.#queue.length > 0;
  }

  /** False: the reader has ended. */
  write(text: string): boolean {
    if (this.#isGone) return false;
    const bytes = Buffer.from(text);
    // After a dropped line, later lines are dropped until the reader is told.
    if (this.#droppedLines > 0 || this.#queuedBytes + bytes.length > MAX_BYTES) {
      this.#droppedLines += linesIn(bytes);
      return true;
    }
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    if (this.#timer === null) this.#flush();
    return !this.#isGone;
  }

  /** Resolves when the reader has taken all text or has ended, or the time is over. */
  async flushed(withinMs: number): Promise<void> {
    if (!this.isBehind) return;
    await new Promise<void>((resolve) => {
      const timer = this.#options.clock.after(withinMs, resolve);
      this.#onEmpty.push(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  #flush(): void {
    this.#timer = null;
    for (let next = this.#queue[0]; next !== undefined; next = this.#queue[0]) {
      const taken = this.#take(next);
      if (this.#isGone) break;
      this.#queuedBytes -= taken;
      if (taken < next.length) {
        this.#queue[0] = next.subarray(taken);
        this.#tryLater(taken);
        return;
      }
      this.#queue.shift();
    }
    this.#empty();
  }

  #take(bytes: Buffer): number {
    try {
      return this.#options.accept(bytes);
    } catch {
      this.#isGone = true;
      this.#queue.length = 0;
      return 0;
    }
  }

  #tryLater(taken: number): void {
    this.#pauseMs = taken > 0 ? MIN_PAUSE_MS : Math.min(this.#pauseMs * 2, MAX_PAUSE_MS);
    this.#timer = this.#options.clock.after(this.#pauseMs, () => this.#flush());
  }

  #empty(): void {
    const lines = this.#droppedLines;
    this.#droppedLines = 0;
    if (lines > 0 && !this.#isGone) this.#options.onDropped(lines);
    if (this.isBehind) return;
    for (const run of this.#onEmpty.splice(0)) run();
  }
}

function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(LINE_FEED); at >= 0; at = bytes.indexOf(LINE_FEED, at + 1)) lines++;
  return lines;
}

/**
 * Writes to stdout or stderr without waiting. Terminals and pipes are opened a second time, because
 * other processes that share them, such as `cat`, do not expect a non-blocking one. Sockets cannot
 * be opened again: they are made non-blocking, unless a command shares them. Files hardly block.
 */
export function acceptorOf(fd: 1 | 2, isShared: boolean): Accept {
  // As bigint: after a stat of a pipe or a socket without it, Node does not resolve the next
  // symbolic link of a module, and pnpm links all modules.
  const stat = fstatSync(fd, { bigint: true });
  if (stat.isFile()) return (bytes) => writeSync(fd, bytes);
  const own = stat.isSocket() ? null : openedAgain(fd);
  if (own === null && !isShared) makeNonblocking(fd);
  return (bytes) => writeNow(own ?? fd, bytes);
}

function openedAgain(fd: 1 | 2): number | null {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  // The second path is for a terminal of another user, as after `su`.
  for (const path of [`/proc/self/fd/${fd}`, ...(isatty(fd) ? ['/dev/tty'] : [])]) {
    try {
      return openSync(path, O_WRONLY | O_NONBLOCK | O_NOCTTY);
    } catch {
      // Try the next path.
    }
  }
  return null;
}

/** Node's streams make sockets and pipes non-blocking, and undo it when the process ends. */
function makeNonblocking(fd: 1 | 2): void {
  void (fd === 1 ? process.stdout : process.stderr);
}

function writeNow(fd: number, bytes: Buffer): number {
  try {
    return writeSync(fd, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
    throw error;
  }
}
