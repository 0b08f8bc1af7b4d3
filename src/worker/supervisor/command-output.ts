/**
 * What a command writes. Its supervisor reads it all the time, so that the command never waits for a reader, and keeps little of it: its
 * last lines, both outputs together as they came, as a terminal would show them; and what it says of how far it is.
 */
import type { Clock, Timer } from '../../core/clock.ts';

/** What begins like this is no line to keep: it says how far the command is. */
const PROGRESS = '::progress ';
/** Older lines are forgotten. */
const LINES = 20;
/** What is behind that in a line is not kept. */
const LINE_LENGTH = 500;
/** As much as that many characters can take. */
const LINE_BYTES = 4 * LINE_LENGTH;
/** Of what is said more often, the last is passed on when that time is over. */
const PROGRESS_EVERY_MS = 100;

const LINE_OF_PROGRESS = Buffer.from(`\n${PROGRESS}`);
const LINE_FEED = 10;
const RETURN = 13;

/** Control characters (C0, DEL, C1), what turns the direction of writing, line ends of Unicode, halves of characters. */
const UNSAFE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
  /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]|\p{Surrogate}/gu;

export interface OutputParts {
  readonly clock: Clock;
  /** Whether those who are told of progress keep up; if not, the last is told later. */
  isHeard(): boolean;
  onProgress(text: string): void;
}

export class CommandOutput {
  readonly #parts: OutputParts;
  /** As they came, which whoever sees them may not get: most of them are never seen. */
  readonly #lines: string[] = [];
  readonly #open: Line[] = [];
  #progress: string | null = null;
  #saidMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | null = null;

  constructor(parts: OutputParts) {
    this.#parts = parts;
  }

  /** Gives a function to feed with what comes out of one of its outputs. */
  reader(): (bytes: Buffer) => void {
    const line = new Line((text) => this.#keep(text));
    this.#open.push(line);
    return (bytes) => line.feed(bytes);
  }

  /** The last lines, when no more is read: also one that has no end. */
  end(): readonly string[] {
    for (const line of this.#open) line.end();
    this.#timer?.cancel();
    this.#sayProgress();
    return this.#lines.map(harmless);
  }

  #keep(text: string): void {
    if (text.startsWith(PROGRESS)) {
      this.#progress = text.slice(PROGRESS.length);
      this.#timer ??= this.#parts.clock.after(this.#waitMs(), () => this.#look());
      return;
    }
    this.#lines.push(text);
    if (this.#lines.length > LINES) this.#lines.shift();
  }

  #waitMs(): number {
    return Math.max(0, this.#saidMs + PROGRESS_EVERY_MS - this.#parts.clock.monotonicMs());
  }

  #look(): void {
    this.#timer = null;
    if (this.#parts.isHeard()) this.#sayProgress();
    else this.#timer = this.#parts.clock.after(PROGRESS_EVERY_MS, () => this.#look());
  }

  #sayProgress(): void {
    if (this.#progress === null) return;
    this.#saidMs = this.#parts.clock.monotonicMs();
    this.#parts.onProgress(harmless(this.#progress));
    this.#progress = null;
  }
}

/** The beginning of a line, for as long as it has no end. Always takes the same little room. */
class Line {
  readonly #onLine: (text: string) => void;
  readonly #bytes = Buffer.alloc(LINE_BYTES);
  #length = 0;
  /** Went back to the first column: what comes now is written over what is there. */
  #hasReturned = false;

  constructor(onLine: (text: string) => void) {
    this.#onLine = onLine;
  }

  /**
   * Of very many lines only those are looked at that may be kept: the one that had begun, the last that speaks of progress, and the last ones. A
   * command that writes as fast as it can would else take the time that others of its supervisor need.
   */
  feed(bytes: Buffer): void {
    const first = indexOf(bytes, LINE_FEED, 0) + 1;
    const last = lastLinesOf(bytes);
    if (last <= first) {
      this.#read(bytes);
      return;
    }
    this.#read(bytes.subarray(0, first));
    const progressAt = bytes.lastIndexOf(LINE_OF_PROGRESS, last - 1) + 1;
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
    const text = this.#bytes.toString('utf8', 0, this.#length).slice(0, LINE_LENGTH);
    this.#length = 0;
    this.#hasReturned = false;
    this.#onLine(text);
  }
}

/** The end, if it is not there. */
function indexOf(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from);
  return at === -1 ? bytes.length : at;
}

/** Where the last lines begin that may be kept, and what has no end yet. */
function lastLinesOf(bytes: Buffer): number {
  let at = bytes.length;
  for (let lines = 0; lines <= LINES && at > 0; lines++) at = bytes.lastIndexOf(LINE_FEED, at - 1);
  return at + 1;
}

function harmless(text: string): string {
  return text.replace(UNSAFE, (character) => (character === '\t' ? ' ' : '\ufffd'));
}
