/** A session that came from an intent, as the command line shows it. */
import { systemClock } from '../../base/clock.ts';
import { shortName } from '../../base/ids.ts';
import type { IntentSession } from '../../intents/intent-session.ts';
import { counted, printable, spanOf, table, toJson } from '../text.ts';

export const SESSION_HEAD = [
  ...['ID', 'STATE', 'REASON', 'TARGET', 'PROFILE', 'CLIENTS', 'AGE', 'WORKER'],
];

export function sessionRow(session: IntentSession, nowMs: number): string[] {
  const { id, state, reason, profile, clients, createdAtMs, worker } = session;
  return [
    ...[id, state, reason ?? '-', targetOf(session), profile, String(clients)],
    spanOf(Math.max(0, nowMs - createdAtMs)),
    worker === null ? '-' : shortName(worker),
  ];
}

export function describedSession(session: IntentSession): string {
  const nowMs = systemClock.wallMs();
  const lines: (readonly [string, string])[] = [
    ['id', session.id],
    ['kind', session.kind],
    ['tenant', session.tenant],
    [session.kind === 'live' ? 'channel' : 'recording', targetOf(session)],
    ['profile', session.profile],
    ['state', session.state],
    ['reason', session.reason ?? '-'],
    ['outcome', session.outcome ?? '-'],
    ['worker', session.worker ?? '-'],
    ['slot', session.slot ?? '-'],
    ['clients', counted(session.clients, 'client')],
    ['created', momentOf(session.createdAtMs, nowMs)],
    ['changed', momentOf(session.changedAtMs, nowMs)],
    ['revision', String(session.revision)],
  ];
  if (session.detail !== undefined) lines.push(['detail', toJson(session.detail)]);
  return table(lines.map((line) => line.map(printable)));
}

/** What runs, and from where. */
function targetOf({ target, startMs = 0 }: IntentSession): string {
  return startMs === 0 ? target : `${target} from ${spanOf(startMs)}`;
}

function momentOf(atMs: number, nowMs: number): string {
  const time = new Date(atMs).toISOString().replace('T', ' ');
  return `${time}, ${spanOf(Math.max(0, nowMs - atMs))} ago`;
}
