/**
 * What happens, as it happens, for as long as somebody wants to know. Who is cut off comes back and says how far it was, so nothing
 * is lost in between; what the server itself has lost by then is told as a gap. A frame counts when all of it has arrived.
 */
import { sleepOn } from '../core/sleep.ts';
import { unexpectedAnswer } from './api-error.ts';
import { backoffMs } from './backoff.ts';
import { mayPass, waitAdvisedMs } from './calls.ts';
import { type ClientParts, withSearch } from './exchange.ts';
import type { ApiEvent, EventsQuery, FollowedEvent } from './messages.ts';
import { DEFAULT_RETRY_MS, frames } from './stream.ts';

export async function* feed(
  parts: ClientParts,
  { signal, onConnection = () => {}, ...query }: EventsQuery,
): AsyncGenerator<FollowedEvent, void, undefined> {
  const { clock, random } = parts;
  const place = { after: query.after, retryMs: DEFAULT_RETRY_MS };
  let failures = 0;
  while (!signal?.aborted) {
    let pauseMs = 0;
    try {
      const path = () => pathOf(query, place.after);
      const onOpen = () => onConnection('connected');
      for await (const { event, data } of frames(parts, { path, place, signal, onOpen })) {
        failures = 0;
        if (event === 'gap') yield { kind: 'gap' };
        else if (event !== 'bye' && data !== null) yield { kind: 'event', event: eventOf(data) };
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!mayPass(error)) throw error;
      pauseMs = waitAdvisedMs(error);
    }
    onConnection('lost');
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

function pathOf({ from, event, session, member }: EventsQuery, after: string | undefined): string {
  const search = new URLSearchParams();
  if (from !== undefined && after === undefined) search.set('from', from);
  for (const name of [event ?? []].flat()) search.append('event', name);
  if (session !== undefined) search.set('session', session);
  if (member !== undefined) search.set('member', member);
  return withSearch('/api/v3/events', search);
}
