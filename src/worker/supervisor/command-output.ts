/**
 * The output of a command. Its supervisor always reads it, so that the command never waits for a
 * reader, and keeps little of it: the last lines of both outputs, in the order in which a terminal
 * would show them, and the progress that the command reports.
 */
import type { Clock, Timer } from '../../core/clock.ts';

/** A line that starts like this reports progress, and is not kept. */
const PROGRESS = '::progress ';
/** Older lines are dropped. */
const MAX_LINES = 20;
/** The rest of a longer line is dropped. */
const MAX_LINE_LENGTH = 500;
/** So many characters take at most this many bytes. */
const MAX_LINE_BYTES = 4 * MAX_LINE_LENGTH;
/** Progress is passed on at most this often. The last report counts. */
const PROGRESS_EVERY_MS = 100;

const PROGRESS_LINE = Buffer.from(`\n${PROGRESS}`);
const LINE_FEED = 10;
const RETURN = 13;

/**
 * Control characters (C0, DEL, C1), marks of writing direction, line ends of Unicode, lone
 * surrogates.
 */
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;

export interface ProgressListener {
  /** False: earlier reports are still unread, so progress is passed on later. */
  isReady(): boolean;
  onProgress(text: string): void;
}

export class CommandOutput {
  readonly #clock: Clock;
  readonly #listener: ProgressListener;
  /** As they came. `end` replaces unsafe characters, because most lines are dropped before. */
  readonly #lines: string[] = [];
  readonly #open: LineReader[] = [];
  #progress: string | null = null;
  #passedOnAtMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | null = null;

  constructor(clock: Clock, listener: ProgressListener) {
    this.#clock = clock;
    this.#listener = listener;
  }

  /** Returns a function that takes the bytes of one of its outputs. */
  reader(): (bytes: Buffer) => void {
    const line = new LineReader((text) => this.#keep(text));
    this.#open.push(line);
    return (bytes) => line.feed(bytes);
  }

  /** The last lines, when nothing more is read; the last one may have no line end. */
  end(): readonly string[] {
    for (const line of this.#open) line.end();
    this.#timer?.cancel();
    this.#passOnProgress();
    return this.#lines.map(withoutUnsafe);
  }

  #keep(text: string): void {
    if (text.startsWith(PROGRESS)) {
      this.#progress = text.slice(PROGRESS.length);
      this.#timer ??= this.#clock.after(this.#waitMs(), () => this.#passOnIfReady());
      return;
    }
    this.#lines.push(text);
    if (this.#lines.length > MAX_LINES) this.#lines.shift();
  }

  #waitMs(): number {
    return Math.max(0, this.#passedOnAtMs + PROGRESS_EVERY_MS - this.#clock.monotonicMs());
  }

  #passOnIfReady(): void {
    this.#timer = null;
    if (this.#listener.isReady()) this.#passOnProgress();
    else this.#timer = this.#clock.after(PROGRESS_EVERY_MS, () => this.#passOnIfReady());
  }

  #passOnProgress(): void {
    if (this.#progress === null) return;
    this.#passedOnAtMs = this.#clock.monotonicMs();
    this.#listener.onProgress(withoutUnsafe(this.#progress));
    this.#progress = null;
  }
}

/** The start of a line that has no end yet. It takes the same small memory for any length. */
class LineReader {
  readonly #onLine: (text: string) => void;
  readonly #bytes = Buffer.alloc(MAX_LINE_BYTES);
  #length = 0;
  /** A carriage return was read: the next bytes overwrite the line. */
  #hasReturned = false;

  constructor(onLine: (text: string) => void) {
    this.#onLine = onLine;
  }

  /**
   * Of very many lines, only those that may be kept are read: the one that had begun, the last one
   * that reports progress, and the last ones. Otherwise a command that writes very fast would take
   * the time that the other commands of the supervisor need.
   */
  feed(bytes: Buffer): void {
    const first = indexOf(bytes, LINE_FEED, 0) + 1;
    const last = lastLinesOf(bytes);
    if (last <= first) {
      this.#read(bytes);
      return;
    }
    this.#read(bytes.subarray(0, first));
    const progressAt = bytes.lastIndexOf(PROGRESS_LINE, last - 1) + 1;
    if (progressAt >= first && progressAt < last)
      this.#read(bytes.subarray(progressAt, indexOf(bytes, LINE_FEED, progressAt) + 1));
    this.#read(bytes.subarray(last));
  }

  end(): void {
    if (this.#length > 0) this.#finish();
  }

  #read(bytes: Buffer): void {
    let feedAt = -1;
    let returnAt = -1;
    for (let from = 0; from < bytes.length; ) {
      if (feedAt < from) feedAt = indexOf(bytes, LINE_FEED, from);
      if (returnAt < from) returnAt = indexOf(bytes, RETURN, from);
      const to = Math.min(feedAt, returnAt);
      if (to > from) this.#write(bytes.subarray(from, to));
      if (to === bytes.length) return;
      if (to === feedAt) this.#finish();
      else this.#hasReturned = true;
      from = to + 1;
    }
  }

  #write(bytes: Buffer): void {
    if (this.#hasReturned) this.#length = 0;
    this.#hasReturned = false;
    this.#length += bytes.copy(this.#bytes, this.#length);
  }

  #finish(): void {
    const text = this.#bytes.toString('utf8', 0, this.#length).slice(0, MAX_LINE_LENGTH);
    this.#length = 0;
    this.#hasReturned = false;
    this.#onLine(text);
  }
}

/** The length of `bytes` if they have no such byte. */
function indexOf(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at === -1 ? bytes.length : at;
}

/** Where the last lines begin that may be kept, an unfinished one included. */
function lastLinesOf(bytes: Buffer): number {
  let at = bytes.length;
  for (let lines = 0; lines <= MAX_LINES && at > 0; lines++)
    at = bytes.lastIndexOf(LINE_FEED, at - 1);
  return at + 1;
}

function withoutUnsafe(text: string): string {
  return text.replace(UNSAFE, (character) => (character === '\t' ? ' ' : '\ufffd'));
}
