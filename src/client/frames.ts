/** Takes `text/event-stream` apart, in whatever pieces it comes: a character may be cut in two, and so may the end of a line. */
import { unexpectedAnswer } from './api-error.ts';

export interface Frame {
  /** How far the reader is with it; null where it does not say. */
  readonly id: string | null;
  readonly event: string;
  /** Null for a frame that only says how far it is. */
  readonly data: string | null;
}

/** Longer ones are not of our server, and would only fill the memory. */
const LONGEST_FRAME = 1_048_576;
const LINE_END = /\r\n|\r|\n/g;

export class FrameReader {
  readonly #decoder = new TextDecoder();
  /** A line whose end has not come yet. */
  #rest = '';
  /** A line feed that comes now belongs to the carriage return before it. */
  #isAfterReturn = false;
  #id: string | null = null;
  #event = '';
  #data: string[] = [];
  #size = 0;
  readonly #longest: number;
  /** How long the server wants those to wait whom it has lost; null where it does not say. */
  retryMs: number | null = null;

  constructor(longestFrame = LONGEST_FRAME) {
    this.#longest = longestFrame;
  }

  /** The frames that are complete by now. Throws if one is too long. */
  read(bytes: Uint8Array): Frame[] {
    let text = this.#decoder.decode(bytes, { stream: true });
    if (text === '') return [];
    if (this.#isAfterReturn && text.startsWith('\n')) text = text.slice(1);
    this.#isAfterReturn = text.endsWith('\r');
    const [first = '', ...others] = text.split(LINE_END);
    const lines = [this.#rest + first, ...others];
    this.#rest = lines.pop() ?? '';
    const frames = lines.flatMap((line) => this.#add(line) ?? []);
    if (this.#size + this.#rest.length > this.#longest) throw unexpectedAnswer(200);
    return frames;
  }

  /** Gives the frame that this line ends. */
  #add(line: string): Frame | null {
    if (line === '') return this.#take();
    this.#size += line.length;
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#event = value;
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    else if (field === 'retry' && /^\d{1,9}$/.test(value)) this.retryMs = Number(value);
    return null;
  }

  #take(): Frame | null {
    const frame = {
      id: this.#id,
      event: this.#event || 'message',
      data: this.#data.length > 0 ? this.#data.join('\n') : null,
    };
    this.#id = null;
    this.#event = '';
    this.#data = [];
    this.#size = 0;
    return frame.id === null && frame.data === null ? null : frame;
  }
}
