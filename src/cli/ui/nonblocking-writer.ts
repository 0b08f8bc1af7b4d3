/**
 * Writes without ever waiting for the reader. A terminal that does not read (Ctrl-S, a hung ssh)
 * blocks whoever writes to it: so would this process stand still, renew no lease and leave its
 * fleet. What is not taken at once waits in a queue; what does not fit there is dropped, counted,
 * and told of when the reader is back.
 */
import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import type { Clock, Timer } from '../../core/clock.ts';

/** What is written beyond this, while nobody reads, is dropped. */
const MOST_BYTES = 1_048_576;
/** Pauses between two tries double from the first to the second. */
const TRY_FIRST_MS = 1;
const TRY_MOST_MS = 50;
const LINE_FEED = 10;

/**
 * Takes as much of it as can be taken now, and says how much that was. Throws when nobody will ever
 * read it.
 */
export type Accept = (bytes: Buffer) => number;

export interface WriterOptions {
  readonly clock: Clock;
  readonly accept: Accept;
  /** The reader is back, and did not get so many lines. What is written now, it gets. */
  onDropped(lines: number): void;
}

export class NonblockingWriter {
  readonly #options: WriterOptions;
  readonly #queue: Buffer[] = [];
  #queuedBytes = 0;
  #droppedLines = 0;
  #isGone = false;
  #pauseMs = TRY_FIRST_MS;
  #timer: Timer | null = null;
  #onEmpty: (() => void)[] = [];

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  /** The reader has not taken yet what was written. */
  get isBehind(): boolean {
    return this.#queue.length > 0;
  }

  /** False: nobody will ever read it. */
  write(text: string): boolean {
    if (this.#isGone) return false;
    const bytes = Buffer.from(text);
    // Once some is missing, what comes after waits for the word on that.
    if (this.#droppedLines > 0 || this.#queuedBytes + bytes.length > MOST_BYTES) {
      this.#droppedLines += linesIn(bytes);
      return true;
    }
    this.#queue.push(bytes);
    this.#queuedBytes += bytes.length;
    if (this.#timer === null) this.#flush();
    return !this.#isGone;
  }

  /** Resolves when everything has been taken, or nobody will ever read it, or the time is over. */
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
    this.#pauseMs = taken > 0 ? TRY_FIRST_MS : Math.min(this.#pauseMs * 2, TRY_MOST_MS);
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
 * How to write to one of our outputs without waiting. Terminals and pipes are opened once more for
 * that: to make them non-blocking as they are would do so to everybody who shares them, and `cat`
 * does not expect that. Sockets cannot be opened again. They are made non-blocking as they are,
 * unless a command shares them: then they may make us wait. Files never make anybody wait for long.
 */
export function acceptorOf(fd: 1 | 2, isShared: boolean): Accept {
  // As bigint: once Node has seen a pipe or a socket in the other form, it resolves no link to a
  // module until its next look at a file, and pnpm links all of them.
  const stat = fstatSync(fd, { bigint: true });
  if (stat.isFile()) return (bytes) => writeSync(fd, bytes);
  const own = stat.isSocket() ? null : openedAgain(fd);
  if (own === null && !isShared) makeNonblocking(fd);
  return (bytes) => writeNow(own ?? fd, bytes);
}

function openedAgain(fd: 1 | 2): number | null {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  // The second is for a terminal of another user, as after `su`.
  for (const path of [`/proc/self/fd/${fd}`, ...(isatty(fd) ? ['/dev/tty'] : [])]) {
    try {
      return openSync(path, O_WRONLY | O_NONBLOCK | O_NOCTTY);
    } catch {
      // The next one, or none.
    }
  }
  return null;
}

/** Node's own streams do that to sockets and pipes when they are made, and undo it at the end. */
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
