/** One who reads an event stream as a browser does: what it was told, and how far it has come. */
export interface Told {
  readonly event: string;
  readonly data: unknown;
}

export class SseReader {
  readonly told: Told[] = [];
  readonly comments: string[] = [];
  /** What it would come back with; null before it was told any. */
  lastEventId: string | null = null;
  isOver = false;
  error: unknown = null;
  #reader: ReadableStreamDefaultReader<Uint8Array> | null;
  readonly #decoder = new TextDecoder();
  #rest = '';

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader();
  }

  /** Reads until the end, or until it leaves. */
  async readAll(): Promise<void> {
    while (await this.readSome());
  }

  /** One piece; false at the end. */
  async readSome(): Promise<boolean> {
    if (this.#reader === null) return false;
    try {
      const { done, value } = await this.#reader.read();
      if (value !== undefined) this.#take(this.#decoder.decode(value, { stream: true }));
      if (!done) return true;
    } catch (error) {
      this.error = error;
    }
    this.isOver = true;
    return false;
  }

  async leave(): Promise<void> {
    const reader = this.#reader;
    this.#reader = null;
    await reader?.cancel();
  }

  names(): string[] {
    return this.told.map(({ event }) => event);
  }

  #take(text: string): void {
    const blocks = (this.#rest + text).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) this.#dispatch(block.split('\n'));
  }

  #dispatch(lines: readonly string[]): void {
    let event = 'message';
    let data = '';
    for (const line of lines) {
      const [, name = '', value = ''] = /^([^:]*): ?(.*)$/.exec(line) ?? [];
      if (name === '') this.comments.push(value);
      if (name === 'event') event = value;
      if (name === 'data') data += value;
      if (name === 'id') this.lastEventId = value;
    }
    if (data !== '') this.told.push({ event, data: JSON.parse(data) });
  }
}
