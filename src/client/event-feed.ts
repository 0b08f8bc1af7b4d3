/**
 * What happens, as it happens, for as long as somebody wants to know. Who is cut off comes back and says how far it was, so nothing
 * is lost in between; what the server itself has lost by then is told as a gap. A frame counts when all of it has arrived.
 */
import { sleepOn } from '../base/sleep.ts';
import { unexpectedAnswer } from './api-error.ts';
import { backoffMs } from './backoff.ts';
import { mayPass, refusalOf, waitAdvisedMs } from './calls.ts';
import { type ClientParts, noAnswer, Patience, send, withSearch } from './exchange.ts';
import { type Frame, FrameReader } from './frames.ts';
import type { ApiEvent, EventsQuery, FollowedEvent } from './messages.ts';

/** The server says something every 15 seconds, if only that it is there. */
const SILENCE_MS = 45_000;
const DEFAULT_RETRY_MS = 1_000;

export async function* feed(
  parts: ClientParts,
  { signal, ...query }: EventsQuery,
): AsyncGenerator<FollowedEvent, void, undefined> {
  const { clock, random } = parts;
  const place = { after: query.after, retryMs: DEFAULT_RETRY_MS };
  let failures = 0;
  while (!signal?.aborted) {
    let pauseMs = 0;
    try {
      for await (const { event, data } of frames(parts, { ...query, signal }, place)) {
        failures = 0;
        if (event === 'gap') yield { kind: 'gap' };
        else if (event !== 'bye' && data !== null) yield { kind: 'event', event: eventOf(data) };
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!mayPass(error)) throw error;
      pauseMs = waitAdvisedMs(error);
    }
    failures += 1;
    pauseMs += backoffMs(failures, random, place.retryMs);
    await sleepOn(clock, pauseMs, signal).catch(() => {});
  }
}

function eventOf(data: string): ApiEvent {
  try {
    return JSON.parse(data) as ApiEvent;
  } catch {
    throw unexpectedAnswer(200);
  }
}

interface Place {
  /** The last frame that has arrived. */
  after: string | undefined;
  retryMs: number;
}

/** One connection, until either side ends it. */
async function* frames(
  parts: ClientParts,
  query: EventsQuery,
  place: Place,
): AsyncGenerator<Frame, void, undefined> {
  const patience = new Patience(parts.clock, query.signal);
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  try {
    patience.last(parts.attemptMs);
    reader = (await connect(parts, query, place.after, patience.signal)).getReader();
    const apart = new FrameReader();
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
  query: EventsQuery,
  after: string | undefined,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const path = pathOf(query, after);
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

function pathOf({ from, event, session, member }: EventsQuery, after: string | undefined): string {
  const search = new URLSearchParams();
  if (from !== undefined && after === undefined) search.set('from', from);
  for (const name of [event ?? []].flat()) search.append('event', name);
  if (session !== undefined) search.set('session', session);
  if (member !== undefined) search.set('member', member);
  return withSearch('/api/v3/events', search);
}
