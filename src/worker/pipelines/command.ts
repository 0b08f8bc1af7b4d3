/**
 * A pipeline that is a command, in its own process group and under a supervisor: see `commands.ts`.
 */
import type { Clock } from '../../core/clock.ts';
import type { IntentSession } from '../../intents/intent-session.ts';
import type { KindCommand } from '../../intents/kind.ts';
import type { CommandOutcome, Commands } from '../supervisor/commands.ts';
import type { CommandPipeline } from '../worker-options.ts';
import type { Pipeline, PipelineEnd, PipelineHold, Running } from './pipeline.ts';

export interface CommandPipelineSettings {
  readonly command: CommandPipeline | KindCommand;
  /** How long the command may take to end before it is killed. */
  readonly graceMs: number;
}

export function commandPipeline(
  clock: Clock,
  commands: Commands,
  settings: CommandPipelineSettings,
): Pipeline['start'] {
  const { command: option, graceMs } = settings;
  return (session: IntentSession, hold: PipelineHold): Running => {
    const startedAtMs = clock.monotonicMs();
    const run = commands.run({
      command: option.command,
      env: { ...option.env, ...environmentOf(session, hold) },
      cwd: option.cwd,
      params: session.type === 'start' ? JSON.stringify(session.params) : undefined,
      deadline: hold.deadline(),
      graceMs,
    });
    run.onProgress((text) => hold.progress(text));
    run.onDoubt(() => hold.confirm());
    let isStopped = false;
    const ended = run.outcome.then((outcome) => {
      const tookMs = Math.round(clock.monotonicMs() - startedAtMs);
      return endOf(option, outcome, tookMs, isStopped || hold.signal.aborted);
    });
    return {
      started: run.started,
      ended,
      begin: () => run.begin(),
      extend: () => run.extend(hold.deadline()),
      stop: () => {
        isStopped = true;
        run.stop();
      },
    };
  };
}

/** The variables that tell a command about its session. */
function environmentOf(session: IntentSession, hold: PipelineHold): Record<string, string> {
  const { id, kind, type, target, profile, bucket, tenant, startMs } = session;
  const environment: Record<string, string> = {
    HOLDFAST_SESSION_ID: id,
    HOLDFAST_SESSION_KIND: kind,
    HOLDFAST_SESSION_TYPE: type,
    HOLDFAST_SESSION_TENANT: tenant,
    HOLDFAST_FENCE: String(hold.fence),
  };
  if (type === 'start') {
    environment.HOLDFAST_SESSION_KEY = target;
    environment.HOLDFAST_ATTEMPT = String(hold.attempt);
  } else {
    environment.HOLDFAST_SESSION_TARGET = target;
    environment.HOLDFAST_SESSION_PROFILE = profile;
    environment.HOLDFAST_SESSION_BUCKET = bucket;
  }
  if (startMs !== undefined) environment.HOLDFAST_SESSION_START_MS = String(startMs);
  if (hold.slot !== null) environment.HOLDFAST_SLOT = hold.slot;
  return environment;
}

/** A command, and the directory that it runs in. */
interface CommandPlace {
  readonly command: readonly string[];
  readonly cwd?: string | undefined;
}

/** Why a command has ended, in words; null if it completed. */
export function whyEnded(option: CommandPlace, outcome: CommandOutcome): string | null {
  return outcome.event === 'failed' ? whyNotStarted(option, outcome.error) : whyFailed(outcome);
}

function endOf(
  option: KindCommand,
  outcome: CommandOutcome,
  tookMs: number,
  isStopped: boolean,
): PipelineEnd {
  if (outcome.event === 'failed') {
    const error = whyNotStarted(option, outcome.error);
    return { how: isStopped ? 'stopped' : 'failed', isGone: true, detail: { tookMs, error } };
  }
  const { why, code, signal, survivors, output } = outcome;
  const error = survivors ? SURVIVORS : whyFailed(outcome);
  const wasStopped = isStopped || why === 'deadline' || why === 'ordered';
  const isFailure = survivors || (!wasStopped && error !== null);
  return {
    how: wasStopped ? 'stopped' : error === null ? 'completed' : 'failed',
    isGone: !survivors,
    detail: {
      tookMs,
      code,
      signal,
      output,
      error: isFailure && error !== null ? error : undefined,
    },
  };
}

const SURVIVORS =
  'some of its processes could not be ended: they run as another user, or hang. End them by hand';

function whyFailed({
  why,
  code,
  signal,
}: Extract<CommandOutcome, { event: 'ended' }>): string | null {
  if (why === 'unsupervised')
    return 'its supervisor process was killed or suspended, so the command was ended. Find out what killed or suspended that process';
  if (why === 'terminated' || why === 'orphaned')
    return 'its supervisor process was told to end, so the command was ended. Stop the worker instead of its supervisor';
  if (signal !== null) return `the command was ended by ${signal}`;
  return code === 0 ? null : `the command ended with exit code ${code}`;
}

/** The program, or the directory to run it in, does not exist. */
const NOT_FOUND = ['ENOENT', 'ENOTDIR'];
/** The host is out of processes, files or memory. */
const NO_ROOM = ['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM'];

function whyNotStarted({ command: [name = ''], cwd }: CommandPlace, error: string): string {
  const where = cwd === undefined ? '' : `, and that the directory '${cwd}' exists`;
  if (NOT_FOUND.includes(error)) return `'${name}' was not found. Check its name, and PATH${where}`;
  if (NO_ROOM.includes(error))
    return `'${name}' could not be started (${error}): the host is out of processes, files or memory. Raise its limits`;
  if (error === 'CLOSED') return 'the command was not started, because the worker is stopping';
  return `'${name}' cannot be executed (${error}). Check that it is a program, and its permissions`;
}
