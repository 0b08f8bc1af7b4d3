/**
 * `holdfast run`: a lease around a command. This process holds the lease and renews it. The
 * supervisor, another process, runs the command and stops it in time, even if this process dies:
 * see `worker/supervisor/group-run.ts`. After every renewal this process tells the supervisor until
 * when the command may run. If the supervisor dies or hangs, this process ends the command itself:
 * see `worker/supervisor/commands.ts`. The command begins when this process knows its process
 * group, so that one of the two can always end it.
 */
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { systemClock } from '../../../core/clock.ts';
import { checkKey } from '../../../core/ids.ts';
import type { Holdfast } from '../../../holdfast.ts';
import type { Lease } from '../../../lease/lease.ts';
import {
  type CommandOutcome,
  type Commands,
  supervisedCommands,
} from '../../../worker/supervisor/commands.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit } from '../../exit-codes.ts';
import { openConfigured } from '../../opening.ts';
import { neverBlock, type Output } from '../../ui/output.ts';
import { CommandSignals } from './command-signals.ts';
import { lost, notStarted, supervisorGone, survivors } from './complaints.ts';
import { type Plan, planRun, type TimingFlags } from './plan.ts';
import { WaitingOutput } from './waiting-output.ts';
import { wantedLease, wantedSlot } from './wanted.ts';

export interface RunFlags extends TimingFlags {
  readonly quiet?: boolean;
  readonly heldExitCode?: number;
  /** The slots of the pool. Undefined: a lease. */
  readonly slots?: number;
}

/** A command that one of these ended ends this process the same way. Others become 128 + n. */
const RAISED: readonly string[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

interface Run {
  readonly key: string;
  readonly slots: number | undefined;
  readonly command: readonly string[];
  readonly plan: Plan;
  readonly isQuiet: boolean;
  readonly heldExitCode: number;
  readonly output: Output;
  readonly commands: Commands;
  readonly signals: CommandSignals;
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
      'holdfast run needs process groups, which Windows does not have. Use it in WSL, or use withLease in a program.';
    throw new CliError(EXIT.usage, 'UNSUPPORTED', message);
  }
  neverBlock({ isShared: true });
  const commands = supervisedCommands(systemClock, { isInherited: true });
  const signals = new CommandSignals();
  try {
    const opening = openConfigured(flags);
    const holdfast = await unlessEnded(signals, opening);
    if (holdfast === null) return signals.endedBy;
    const run = { key, slots, command, plan, isQuiet, heldExitCode, output, commands, signals };
    try {
      return await acquireAndRun(run, holdfast);
    } finally {
      // From here on a signal ends this process at once.
      signals.close();
      await holdfast.close({ within: 0 });
    }
  } finally {
    signals.close();
    void commands.close();
  }
}

async function acquireAndRun(run: Run, holdfast: Holdfast): Promise<Exit> {
  const { key, slots, plan, isQuiet, heldExitCode, output, signals } = run;
  const wanted =
    slots === undefined ? wantedLease(holdfast, key, plan) : wantedSlot(holdfast, key, slots, plan);
  const isWatched = plan.waitMs > 0 && !isQuiet && !output.json && isatty(2);
  const line = isWatched ? new WaitingOutput(wanted) : null;
  const acquiring = wanted.acquire(signals.ending);
  const result = await unlessEnded(signals, acquiring).finally(() => line?.close());
  if (result === null) return signals.endedBy;
  if ('lease' in result) return runUnder(run, holdfast, result.lease, result.slot);
  const { refusal } = result;
  // --quiet and --held-exit-code are for a lease that another holder has: that one does the work.
  const isHeld = refusal.facts.reason === 'held';
  if (!isHeld || !isQuiet) output.complain(refusal);
  return isHeld ? heldExitCode : refusal.exit;
}

/** Runs the command while the lease is held. Releases the lease when no process of it is left. */
async function runUnder(
  run: Run,
  holdfast: Holdfast,
  lease: Lease,
  slot: string | null,
): Promise<Exit> {
  const { command, plan, commands, signals, output } = run;
  const { graceMs } = plan;
  const env = {
    HOLDFAST_LEASE_KEY: lease.key,
    HOLDFAST_FENCE: String(lease.fence),
    // The old name, for one version.
    HOLDFAST_LEASE_FENCE: String(lease.fence),
    ...(slot !== null && { HOLDFAST_SLOT: slot }),
  };
  const ordered = commands.run({ command, env, deadline: [lease.deadline], graceMs });
  void ordered.started.then((group) => group !== null && ordered.begin());
  signals.passOnTo((signal, then) => ordered.signal(signal, then));
  const extend = () => ordered.extend([lease.deadline]);
  // `isHeld` of a lease in doubt sends a renewal.
  ordered.onDoubt(() => void lease.isHeld());
  holdfast.on('lease.renewed', extend);
  holdfast.on('lease.reasserted', extend);
  const onLost = () => ordered.stop();
  if (lease.signal.aborted) onLost();
  else lease.signal.addEventListener('abort', onLost, { once: true });

  const verdict = judge(run, lease, await ordered.outcome);
  // A lease of processes that may still act is never released: it expires.
  if (verdict.isEnded) await lease.release();
  if (verdict.error !== undefined) output.complain(verdict.error);
  return verdict.exit;
}

type Ended = Extract<CommandOutcome, { event: 'ended' }>;

interface Verdict {
  readonly exit: Exit;
  readonly error?: CliError;
  /** No process of the command is left. */
  readonly isEnded: boolean;
}

function judge({ command }: Run, lease: Lease, outcome: CommandOutcome): Verdict {
  if (outcome.event === 'failed') return failing(notStarted(command[0] ?? '', outcome.error), true);
  const isEnded = !outcome.survivors;
  const isUnsupervised = outcome.why === 'unsupervised';
  const isStopped = outcome.why === 'deadline' || outcome.why === 'ordered';
  const isLost = isStopped || (isUnsupervised && lease.signal.aborted);
  if (isLost && isEnded) return failing(lost(lease), true);
  if (isUnsupervised) return failing(supervisorGone(isEnded), isEnded);
  if (!isEnded) return failing(survivors(lease.key), false);
  // A signal ended it before the command began.
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

/** The result of the promise, or null if a signal asks this process to end before that. */
async function unlessEnded<T>({ ending }: CommandSignals, promise: Promise<T>): Promise<T | null> {
  return new Promise((resolve, reject) => {
    if (ending.aborted) resolve(null);
    ending.addEventListener('abort', () => resolve(null), { once: true });
    promise.then(resolve, reject);
  });
}
