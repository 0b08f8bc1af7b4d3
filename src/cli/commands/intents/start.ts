import { isatty } from 'node:tty';
import { systemClock } from '../../../core/clock.ts';
import { type Duration, durationMs } from '../../../core/duration.ts';
import { shortName } from '../../../core/ids.ts';
import {
  DEFAULT_TENANT,
  type Requester,
  type Start,
  type StreamStart,
  type VodStart,
} from '../../../intents/intent.ts';
import type { IntentSession } from '../../../intents/intent-session.ts';
import type { Accepted, Intents } from '../../../intents/intents.ts';
import { intentSessionJson } from '../../../server/routes/json/session-json.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit, usageError } from '../../exit-codes.ts';
import { readJsonObject } from '../../json-argument.ts';
import { withHoldfast } from '../../opening.ts';
import { neverBlock, type Output } from '../../ui/output.ts';
import { StatusOutput } from '../../ui/status-output.ts';
import { StopSignals } from '../../ui/stop-signals.ts';
import { counted, printable, spanOf } from '../../ui/text.ts';
import { sessionNotFound } from '../sessions/sessions.ts';
import { checkTyped, intentOptions } from './submission.ts';

/** How often `--wait` reads the session. */
const POLL_EVERY_MS = 200;
/** When to say that no worker has taken the session. */
const UNTAKEN_NOTICE_MS = 5_000;

export interface StartFlags {
  readonly kind?: string;
  readonly key?: string;
  readonly params?: string;
  readonly recording?: boolean;
  readonly at?: Duration;
  readonly profile?: string;
  readonly client: string;
  readonly tenant?: string;
  readonly wait?: boolean;
}

export async function start(
  { flags, output }: Context,
  ref: string | undefined,
  given: StartFlags,
): Promise<Exit> {
  const intent = intentOf(ref, given);
  const by = { tenant: given.tenant ?? DEFAULT_TENANT, client: given.client };
  checkTyped(intent, by);
  const ending = new StopSignals();
  try {
    return await withHoldfast(
      flags,
      async (holdfast, settings) => {
        const intents = holdfast.intents(intentOptions(settings));
        const accepted = await intents.submit(intent, by);
        if (given.wait === true) return follow({ intents, by, output, ending }, accepted);
        printAccepted(output, accepted);
        return EXIT.ok;
      },
      // With `apiLeases` this command takes a lease.
      (settings) => ({ observe: intentOptions(settings).apiLeases !== 'on', create: true }),
    );
  } finally {
    ending.close();
  }
}

function intentOf(
  ref: string | undefined,
  { kind, key, params, ...given }: StartFlags,
): StreamStart | VodStart | Start {
  if (kind !== undefined) {
    const others = ['recording', 'at', 'profile'].filter((name) => Object.hasOwn(given, name));
    if (ref !== undefined || others.length > 0)
      throw usageError(
        'with --kind, give --key and --params only: no REF, --recording, --at, --profile.',
      );
    const named = key === undefined ? {} : { key };
    return {
      type: 'start',
      kind,
      ...named,
      params: params === undefined ? {} : readJsonObject(params, '--params'),
    };
  }
  if (key !== undefined || params !== undefined)
    throw usageError('--key and --params need a kind: use them with --kind.');
  if (ref === undefined)
    throw usageError('REF is missing: give the channel to start, or use --kind.');
  return channelOf(ref, given);
}

function channelOf(
  ref: string,
  { recording, at, profile }: Pick<StartFlags, 'recording' | 'at' | 'profile'>,
): StreamStart | VodStart {
  const how = profile === undefined ? {} : { profile };
  if (recording === true) {
    const from = at === undefined ? {} : { startMs: durationMs(at, '--at') };
    return { type: 'vod.start', recordingId: ref, ...how, ...from };
  }
  if (at !== undefined) throw usageError('--at is for recordings: use it with --recording.');
  return { type: 'stream.start', serviceRef: ref, ...how };
}

function printAccepted(output: Output, { session, isReplay }: Accepted): void {
  output.result({ ...intentSessionJson(session), replayed: isReplay }, () => {
    const { id, state, clients } = session;
    const what = isReplay
      ? `Session ${id} exists already: ${state}, ${counted(clients, 'client')}.`
      : `Session ${id} was accepted, and waits for a worker${ofKind(session)}.`;
    return printable(`${what} Show it: holdfast sessions get ${id}`).concat('\n');
  });
}

function ofKind({ type, kind }: IntentSession): string {
  return type === 'start' ? ` that takes kind '${kind}'` : '';
}

interface Following {
  readonly intents: Intents;
  readonly by: Requester;
  readonly output: Output;
  readonly ending: StopSignals;
}

/** Waits until the session runs or has ended, and shows its progress. */
async function follow(
  { intents, by, output, ending }: Following,
  { session: { id }, isReplay }: Accepted,
): Promise<Exit> {
  neverBlock();
  const startMs = systemClock.monotonicMs();
  const status = isatty(1) && !output.json ? new StatusOutput() : null;
  let hasNoted = false;
  for (;;) {
    const session = await intents.session(id, by.tenant);
    if (session === null) throw sessionNotFound(id);
    const tookMs = systemClock.monotonicMs() - startMs;
    if (session.state === 'RUNNING' || session.state === 'ENDED') {
      status?.clear();
      return conclude(output, { session, isReplay }, tookMs);
    }
    if (session.state === 'NEW' && tookMs > UNTAKEN_NOTICE_MS && !hasNoted) {
      status?.clear();
      const kinds = session.type === 'start' ? ` --kinds ${session.kind}` : '';
      output.note(`no worker has taken the session yet. Start one with: holdfast up${kinds}`);
      hasNoted = true;
    }
    status?.show(`session ${id} ${PROGRESS[session.state]} … ${spanOf(tookMs)}`);
    await systemClock.sleep(POLL_EVERY_MS, ending.asked).catch(() => {});
    if (!ending.asked.aborted) continue;
    status?.clear();
    output.note(
      `stopped waiting; session ${id} continues. Stop it with: holdfast intents stop ${id}`,
    );
    return ending.asked.reason as NodeJS.Signals;
  }
}

const PROGRESS = {
  NEW: 'waits for a worker',
  STARTING: 'is being started',
  STOPPING: 'is being stopped',
} as const;

function conclude(output: Output, { session, isReplay }: Accepted, tookMs: number): Exit {
  const { id, state, reason, outcome, worker } = session;
  const isDone = outcome === 'COMPLETED';
  if (state === 'ENDED' && !isDone) {
    const message = `session ${id} ended before it ran: ${reason ?? 'no reason given'}. Show it: holdfast sessions get ${id}`;
    throw new CliError(EXIT.no, 'SESSION_ENDED', message, intentSessionJson(session));
  }
  output.result(
    { ...intentSessionJson(session), replayed: isReplay, tookMs: Math.round(tookMs) },
    () => {
      const by = worker === null ? '' : `, by ${shortName(worker)}`;
      const what = isDone ? 'was completed' : 'runs';
      return printable(`Session ${id} ${what}${by}, after ${spanOf(tookMs)}.`).concat('\n');
    },
  );
  return EXIT.ok;
}
