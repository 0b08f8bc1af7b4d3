/** Sessions as they are found in the store. One that cannot be read is told of once, and does not keep anybody from the others. */
import { KeyForeignError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { once } from '../core/once.ts';
import { SessionUnreadableError } from '../fleet/targets/errors.ts';
import type { StoredSession } from '../store/port/intent-store.ts';
import type { Call, Store } from '../store/port/store.ts';
import { type IntentSession, sessionOf } from './intent-session.ts';

interface ReadingParts {
  readonly store: Pick<Store, 'intents'>;
  readonly events: Emitter;
}

const FOREIGN = 'another program has put something else in its place';

function tellUnreadable(
  events: Emitter,
  { id: session, tenant, why }: { id: string; tenant: string | null; why: string },
): void {
  once(events, `session ${session}`, () =>
    events.emit('session.unreadable', { session, why, tenant }),
  );
}

export function tellForeign(events: Emitter, sessions: readonly string[] = []): void {
  for (const id of sessions) tellUnreadable(events, { id, tenant: null, why: FOREIGN });
}

/** Null for one that cannot be read. */
export function readable(events: Emitter, stored: StoredSession): IntentSession | null {
  try {
    return sessionOf(stored);
  } catch (error) {
    if (!(error instanceof SessionUnreadableError)) throw error;
    const { id, tenant } = stored;
    tellUnreadable(events, { id, tenant, why: error.why });
    return null;
  }
}

/** One reply for each id. Where something else lies in the place of a session there is none: null, and the others are read. */
export async function readSessions(
  { store, events }: ReadingParts,
  ids: readonly string[],
  call: Call,
): Promise<(StoredSession | null)[]> {
  try {
    return await store.intents.read(ids, call);
  } catch (error) {
    if (!(error instanceof KeyForeignError)) throw error;
    if (ids.length > 1)
      return (
        await Promise.all(ids.map((id) => readSessions({ store, events }, [id], call)))
      ).flat();
    tellForeign(events, ids);
    return [null];
  }
}
