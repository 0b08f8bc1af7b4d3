/** The list of sessions that intents have started. */
import type { ApiEvent, ApiSession, RunSession } from '../../../../src/client/messages.ts';
import { paramsOf, refOf, STATES } from '../../data/session-words.ts';

export interface SessionList {
  /** The latest made first. */
  readonly sessions: readonly RunSession[];
  /** There are older ones. */
  readonly hasMore: boolean;
}

export interface Filter {
  readonly state: string;
  readonly kind: string;
  readonly text: string;
}

export async function latest(
  sessions: AsyncIterable<ApiSession>,
  most: number,
): Promise<SessionList> {
  const found: RunSession[] = [];
  for await (const session of sessions) {
    if (!('state' in session)) continue;
    if (found.length === most) return { sessions: found, hasMore: true };
    found.push(session);
  }
  return { sessions: found, hasMore: false };
}

/** As they were, but for one: changed in its place, put in front if it is new, or gone. */
export function withSession(
  list: SessionList,
  id: string,
  session: ApiSession | null,
): SessionList {
  if (session !== null && !('state' in session)) return list;
  const others = list.sessions.filter((one) => one.id !== id);
  if (session === null) return { ...list, sessions: others };
  const isKnown = others.length < list.sessions.length;
  const sessions = isKnown
    ? list.sessions.map((one) => (one.id === id ? session : one))
    : [session, ...others];
  return { ...list, sessions };
}

/** Which sessions some events are about. */
export function changedBy(events: readonly ApiEvent[]): ReadonlySet<string> {
  return new Set(events.flatMap(({ session }) => (typeof session === 'string' ? [session] : [])));
}

export function filtered(
  sessions: readonly RunSession[],
  { state, kind, text }: Filter,
): readonly RunSession[] {
  const wanted = text.toLowerCase();
  return sessions.filter(
    (session) =>
      (state === '' || session.state === state) &&
      (kind === '' || session.kind === kind) &&
      [
        session.id,
        session.kind,
        refOf(session),
        session.reason ?? '',
        session.worker ?? '',
        JSON.stringify(paramsOf(session)) ?? '',
      ].some((field) => field.toLowerCase().includes(wanted)),
  );
}

export function countsByState(sessions: readonly RunSession[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>(STATES.map((state) => [state, 0]));
  for (const { state } of sessions) counts.set(state, (counts.get(state) ?? 0) + 1);
  return counts;
}
