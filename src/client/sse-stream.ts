/** Reads server-sent events with `fetch`: an `EventSource` could send a token only in the URL. */
import { unexpectedAnswer } from './api-error.ts';
import { refusalFrom } from './calls.ts';
import { type ClientSettings, send, TimeoutSignal, throwNoAnswer } from './request.ts';
import { type Frame, FrameReader } from './sse-frames.ts';

/** The server sends a heartbeat every 15 seconds. */
const SILENCE_MS = 45_000;
export const DEFAULT_RETRY_MS = 1_000;

/** The reader's position, over all its connections. */
interface Progress {
  /** The id of the last complete frame. */
  after: string | undefined;
  retryMs: number;
}

export interface StreamRequest {
  /** Called at each connect. */
  path(): string;
  readonly progress: Progress;
  readonly signal: AbortSignal | undefined;
  /** The maximum length of a frame, in characters. */
  readonly maxFrame?: number | undefined;
  /** Called when the response has begun. */
  readonly onOpen?: (() => void) | undefined;
}

/** One connection, until either side ends it. */
export async function* frames(
  settings: ClientSettings,
  { path, progress, signal, maxFrame, onOpen }: StreamRequest,
): AsyncGenerator<Frame, void, undefined> {
  const timeout = new TimeoutSignal(settings.clock, signal);
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  try {
    timeout.restart(settings.attemptMs);
    reader = (await connect(settings, path(), progress.after, timeout.signal)).getReader();
    onOpen?.();
    const parser = new FrameReader(maxFrame);
    for (;;) {
      timeout.restart(SILENCE_MS);
      const { done, value } = await reader.read().catch(throwNoAnswer);
      if (done) return;
      for (const frame of parser.read(value)) {
        if (frame.id !== null) progress.after = frame.id;
        yield frame;
      }
      progress.retryMs = parser.retryMs ?? progress.retryMs;
    }
  } finally {
    timeout.end();
    await reader?.cancel().catch(() => {});
  }
}

async function connect(
  settings: ClientSettings,
  path: string,
  after: string | undefined,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const headers: Record<string, string> = { accept: 'text/event-stream' };
  if (after !== undefined) headers['last-event-id'] = after;
  const response = await send(settings, { method: 'GET', path, headers }, signal);
  const { ok, body, status } = response;
  if (!ok) throw refusalFrom(response, await response.text().catch(throwNoAnswer), settings.clock);
  const isStream = /^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '');
  if (isStream && body !== null) return body;
  await body?.cancel();
  throw unexpectedAnswer(status);
}
