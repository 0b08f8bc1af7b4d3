/** Parses `text/event-stream` in chunks. A chunk may end within a character or a line end. */
import { unexpectedAnswer } from './api-error.ts';

export interface Frame {
  /** The position after this frame; null if it has none. */
  readonly id: string | null;
  readonly event: string;
  /** Null for a frame with only a position. */
  readonly data: string | null;
}

/** A longer frame is not from a Holdfast server, and would fill the memory. */
const MAX_FRAME = 1_048_576;
const LINE_END = /\r\n|\r|\n/g;

export class FrameReader {
  readonly #decoder = new TextDecoder();
  /** A line whose end has not arrived yet. */
  #rest = '';
  /** The last chunk ended with a carriage return: a line feed now belongs to it. */
  #isAfterReturn = false;
  #id: string | null = null;
  #event = '';
  #data: string[] = [];
  #size = 0;
  readonly #maxFrame: number;
  /** The reconnect delay that the server asks for; null if it does not say. */
  retryMs: number | null = null;

  constructor(maxFrame = MAX_FRAME) {
    this.#maxFrame = maxFrame;
  }

  /** The frames that this chunk completes. Throws if a frame is too long. */
  read(bytes: Uint8Array): Frame[] {
    let text = this.#decoder.decode(bytes, { stream: true });
    if (text === '') return [];
    if (this.#isAfterReturn && text.startsWith('\n')) text = text.slice(1);
    this.#isAfterReturn = text.endsWith('\r');
    const [first = '', ...others] = text.split(LINE_END);
    const lines = [this.#rest + first, ...others];
    this.#rest = lines.pop() ?? '';
    const frames = lines.flatMap((line) => this.#add(line) ?? []);
    if (this.#size + this.#rest.length > this.#maxFrame) throw unexpectedAnswer(200);
    return frames;
  }

  /** Returns a frame if this line ends one. */
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
