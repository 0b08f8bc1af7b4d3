/** One stream of server-sent events, read with `fetch`: so the token is in a header, where an `EventSource` could only have it in the address. */
import { unexpectedAnswer } from './api-error.ts';
import { refusalOf } from './calls.ts';
import { type ClientParts, noAnswer, Patience, send } from './exchange.ts';
import { type Frame, FrameReader } from './frames.ts';

/** The server says something every 15 seconds, if only that it is there. */
const SILENCE_MS = 45_000;
export const DEFAULT_RETRY_MS = 1_000;

/** How far a reader is, over all its connections. */
interface Place {
  /** The last frame that has arrived. */
  after: string | undefined;
  retryMs: number;
}

export interface StreamWish {
  /** Where to, by the time it is asked. */
  path(): string;
  readonly place: Place;
  readonly signal: AbortSignal | undefined;
  /** In characters; what is longer is not of our server. */
  readonly longestFrame?: number;
  /** Called when the server has begun to answer. */
  readonly onOpen?: () => void;
}

/** One connection, until either side ends it. */
export async function* frames(
  parts: ClientParts,
  { path, place, signal, longestFrame, onOpen }: StreamWish,
): AsyncGenerator<Frame, void, undefined> {
  const patience = new Patience(parts.clock, signal);
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  try {
    patience.last(parts.attemptMs);
    reader = (await connect(parts, path(), place.after, patience.signal)).getReader();
    onOpen?.();
    const apart = new FrameReader(longestFrame);
    for (;;) {
      patience.last(SILENCE_MS);
      const { done, value } = await reader.read().catch(noAnswer);
      if (done) return;
      for (const frame of apart.read(value)) {
        if (frame.id !== null) place.after = frame.id;
        yield frame;
      }
      place.retryMs = apart.retryMs ?? place.retryMs;
    }
  } finally {
    patience.end();
    await reader?.cancel().catch(() => {});
  }
}

async function connect(
  parts: ClientParts,
  path: string,
  after: string | undefined,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const headers = {
    accept: 'text/event-stream',
    ...(after !== undefined && { 'last-event-id': after }),
  };
  const response = await send(parts, { method: 'GET', path, headers }, signal);
  const { ok, body, status } = response;
  if (!ok) throw refusalOf(response, await response.text().catch(noAnswer), parts.clock);
  const isStream = /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '');
  if (isStream && body !== null) return body;
  await body?.cancel();
  throw unexpectedAnswer(status);
}
