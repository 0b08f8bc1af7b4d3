/** What the commands for sessions have to say of those that came from an intent. */
import { systemClock } from '../../../core/clock.ts';
import { ConfigError } from '../../../core/errors.ts';
import type { Holdfast } from '../../../holdfast.ts';
import { DEFAULT_TENANT } from '../../../intents/intent.ts';
import type { IntentSession } from '../../../intents/intent-session.ts';
import { SESSION_STATES, type SessionState } from '../../../store/port/intent-store.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { writeList } from '../../ui/listing.ts';
import { SESSION_HEAD, sessionJson, sessionRow } from '../intents/session-words.ts';

/** Asked for in one request. */
const PAGE = 500;
/** Looking leaves no trace. */
const READ_ONLY = { history: 'off' } as const;

export interface IntentQuery {
  readonly kind: 'live' | 'vod';
  /** Only ids that begin so. */
  readonly prefix: string;
  /** As it was typed. */
  readonly state: string | undefined;
}

export async function lsIntents({ flags, output }: Context, query: IntentQuery): Promise<Exit> {
  const { kind, prefix, state } = query;
  const states = state === undefined ? undefined : statesOf(state);
  const nowMs = systemClock.wallMs();
  await withHoldfast(
    flags,
    (holdfast) =>
      writeList(output, sessionsOf(holdfast, { kind, states }, prefix), {
        head: SESSION_HEAD,
        row: (session) => sessionRow(session, nowMs),
        json: sessionJson,
        none: `There are no such sessions. Start one: holdfast intents start ${kind === 'vod' ? '--recording ID' : 'REF'}`,
      }),
    READ_ONLY,
  );
  return EXIT.ok;
}

async function* sessionsOf(
  holdfast: Holdfast,
  { kind, states }: { kind: 'live' | 'vod'; states: readonly SessionState[] | undefined },
  prefix: string,
): AsyncGenerator<IntentSession, void, void> {
  const intents = holdfast.intents();
  const query = { tenant: null, kind, most: PAGE, ...(states !== undefined && { states }) };
  let cursor: string | undefined;
  do {
    const page = await intents.sessions({ ...query, ...(cursor !== undefined && { cursor }) });
    yield* page.sessions.filter(({ id }) => id.startsWith(prefix));
    cursor = page.cursor;
  } while (cursor !== undefined);
}

function statesOf(text: string): SessionState[] {
  return text.split(',').map((word) => {
    const state = SESSION_STATES.find((known) => known === word.trim().toUpperCase());
    if (state !== undefined) return state;
    const rule = `a session is ${SESSION_STATES.join(', ')}; name several with commas between them`;
    throw new ConfigError({ field: '--state', value: text, rule });
  });
}

/** Null where no intent has started such a session. */
export function findIntentSession(holdfast: Holdfast, id: string): Promise<IntentSession | null> {
  return holdfast.intents().session(id, null);
}

/** What to do instead: an intent's session is neither paused nor removed. */
export function ofIntent({ id, tenant, state }: IntentSession): CliError {
  const whose = tenant === DEFAULT_TENANT ? '' : `--tenant ${tenant} `;
  const next =
    state === 'ENDED'
      ? 'It has ended, and is forgotten by itself.'
      : `To stop it: holdfast intents stop ${whose}${id}`;
  const message = `session '${id}' was started by an intent, so it is neither polled nor paused, nor removed. ${next}`;
  return new CliError(EXIT.no, 'SESSION_OF_INTENT', message, { session: id });
}
