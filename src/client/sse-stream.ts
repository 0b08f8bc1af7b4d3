/** Reads server-sent events with `fetch`: an `EventSource` could send a token only in the URL. */
import { sleepOn } from '../core/sleep.ts';
import { unexpectedAnswer } from './api-error.ts';
import { backoffMs, isTransient, refusalFrom, retryAfterOf } from './calls.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import { type ClientSettings, send, throwNoAnswer } from './request.ts';
import { TimeoutWatch } from './timeout-watch.ts';

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

/** A reader of frames. Null: there is nothing to yield. */
export interface FrameHandler<T> {
  read(frame: Frame): T | null;
  /** The connection ended, or failed. `isNews`: a frame had arrived since the last call. */
  onLost(isNews: boolean): T | null;
}

/** Reconnects until the signal fires. Throws failures that a retry does not help against. */
export async function* follow<T>(
  settings: ClientSettings,
  request: StreamRequest,
  handler: FrameHandler<T>,
): AsyncGenerator<T, void, undefined> {
  const { clock, random } = settings;
  const { progress, signal } = request;
  let failures = 0;
  while (!signal?.aborted) {
    let pauseMs = 0;
    try {
      for await (const frame of frames(settings, request)) {
        failures = 0;
        const read = handler.read(frame);
        if (read !== null) yield read;
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!isTransient(error)) throw error;
      pauseMs = retryAfterOf(error);
    }
    const lost = handler.onLost(failures === 0);
    if (lost !== null) yield lost;
    failures += 1;
    pauseMs += backoffMs(failures, random, progress.retryMs);
    await sleepOn(clock, pauseMs, signal).catch(() => {});
  }
}

/** One connection, until either side ends it. */
async function* frames(
  settings: ClientSettings,
  { path, progress, signal, maxFrame, onOpen }: StreamRequest,
): AsyncGenerator<Frame, void, undefined> {
  const timeout = new TimeoutWatch(settings.clock, signal);
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
