/** A pipeline that is a command, in a process group of its own and under a supervisor: see `process/commands.ts`. */
import type { Clock } from '../../core/clock.ts';
import type { IntentSession } from '../../intents/intent-session.ts';
import type { CommandOutcome, Commands } from '../supervisor/commands.ts';
import type { CommandPipeline } from '../worker-options.ts';
import type { Pipeline, PipelineEnd, PipelineHold, Running } from './pipeline.ts';

interface CommandPipelineParts {
  readonly clock: Clock;
  readonly commands: Commands;
  /** How long it may take to end, asked to, before it is killed. */
  readonly graceMs: number;
}

export function commandPipeline(
  option: CommandPipeline,
  resource: string | null,
  { clock, commands, graceMs }: CommandPipelineParts,
): Pipeline {
  const { command, cwd } = option;
  const start = (session: IntentSession, hold: PipelineHold): Running => {
    const startedMs = clock.monotonicMs();
    const env = { ...option.env, ...environmentOf(session, hold) };
    const deadline = hold.deadline();
    const run = commands.run({
      command,
      env,
      ...(cwd !== undefined && { cwd }),
      deadline,
      graceMs,
    });
    run.onProgress((text) => hold.progress(text));
    run.onDoubt(() => hold.confirm());
    let isTold = false;
    const ended = run.outcome.then((outcome) => {
      const tookMs = Math.round(clock.monotonicMs() - startedMs);
      return endOf(option, outcome, { tookMs, isTold: isTold || hold.signal.aborted });
    });
    const stop = () => {
      isTold = true;
      run.stop();
    };
    const begin = () => run.begin();
    const extend = () => run.extend(hold.deadline());
    return { started: run.started, begin, ended, extend, stop };
  };
  return { resource, start };
}

/** What a command is told of its session. */
function environmentOf(session: IntentSession, hold: PipelineHold): Record<string, string> {
  const { id, kind, type, target, profile, bucket, tenant, startMs } = session;
  return {
    HOLDFAST_SESSION_ID: id,
    HOLDFAST_SESSION_KIND: kind,
    HOLDFAST_SESSION_TYPE: type,
    HOLDFAST_SESSION_TARGET: target,
    HOLDFAST_SESSION_PROFILE: profile,
    HOLDFAST_SESSION_BUCKET: bucket,
    HOLDFAST_SESSION_TENANT: tenant,
    ...(startMs !== undefined && { HOLDFAST_SESSION_START_MS: String(startMs) }),
    ...(hold.slot !== null && { HOLDFAST_SLOT: hold.slot }),
    HOLDFAST_FENCE: String(hold.fence),
  };
}

interface HowItWent {
  readonly tookMs: number;
  readonly isTold: boolean;
}

function endOf(
  option: CommandPipeline,
  outcome: CommandOutcome,
  { tookMs, isTold }: HowItWent,
): PipelineEnd {
  if (outcome.event === 'failed') {
    const error = whyNotStarted(option, outcome.error);
    return { how: isTold ? 'stopped' : 'failed', isGone: true, detail: { tookMs, error } };
  }
  const { why, code, signal, survivors, output } = outcome;
  const error = survivors ? SURVIVORS : whyFailed(outcome);
  const wasStopped = isTold || why === 'deadline' || why === 'ordered';
  const isComplaint = survivors || (!wasStopped && error !== null);
  return {
    how: wasStopped ? 'stopped' : error === null ? 'completed' : 'failed',
    isGone: !survivors,
    detail: { tookMs, code, signal, output, ...(isComplaint && error !== null && { error }) },
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
    return 'the process that supervised it died or stood still, so it was ended. Find out who killed or stopped that';
  if (why === 'terminated' || why === 'orphaned')
    return 'the process that supervised it was told to end, so it was ended. Stop the worker instead, and nobody else';
  if (signal !== null) return `it was ended by ${signal}`;
  return code === 0 ? null : `it ended with exit code ${code}`;
}

/** No such program, or no such directory to run it in. */
const NOT_FOUND = ['ENOENT', 'ENOTDIR'];
/** The host has no room for another. */
const NO_ROOM = ['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM'];

function whyNotStarted({ command: [name = ''], cwd }: CommandPipeline, error: string): string {
  const where = cwd === undefined ? '' : `, and that the directory '${cwd}' exists`;
  if (NOT_FOUND.includes(error)) return `'${name}' was not found. Check its name, and PATH${where}`;
  if (NO_ROOM.includes(error))
    return `'${name}' could not be started (${error}): the host has no room for more. Raise its limits of processes, files or memory`;
  if (error === 'CLOSED') return 'it was not started: the worker stops';
  return `'${name}' can not be executed (${error}). Check that it is a program, and its permissions`;
}
