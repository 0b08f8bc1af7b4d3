/** What sessions run, by their ids: people know a channel, a recording or a key by its name, and no session by its UUID. */
import { signal } from '@preact/signals';
import type { ApiSession } from '../../../src/client/messages.ts';

/** The oldest are forgotten, and asked for again when they are shown. */
const MOST_KEPT = 5_000;

const names = new Map<string, string>();
/** Grows when a name becomes known. */
export const namesVersion = signal(0);

export function rememberSessions(sessions: readonly (ApiSession | null)[]): void {
  let isNew = false;
  for (const session of sessions) {
    if (session === null || !('state' in session) || names.has(session.id)) continue;
    names.set(session.id, session.key);
    isNew = true;
  }
  for (const id of [...names.keys()].slice(0, Math.max(0, names.size - MOST_KEPT)))
    names.delete(id);
  if (isNew) namesVersion.value++;
}

/** Undefined if no answer has named it so far. */
export function nameOfSession(id: string): string | undefined {
  return names.get(id);
}

export function isSessionId(id: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id);
}
