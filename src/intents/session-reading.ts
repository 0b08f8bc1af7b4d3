/** Reads sessions from the store. A session that cannot be read is reported once, and skipped. */
import { KeyForeignError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { once } from '../core/once.ts';
import { SessionUnreadableError } from '../fleet/targets/errors.ts';
import type { StoredSession } from '../store/port/intent-store.ts';
import type { Call } from '../store/port/store.ts';
import type { Runtime } from '../store/runtime.ts';
import { type IntentSession, sessionOf } from './intent-session.ts';

const FOREIGN = 'a non-Holdfast program has overwritten it';

function reportUnreadable(
  events: Emitter,
  facts: { session: string; tenant: string | null; why: string },
): void {
  once(events, `session ${facts.session}`, () => events.emit('session.unreadable', facts));
}

/** Reports sessions whose keys a non-Holdfast program has overwritten. */
export function reportForeign(events: Emitter, sessions: readonly string[] = []): void {
  for (const session of sessions) reportUnreadable(events, { session, tenant: null, why: FOREIGN });
}

/** The session; null if it cannot be read, which is reported. */
export function readable(events: Emitter, stored: StoredSession): IntentSession | null {
  try {
    return sessionOf(stored);
  } catch (error) {
    if (!(error instanceof SessionUnreadableError)) throw error;
    const { id, tenant } = stored;
    reportUnreadable(events, { session: id, tenant, why: error.why });
    return null;
  }
}

/**
 * One reply for each id; null for an absent session, and for one that a non-Holdfast program has
 * overwritten.
 */
export async function readSessions(
  rt: Pick<Runtime, 'store' | 'events'>,
  ids: readonly string[],
  call: Call,
): Promise<(StoredSession | null)[]> {
  try {
    return await rt.store.intents.read(ids, call);
  } catch (error) {
    if (!(error instanceof KeyForeignError)) throw error;
    if (ids.length > 1)
      return (await Promise.all(ids.map((id) => readSessions(rt, [id], call)))).flat();
    reportForeign(rt.events, ids);
    return [null];
  }
}
