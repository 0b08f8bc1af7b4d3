/** `holdfast sessions ls` and `get`. */
import { systemClock } from '../../../core/clock.ts';
import { ConfigError } from '../../../core/errors.ts';
import { checkTargetId } from '../../../core/ids.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { IntentSession } from '../../../intents/intent-session.ts';
import type { SessionQuery } from '../../../intents/intents.ts';
import { SESSION_STATES, type SessionState } from '../../../store/port/intent-store.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit, usageError } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { writeList } from '../../ui/listing.ts';
import { checkTypedKind } from '../intents/submission.ts';
import { listTargets, showTarget } from '../targets/targets.ts';
import { describedSession, SESSION_HEAD, sessionJson, sessionRow } from './session-text.ts';

/** Sessions read in one request. */
const PAGE = 500;
/** The states of targets when they were called sessions. Newer ones name sessions. */
const OLD_STATES = ['polled', 'free', 'paused', 'unreadable'];
/** Reading leaves no trace in the shared log. */
const READ_ONLY = { history: 'off' } as const;

export interface SessionListFlags {
  /** `poll` is the old name of targets. */
  readonly kind?: string | undefined;
  readonly key?: string | undefined;
  readonly state?: string | undefined;
}

export async function listSessions(
  context: Context,
  prefix: string,
  { kind, key, state }: SessionListFlags,
): Promise<Exit> {
  const { flags, output } = context;
  if (kind === 'poll' || (kind === undefined && namesOldState(state))) {
    output.note("'sessions ls' of targets is now 'targets ls'");
    return listTargets(context, prefix, { state });
  }
  if (kind !== undefined) checkTypedKind(kind);
  else if (key !== undefined) throw usageError('--key needs a kind: use it with --kind.');
  const states = state === undefined ? undefined : statesOf(state);
  const nowMs = systemClock.wallMs();
  await withHoldfast(
    flags,
    (holdfast) =>
      writeList(output, sessionsOf(holdfast, { kind, key, states }, prefix), {
        head: SESSION_HEAD,
        row: (session) => sessionRow(session, nowMs),
        json: sessionJson,
        none:
          `There are no such sessions. Start one: holdfast intents start ${startFlags(kind)}\n` +
          'Polled things are now called targets: holdfast targets ls',
      }),
    READ_ONLY,
  );
  return EXIT.ok;
}

async function* sessionsOf(
  holdfast: Holdfast,
  query: Pick<SessionQuery, 'kind' | 'key' | 'states'>,
  prefix: string,
): AsyncGenerator<IntentSession, void, void> {
  const intents = holdfast.intents();
  let cursor: string | undefined;
  do {
    const page = await intents.sessions({ tenant: null, ...query, cursor, most: PAGE });
    yield* page.sessions.filter(({ id }) => id.startsWith(prefix));
    cursor = page.cursor;
  } while (cursor !== undefined);
}

function startFlags(kind: string | undefined): string {
  if (kind === undefined || kind === 'live') return 'REF';
  return kind === 'vod' ? '--recording ID' : `--kind ${kind}`;
}

/** An old call that listed targets by their state. */
function namesOldState(state: string | undefined): boolean {
  const words = state?.split(',').map((word) => word.trim().toLowerCase()) ?? [];
  return words.length > 0 && words.every((word) => OLD_STATES.includes(word));
}

function statesOf(text: string): SessionState[] {
  return text.split(',').map((word) => {
    const state = SESSION_STATES.find((known) => known === word.trim().toUpperCase());
    if (state !== undefined) return state;
    const rule = `the states of sessions are ${SESSION_STATES.join(', ')}; separate several with commas`;
    throw new ConfigError({ field: '--state', value: text, rule });
  });
}

export async function showSession(context: Context, id: string): Promise<Exit> {
  checkTargetId(id, 'ID');
  const { flags, output } = context;
  const found = await withHoldfast(flags, async (holdfast) => {
    const session = await findSession(holdfast, id);
    if (session !== null) return session;
    // An unreadable target fails with its own message.
    return (await holdfast.targets.get(id)) === null ? null : 'target';
  });
  if (found === 'target') {
    output.note("'sessions get' of a target is now 'targets get'");
    return showTarget(context, id);
  }
  if (found === null) throw sessionNotFound(id);
  output.result(sessionJson(found), () => describedSession(found));
  return EXIT.ok;
}

/** The session of this id, of any tenant; null if no intent started one. */
export function findSession(holdfast: Holdfast, id: string): Promise<IntentSession | null> {
  return holdfast.intents().session(id, null);
}

export function sessionNotFound(id: string): CliError {
  const message = `session '${id}' does not exist. List the sessions: holdfast sessions ls`;
  return new CliError(EXIT.no, 'SESSION_NOT_FOUND', message, { session: id });
}
