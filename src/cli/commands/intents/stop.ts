import { SessionNotFoundError } from '../../../fleet/targets/errors.ts';
import type { Holdfast } from '../../../holdfast.ts';
import { DEFAULT_TENANT, type StreamStop } from '../../../intents/intent.ts';
import type { IntentSession } from '../../../intents/intent-session.ts';
import type { Intents } from '../../../intents/intents.ts';
import { intentSessionJson } from '../../../server/routes/json/session-json.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit, usageError } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { counted, printable } from '../../ui/text.ts';
import { checkTyped, checkTypedKind, intentOptions } from './submission.ts';

export interface StopFlags {
  readonly kind?: string;
  readonly key?: string;
  readonly client: string;
  readonly tenant?: string;
  readonly force?: boolean;
}

export async function stop(
  context: Context,
  id: string | undefined,
  given: StopFlags,
): Promise<Exit> {
  const { kind, key } = given;
  if (id !== undefined && kind === undefined && key === undefined)
    return stopSession(context, id, given);
  if (id !== undefined || kind === undefined || key === undefined)
    throw usageError('give the id of a session, or --kind and --key.');
  return stopKey(context, { kind, key }, given);
}

async function stopKey(
  { flags, output }: Context,
  { kind, key }: { kind: string; key: string },
  { client, tenant = DEFAULT_TENANT, force = false }: StopFlags,
): Promise<Exit> {
  checkTypedKind(kind);
  const by = { tenant, client };
  const stopped = await withHoldfast(flags, async (holdfast, settings) => {
    const intents = holdfast.intents(intentOptions(settings));
    return intents.stopKey({ kind, key, force }, by).catch((error: unknown) => {
      if (!(error instanceof SessionNotFoundError)) throw error;
      const why = `no open session of kind '${kind}' has the key '${key}'. List them: holdfast sessions ls --kind ${kind}`;
      throw new CliError(EXIT.no, 'SESSION_NOT_FOUND', why, { kind, key });
    });
  });
  const sessions = stopped.map(({ session, isReplay }) => ({
    ...intentSessionJson(session),
    changed: !isReplay,
  }));
  output.result({ kind, key, sessions }, () =>
    stopped
      .map(({ session, isReplay }) => outcomeOf(session, { client, isChanged: !isReplay }))
      .map((line) => printable(line).concat('\n'))
      .join(''),
  );
  return EXIT.ok;
}

async function stopSession(
  { flags, output }: Context,
  id: string,
  given: StopFlags,
): Promise<Exit> {
  const { client, tenant = DEFAULT_TENANT, force = false } = given;
  const intent: StreamStop = { type: 'stream.stop', sessionId: id, force };
  const by = { tenant, client };
  checkTyped(intent, by);
  const { session, isReplay } = await withHoldfast(flags, async (holdfast, settings) => {
    const intents = holdfast.intents(intentOptions(settings));
    return intents.submit(intent, by).catch(async (error: unknown) => {
      if (!(error instanceof SessionNotFoundError)) throw error;
      throw await whyNotFound(holdfast, intents, { id, tenant });
    });
  });
  output.result({ ...intentSessionJson(session), changed: !isReplay }, () =>
    printable(outcomeOf(session, { client, isChanged: !isReplay })).concat('\n'),
  );
  return EXIT.ok;
}

function outcomeOf(
  { id, state, reason, clients }: IntentSession,
  { client, isChanged }: { client: string; isChanged: boolean },
): string {
  const already = isChanged ? '' : ' already';
  if (state === 'ENDED') return `Session ${id} has ended${already}${reason ? `: ${reason}` : ''}.`;
  if (state === 'STOPPING') return `Session ${id} is stopping${already}.`;
  const others = `${counted(clients, 'client')} ${clients === 1 ? 'needs' : 'need'} it`;
  return `Session ${id} continues: '${client}' no longer needs it, but ${others}. Stop it anyway: holdfast intents stop --force ${id}`;
}

/**
 * A user of the store may see the sessions of all tenants, so the message can say where the session
 * is.
 */
async function whyNotFound(
  holdfast: Holdfast,
  intents: Intents,
  { id, tenant }: { id: string; tenant: string },
): Promise<CliError> {
  const found = await intents.session(id, null);
  const isPolled = found === null && (await holdfast.targets.get(id).catch(() => null)) !== null;
  const why =
    found !== null
      ? `session '${id}' belongs to tenant '${found.tenant}', not to '${tenant}'. Add --tenant ${found.tenant}`
      : isPolled
        ? `'${id}' is a target, not a session. Stop polling it: holdfast targets pause ${id}`
        : `session '${id}' does not exist. List the sessions: holdfast sessions ls`;
  return new CliError(EXIT.no, 'SESSION_NOT_FOUND', why, { session: id });
}
