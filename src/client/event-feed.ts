/**
 * Follows events and reconnects with the last position, so that no event is lost. Events that the
 * server no longer has are reported as a gap. A frame counts only when it has arrived completely.
 */
import { jsonOf } from './calls.ts';
import type { ApiEvent, EventsQuery, FollowedEvent } from './messages.ts';
import { type ClientSettings, withSearch } from './request.ts';
import { DEFAULT_RETRY_MS, follow } from './sse-stream.ts';

export function feed(
  settings: ClientSettings,
  { signal, onConnection = () => {}, ...query }: EventsQuery,
): AsyncGenerator<FollowedEvent, void, undefined> {
  const progress = { after: query.after, retryMs: DEFAULT_RETRY_MS };
  const path = () => pathOf(query, progress.after);
  const onOpen = () => onConnection('connected');
  return follow<FollowedEvent>(
    settings,
    { path, progress, signal, onOpen },
    {
      read({ event, data }) {
        if (event === 'gap') return { kind: 'gap' };
        if (event === 'bye' || data === null) return null;
        return { kind: 'event', event: jsonOf(data, 200) as ApiEvent };
      },
      onLost() {
        onConnection('lost');
        return null;
      },
    },
  );
}

function pathOf({ from, event, session, member }: EventsQuery, after: string | undefined): string {
  const search = new URLSearchParams();
  if (from !== undefined && after === undefined) search.set('from', from);
  for (const name of [event ?? []].flat()) search.append('event', name);
  if (session !== undefined) search.set('session', session);
  if (member !== undefined) search.set('member', member);
  return withSearch('/api/v3/events', search);
}
