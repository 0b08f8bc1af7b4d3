import type { Emitter } from '../core/events.ts';
import type { StoredSession } from '../store/port/intent-store.ts';
import type { Store } from '../store/port/store.ts';
import { readable, tellForeign } from './session-reading.ts';

const CALL = { timeoutMs: 5_000 };
/** Sessions in one request. */
const PAGE = 500;

interface OpenParts {
  readonly store: Pick<Store, 'intents'>;
  readonly events: Emitter;
}

interface OpenPage {
  /** What they say of themselves may make no sense: `readable` tells. */
  readonly sessions: readonly StoredSession[];
  /** Ids under which something else lies. */
  readonly foreign: readonly string[];
}

/** All sessions that have not ended, a page at a time. */
export async function* openSessions({ store, events }: OpenParts): AsyncGenerator<OpenPage, void> {
  let cursor: string | undefined;
  do {
    const from = cursor === undefined ? {} : { cursor };
    const page = await store.intents.list({ ...CALL, ...from, isOpen: true, most: PAGE });
    const { sessions, foreign = [] } = page;
    tellForeign(events, foreign);
    yield { sessions, foreign };
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/** Puts those of the sessions back into the stream of starts that wait for a worker, while the stream has lost them. */
export async function putBackLost(
  { store, events }: OpenParts,
  sessions: readonly StoredSession[],
): Promise<void> {
  // What no worker can read is not started, and would be put back for ever.
  const waiting = sessions.filter(
    (stored) => stored.state === 'NEW' && readable(events, stored) !== null,
  );
  if (waiting.length === 0) return;
  const ids = waiting.map(({ id }) => id);
  const lost = new Set(await store.intents.republish(ids, CALL));
  for (const { id: session, tenant } of waiting)
    if (lost.has(session)) events.emit('intent.republished', { session, tenant });
}
