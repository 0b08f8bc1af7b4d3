import { isatty } from 'node:tty';
import { systemClock } from '../../../core/clock.ts';
import { type Duration, durationMs } from '../../../core/duration.ts';
import { shortName } from '../../../core/ids.ts';
import { SessionNotFoundError } from '../../../fleet/targets/errors.ts';
import {
  DEFAULT_TENANT,
  type Requester,
  type StreamStart,
  type VodStart,
} from '../../../intents/intent.ts';
import type { Accepted, Intents } from '../../../intents/intents.ts';
import { intentSessionJson } from '../../../server/routes/json/session-json.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit, usageError } from '../../exit-codes.ts';
import { withHoldfast } from '../../opening.ts';
import { Ending } from '../../ui/ending.ts';
import { neverBlock, type Output } from '../../ui/output.ts';
import { StatusLine } from '../../ui/status-line.ts';
import { counted, printable, spanOf } from '../../ui/text.ts';
import { checkTyped, intentOptions } from './submission.ts';

/** How often to look how far it is. */
const LOOK_EVERY_MS = 200;
/** If no worker has it by then, that is worth a word. */
const LONELY_AFTER_MS = 5_000;

export interface StartFlags {
  readonly recording?: boolean;
  readonly at?: Duration;
  readonly profile?: string;
  readonly client: string;
  readonly tenant?: string;
  readonly wait?: boolean;
}

export async function start(
  { flags, output }: Context,
  ref: string,
  given: StartFlags,
): Promise<Exit> {
  const intent = wantedBy(ref, given);
  const by = { tenant: given.tenant ?? DEFAULT_TENANT, client: given.client };
  checkTyped(intent, by);
  const ending = new Ending();
  try {
    return await withHoldfast(
      flags,
      async (holdfast, settings) => {
        const intents = holdfast.intents(intentOptions(settings));
        const accepted = await intents.submit(intent, by);
        if (given.wait === true) return follow({ intents, by, output, ending }, accepted);
        tell(output, accepted);
        return EXIT.ok;
      },
      // With leases taken by the API, this command takes one.
      (settings) => ({ observe: intentOptions(settings).apiLeases !== 'on', create: true }),
    );
  } finally {
    ending.close();
  }
}

function wantedBy(ref: string, { recording, at, profile }: StartFlags): StreamStart | VodStart {
  const how = profile === undefined ? {} : { profile };
  if (recording === true) {
    const from = at === undefined ? {} : { startMs: durationMs(at, '--at') };
    return { type: 'vod.start', recordingId: ref, ...how, ...from };
  }
  if (at !== undefined)
    throw usageError('--at says where in a recording to begin: use it with --recording.');
  return { type: 'stream.start', serviceRef: ref, ...how };
}

function tell(output: Output, { session, isReplay }: Accepted): void {
  output.result({ ...intentSessionJson(session), replayed: isReplay }, () => {
    const { id, state, clients } = session;
    const what = isReplay
      ? `Session ${id} was started before: ${state}, ${counted(clients, 'client')}.`
      : `Session ${id} is accepted, and waits for a worker.`;
    return printable(`${what} See it: holdfast sessions get ${id}`).concat('\n');
  });
}

interface Following {
  readonly intents: Intents;
  readonly by: Requester;
  readonly output: Output;
  readonly ending: Ending;
}

/** Waits until it runs or has ended, and says how far it is. */
async function follow(
  { intents, by, output, ending }: Following,
  { session: { id }, isReplay }: Accepted,
): Promise<Exit> {
  neverBlock();
  const startMs = systemClock.monotonicMs();
  const status = isatty(1) && !output.json ? new StatusLine() : null;
  let hasSaidLonely = false;
  for (;;) {
    const session = await intents.session(id, by.tenant);
    if (session === null) throw new SessionNotFoundError({ session: id });
    const tookMs = systemClock.monotonicMs() - startMs;
    if (session.state === 'RUNNING' || session.state === 'ENDED') {
      status?.clear();
      return conclude(output, { session, isReplay }, tookMs);
    }
    if (session.state === 'NEW' && tookMs > LONELY_AFTER_MS && !hasSaidLonely) {
      status?.clear();
      output.note('no worker has taken it yet. It stays in the store until one does.');
      hasSaidLonely = true;
    }
    status?.show(`session ${id} ${PROGRESS[session.state]} … ${spanOf(tookMs)}`);
    await systemClock.sleep(LOOK_EVERY_MS, ending.asked).catch(() => {});
    if (!ending.asked.aborted) continue;
    status?.clear();
    output.note(
      `stopped waiting; session ${id} stays wanted. If it is not: holdfast intents stop ${id}`,
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
  const { id, state, reason, worker } = session;
  if (state === 'ENDED') {
    const message = `session ${id} has ended, and does not run: ${reason ?? 'no reason given'}. All about it: holdfast sessions get ${id}`;
    throw new CliError(EXIT.no, 'SESSION_ENDED', message, intentSessionJson(session));
  }
  output.result(
    { ...intentSessionJson(session), replayed: isReplay, tookMs: Math.round(tookMs) },
    () => {
      const by = worker === null ? '' : `, by ${shortName(worker)}`;
      return printable(`Session ${id} runs${by}, after ${spanOf(tookMs)}.`).concat('\n');
    },
  );
  return EXIT.ok;
}
