import type { Emitter } from '../base/events.ts';
import type { StoredSession } from '../store/intent-store.ts';
import type { Store } from '../store/store.ts';

const CALL = { timeoutMs: 5_000 };
/** Sessions in one request. */
const PAGE = 500;

/** All sessions that have not ended, a page at a time. */
export async function* openSessions({
  intents,
}: Pick<Store, 'intents'>): AsyncGenerator<readonly StoredSession[], void> {
  let cursor: string | undefined;
  do {
    const from = cursor === undefined ? {} : { cursor };
    const page = await intents.list({ ...CALL, ...from, isOpen: true, most: PAGE });
    yield page.sessions;
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/** Puts those of the sessions back into the stream of starts that wait for a worker, while the stream has lost them. */
export async function putBackLost(
  { store, events }: { store: Store; events: Emitter },
  sessions: readonly StoredSession[],
): Promise<void> {
  const waiting = sessions.filter(({ state }) => state === 'NEW');
  if (waiting.length === 0) return;
  const ids = waiting.map(({ id }) => id);
  const lost = new Set(await store.intents.republish(ids, CALL));
  for (const { id: session, tenant } of waiting)
    if (lost.has(session)) events.emit('intent.republished', { session, tenant });
}
