/**
 * Follows events and reconnects with the last position, so that no event is lost. Events that the
 * server no longer has are reported as a gap. A frame counts only when it has arrived completely.
 */
import { sleepOn } from '../core/sleep.ts';
import { unexpectedAnswer } from './api-error.ts';
import { backoffMs } from './backoff.ts';
import { isTransient, retryAfterOf } from './calls.ts';
import type { ApiEvent, EventsQuery, FollowedEvent } from './messages.ts';
import { type ClientSettings, withSearch } from './request.ts';
import { DEFAULT_RETRY_MS, frames } from './sse-stream.ts';

export async function* feed(
  settings: ClientSettings,
  { signal, onConnection = () => {}, ...query }: EventsQuery,
): AsyncGenerator<FollowedEvent, void, undefined> {
  const { clock, random } = settings;
  const progress = { after: query.after, retryMs: DEFAULT_RETRY_MS };
  let failures = 0;
  while (!signal?.aborted) {
    let pauseMs = 0;
    try {
      const path = () => pathOf(query, progress.after);
      const onOpen = () => onConnection('connected');
      for await (const { event, data } of frames(settings, { path, progress, signal, onOpen })) {
        failures = 0;
        if (event === 'gap') yield { kind: 'gap' };
        else if (event !== 'bye' && data !== null) yield { kind: 'event', event: eventOf(data) };
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!isTransient(error)) throw error;
      pauseMs = retryAfterOf(error);
    }
    onConnection('lost');
    failures += 1;
    pauseMs += backoffMs(failures, random, progress.retryMs);
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
