/**
 * `holdfast run`: a lease around a command. This process, A, holds the lease and renews it; the supervisor, S, runs the
 * command and stops it in time, whatever becomes of A: see `process/supervision.ts`. A says until when the command may run, after
 * every renewal; and where S is no more, or stands still, A ends the command itself.
 */
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { systemClock } from '../../base/clock.ts';
import { checkKey } from '../../base/ids.ts';
import type { Holdfast } from '../../holdfast.ts';
import type { Lease } from '../../lease/lease.ts';
import type { Moment } from '../../process/host.ts';
import type { Ended } from '../../process/orders.ts';
import { endGroup, processGroup } from '../../process/process-group.ts';
import {
  type OrderedCommand,
  type Outcome,
  SupervisorProcess,
} from '../../process/supervisor-process.ts';
import type { Context } from '../context.ts';
import { CliError, EXIT, type Exit } from '../exit-codes.ts';
import { openConfigured } from '../opening.ts';
import type { Output } from '../output.ts';
import { lost, notStarted, supervisorGone, survivors } from './complaints.ts';
import { type Plan, planRun, type TimingFlags } from './plan.ts';
import { Signals } from './signals.ts';
import { WaitingLine } from './waiting-line.ts';
import { wantedLease, wantedSlot } from './wanted.ts';

export interface RunFlags extends TimingFlags {
  readonly quiet?: boolean;
  readonly heldExitCode?: number;
  /** How many may run at once; absent: one. */
  readonly slots?: number;
}

/** A command that was ended by one of these ends us the same way, as shells expect; for others there is 128 + n. */
const RAISED: readonly string[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

interface Run {
  readonly key: string;
  readonly slots: number | undefined;
  readonly command: readonly string[];
  readonly plan: Plan;
  readonly isQuiet: boolean;
  readonly heldExitCode: number;
  readonly output: Output;
  readonly supervisor: SupervisorProcess;
  readonly signals: Signals;
}

export async function run(
  { flags, output }: Context,
  key: string,
  command: readonly string[],
  { quiet: isQuiet = false, heldExitCode = EXIT.held, slots, ...timings }: RunFlags,
): Promise<Exit> {
  checkKey(key, 'KEY');
  const plan = planRun(timings);
  if (process.platform === 'win32') {
    const message =
      'run needs process groups, which Windows does not have. Use it inside of WSL, or withLease in a program.';
    throw new CliError(EXIT.usage, 'UNSUPPORTED', message);
  }
  const supervisor = new SupervisorProcess({ isInherited: true });
  const signals = new Signals();
  try {
    const opening = openConfigured(flags, { maxTtl: plan.maxTtlMs });
    const holdfast = await unlessEnded(signals, opening);
    if (holdfast === null) return signals.endedBy;
    const run = { key, slots, command, plan, isQuiet, heldExitCode, output, supervisor, signals };
    try {
      return await acquireAndRun(run, holdfast);
    } finally {
      // From here on a signal ends us at once.
      signals.close();
      await holdfast.close({ within: 0 });
    }
  } finally {
    signals.close();
    supervisor.dismiss();
  }
}

async function acquireAndRun(run: Run, holdfast: Holdfast): Promise<Exit> {
  const { key, slots, plan, isQuiet, heldExitCode, output, signals } = run;
  const wanted =
    slots === undefined ? wantedLease(holdfast, key, plan) : wantedSlot(holdfast, key, slots, plan);
  const isWatched = plan.waitMs > 0 && !isQuiet && !output.json && isatty(2);
  const line = isWatched ? new WaitingLine(wanted) : null;
  const acquiring = wanted.acquire(signals.ending);
  const result = await unlessEnded(signals, acquiring).finally(() => line?.close());
  if (result === null) return signals.endedBy;
  if ('lease' in result) return runUnder(run, holdfast, result.lease, result.slot);
  if (!isQuiet) output.complain(result.refusal);
  return heldExitCode;
}

/** Runs the command while the lease is held, and lets go when nothing of it is left. */
async function runUnder(
  run: Run,
  holdfast: Holdfast,
  lease: Lease,
  slot: string | null,
): Promise<Exit> {
  const { command, plan, supervisor, signals, output } = run;
  const { graceMs } = plan;
  const env = {
    HOLDFAST_LEASE_KEY: lease.key,
    HOLDFAST_LEASE_FENCE: String(lease.fence),
    ...(slot !== null && { HOLDFAST_SLOT: slot }),
  };
  const ordered = supervisor.start({ command, env, deadline: deadlineOf(lease), graceMs });
  signals.passOnTo((signal, then) => ordered.signal(signal, then));
  // The answer to a renewal that comes too late is announced as well, and must not move the deadline.
  const extend = () => {
    if (lease.remainingMs() > 0) ordered.extend(deadlineOf(lease));
  };
  holdfast.on('lease.renewed', extend);
  holdfast.on('lease.reasserted', extend);

  const over = new AbortController();
  const outcome = await Promise.race([
    ordered.outcome,
    endedAfterLoss(run, ordered, lease, over.signal),
  ]);
  over.abort();
  supervisor.dismiss();
  const verdict = await judge(run, ordered, lease, outcome);
  // What may still act is never handed over: its lease runs out.
  if (verdict.isEnded) await lease.release();
  if (verdict.error !== undefined) output.complain(verdict.error);
  return verdict.exit;
}

/** Until when the command may run. The clocks are read first: what time passes in between makes it earlier, not later. */
function deadlineOf(lease: Lease): Moment {
  const [monotonicMs, wallMs] = [systemClock.monotonicMs(), systemClock.wallMs()];
  const leftMs = lease.remainingMs();
  return { monotonicMs: monotonicMs + leftMs, wallMs: wallMs + leftMs };
}

/** Has the command stopped when its lease is lost; and where that does not happen in time, kills it. */
function endedAfterLoss(
  { supervisor, plan }: Run,
  ordered: OrderedCommand,
  lease: Lease,
  over: AbortSignal,
): Promise<Outcome> {
  return new Promise((resolve) => {
    const onLost = async () => {
      ordered.stop();
      await systemClock.sleep(plan.graceMs, over);
      const survivors = !(await endGroupOf(ordered, 0));
      // It stands still, or it would have been faster; and it keeps our output open.
      supervisor.kill();
      const [code, signal] = [null, null];
      resolve({ event: 'ended', why: 'ordered', code, signal, survivors, output: [] });
    };
    const listener = () => void onLost().catch(() => {});
    if (lease.signal.aborted) listener();
    else lease.signal.addEventListener('abort', listener, { signal: over });
  });
}

async function endGroupOf({ group }: OrderedCommand, graceMs: number): Promise<boolean> {
  return group !== null && (await endGroup(processGroup(group.group), graceMs, systemClock));
}

interface Verdict {
  readonly exit: Exit;
  readonly error?: CliError;
  /** Nothing of the command is left. */
  readonly isEnded: boolean;
}

async function judge(
  { plan, command }: Run,
  ordered: OrderedCommand,
  lease: Lease,
  outcome: Outcome,
): Promise<Verdict> {
  if (outcome.event === 'failed') return failing(notStarted(command[0] ?? '', outcome.error), true);
  if (outcome.event === 'gone') {
    const isEnded = await endGroupOf(ordered, lease.signal.aborted ? 0 : plan.graceMs);
    return failing(supervisorGone(isEnded), isEnded);
  }
  if (outcome.survivors) return failing(survivors(lease.key), false);
  if (outcome.why === 'deadline' || outcome.why === 'ordered') return failing(lost(lease), true);
  // Told to end before the command began.
  if (outcome.code === null && outcome.signal === null) return failing(supervisorGone(true), true);
  return { exit: exitOfCommand(outcome), isEnded: true };
}

function failing(error: CliError, isEnded: boolean): Verdict {
  return { exit: error.exit, error, isEnded };
}

function exitOfCommand({ code, signal }: Ended): Exit {
  if (signal === null) return code ?? EXIT.internal;
  return RAISED.includes(signal) ? signal : 128 + constants.signals[signal];
}

/** What the promise gives, or null if we are told to end before that. */
async function unlessEnded<T>({ ending }: Signals, promise: Promise<T>): Promise<T | null> {
  return new Promise((resolve, reject) => {
    if (ending.aborted) resolve(null);
    ending.addEventListener('abort', () => resolve(null), { once: true });
    promise.then(resolve, reject);
  });
}
