import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { until } from '../../support/until.ts';
import type { Api, Token } from './api.ts';

/** One frame of an event stream. */
export interface Frame {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface ListenOptions {
  readonly as: Token;
  /** Without the question mark. */
  readonly query?: string;
  readonly lastEventId?: string;
}

/** Listens to `/api/v3/events` of a process. Resolves when it is told where it is in the log, and so misses nothing from then on; or refused. */
export async function listen(
  api: Api,
  { as, query = '', lastEventId }: ListenOptions,
): Promise<EventSource> {
  const asking = request(`${api.url}/api/v3/events?${query}`, {
    headers: {
      Authorization: `Bearer ${as.token}`,
      ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }),
    },
    agent: false,
  });
  asking.end();
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    asking.once('response', resolve);
    asking.once('error', reject);
  });
  const source = new EventSource(asking, answer);
  if (source.status === 200)
    await until(() => source.lastId, { what: 'a place in the log', deadlineMs: 10_000 });
  return source;
}

export class EventSource implements Disposable {
  /** Whole frames only. */
  readonly frames: Frame[] = [];
  readonly status: number;
  readonly #asking: ClientRequest;
  #lastId: string | undefined;
  #rest = '';
  #isOver = false;

  constructor(asking: ClientRequest, answer: IncomingMessage) {
    this.#asking = asking;
    this.status = answer.statusCode ?? 0;
    asking.on('error', () => {});
    answer.setEncoding('utf8');
    answer.on('data', (text: string) => this.#hear(text));
    answer.on('error', () => {});
    answer.on('close', () => {
      this.#isOver = true;
    });
  }

  /** Neither side will say more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Everything heard of that kind, without what the server says about the stream itself. */
  events(name: string): Frame[] {
    return this.frames.filter(({ event }) => event === name);
  }

  /** Where to go on from: also what has no data may say so. */
  get lastId(): string | undefined {
    return this.#lastId;
  }

  async heard(isSo: (frame: Frame) => boolean, what: string): Promise<Frame> {
    return until(() => this.frames.find(isSo), { what, deadlineMs: 10_000 });
  }

  ended(): Promise<true> {
    return until(() => this.#isOver, { what: 'the stream to end', deadlineMs: 10_000 });
  }

  /** As a network does it, in the middle of whatever is on its way. */
  cut(): void {
    this.#asking.destroy();
  }

  [Symbol.dispose](): void {
    this.cut();
  }

  #hear(text: string): void {
    const blocks = (this.#rest + text).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) this.#take(fieldsOf(block));
  }

  /** What has no data is no event: comments, how soon to come again, a place in the log. */
  #take(fields: ReadonlyMap<string, string>): void {
    this.#lastId = fields.get('id') ?? this.#lastId;
    const data = fields.get('data');
    if (data === undefined) return;
    this.frames.push({ event: fields.get('event') ?? 'message', data: JSON.parse(data) });
  }
}

function fieldsOf(block: string): ReadonlyMap<string, string> {
  const lines = block.split('\n').map((line) => [line, line.indexOf(': ')] as const);
  return new Map(
    lines.filter(([, at]) => at > 0).map(([line, at]) => [line.slice(0, at), line.slice(at + 2)]),
  );
}
