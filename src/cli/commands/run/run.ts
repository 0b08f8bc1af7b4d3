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
import { ConfigError } from '../../../core/errors.ts';
import { checkKey } from '../../../core/ids.ts';
import type { Lease } from '../../../lease/lease.ts';
import type { PeriodOptions } from '../../../lease/period.ts';
import { DEFAULT_MAX_TTLS } from '../../../store/port/keyspaces.ts';
import {
  type CommandOutcome,
  type Commands,
  supervisedCommands,
} from '../../../worker/supervisor/commands.ts';
import type { Context } from '../../context.ts';
import { CliError, EXIT, type Exit } from '../../exit-codes.ts';
import { openLeasesOf } from '../../opening.ts';
import { neverBlock, type Output } from '../../ui/output.ts';
import { CommandSignals } from './command-signals.ts';
import { lost, notRunError, notStarted, supervisorGone, survivors } from './complaints.ts';
import { type Plan, planRun, type TimingFlags } from './plan.ts';
import { type RunLeases, runLeases } from './run-leases.ts';
import { WaitingOutput } from './waiting-output.ts';
import { type Wanted, wantedLease, wantedSlot } from './wanted.ts';

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
  /** Undefined: 75, or 0 with `--once-per`. */
  readonly heldExitCode: number | undefined;
  readonly output: Output;
  readonly commands: Commands;
  readonly signals: CommandSignals;
}

export async function run(
  { flags, output }: Context,
  key: string,
  command: readonly string[],
  { quiet: isQuiet = false, heldExitCode, slots, ...timings }: RunFlags,
): Promise<Exit> {
  checkKey(key, 'KEY');
  const plan = planRun(timings);
  if (slots !== undefined && plan.period !== null)
    throw new ConfigError({ field: '--slots', value: slots, rule: 'not with --once-per' });
  if (process.platform === 'win32') {
    const message =
      'holdfast run needs process groups, which Windows does not have. Use it in WSL, or use withLease in a program.';
    throw new CliError(EXIT.usage, 'UNSUPPORTED', message);
  }
  neverBlock({ isShared: true });
  const commands = supervisedCommands(systemClock, { isInherited: true });
  const signals = new CommandSignals();
  try {
    const opening = openLeasesOf(flags).then(runLeases);
    const holdfast = await unlessEnded(signals, opening);
    if (holdfast === null) return signals.endedBy;
    const run = { key, slots, command, plan, isQuiet, heldExitCode, output, commands, signals };
    try {
      const { period } = plan;
      return await (period === null
        ? acquireAndRun(run, holdfast)
        : runOncePer(run, holdfast, period));
    } finally {
      // From here on a signal ends this process at once.
      signals.close();
      await holdfast.close();
    }
  } finally {
    signals.close();
    void commands.close();
  }
}

async function acquireAndRun(run: Run, holdfast: RunLeases): Promise<Exit> {
  const { key, slots, plan, isQuiet, heldExitCode = EXIT.held, output, signals } = run;
  const wanted =
    slots === undefined ? wantedLease(holdfast, key, plan) : wantedSlot(holdfast, key, slots, plan);
  const line = watchedWait(run, wanted);
  const acquiring = wanted.acquire(signals.ending);
  const result = await unlessEnded(signals, acquiring).finally(() => line?.close());
  if (result === null) return signals.endedBy;
  if ('lease' in result) {
    const { lease, slot } = result;
    const verdict = await runUnder(run, holdfast, lease, slot);
    // A lease of processes that may still act is never released: it expires.
    if (verdict.isEnded) await releaseAfterHold(run, holdfast, lease);
    return report(run, verdict);
  }
  const { refusal } = result;
  // --quiet and --held-exit-code are for a lease that another holder has: that one does the work.
  const isHeld = refusal.facts.reason === 'held';
  if (!isHeld || !isQuiet) output.complain(refusal);
  return isHeld ? heldExitCode : refusal.exit;
}

/** The line that shows whom this process waits for, if a person watches. */
function watchedWait({ plan, isQuiet, output }: Run, wanted: Wanted): WaitingOutput | null {
  const isWatched = plan.waitMs > 0 && !isQuiet && !output.json && isatty(2);
  return isWatched ? new WaitingOutput(wanted) : null;
}

/** `--once-per`: runs the command unless this period has had its run. */
async function runOncePer(run: Run, holdfast: RunLeases, period: PeriodOptions): Promise<Exit> {
  const { key, plan, signals, output, isQuiet, heldExitCode = EXIT.ok } = run;
  const options = { ...period, ...plan.timings, wait: plan.waitMs, signal: signals.ending };
  const line = watchedWait(run, wantedLease(holdfast, key, plan));
  let verdict: Verdict | null = null;
  const running = holdfast.once(key, options, async ({ lease }) => {
    line?.close();
    signals.ending.throwIfAborted();
    verdict = await runUnder(run, holdfast, lease, null);
    // A lease of processes that may still act is never released: it expires.
    if (!verdict.isEnded) void lease.release({ settled: new Promise(() => {}), within: 0 });
    if (!verdict.isInterrupted) return;
    // To `once`, work that ends without its lease and with an error has crashed.
    await lease.release();
    throw new Error('interrupted');
  });
  const result = await unlessEnded(
    signals,
    running.catch((error) => {
      if (verdict === null) throw error;
      return { ok: true } as const;
    }),
  ).finally(() => line?.close());
  if (result === null) return signals.endedBy;
  if (verdict !== null) return report(run, verdict);
  if (result.ok) return EXIT.internal;
  const error = notRunError(result);
  if (result.reason === 'quarantine') output.complain(error);
  else if (!isQuiet) output.skipped(error);
  return result.reason === 'running' ? heldExitCode : error.exit;
}

/**
 * Releases the lease, and keeps its key taken for the rest of `--hold-at-least`. This process holds
 * the lease itself for as long as that rest is longer than the store allows.
 */
async function releaseAfterHold(run: Run, holdfast: RunLeases, lease: Lease): Promise<void> {
  const { plan, signals } = run;
  const restMs = () => {
    const heldMs = systemClock.wallMs() - lease.acquiredAt.getTime();
    return Math.max(0, plan.holdAtLeastMs - heldMs);
  };
  if (restMs() === 0) {
    await lease.release();
    return;
  }
  const bounds = await holdfast.maxTtl().catch(() => ({ lease: undefined }));
  const maxMs = bounds.lease ?? DEFAULT_MAX_TTLS.lease;
  signals.passOnTo(null);
  const isOver = AbortSignal.any([signals.ending, lease.signal]);
  if (restMs() > maxMs) await systemClock.sleep(restMs() - maxMs, isOver).catch(() => {});
  await lease.release({ keepFor: Math.min(restMs(), maxMs) });
}

function report({ output }: Run, { error, exit }: Verdict): Exit {
  if (error !== undefined) output.complain(error);
  return exit;
}

/** Runs the command while the lease is held. */
async function runUnder(
  run: Run,
  holdfast: RunLeases,
  lease: Lease,
  slot: string | null,
): Promise<Verdict> {
  const { command, plan, commands, signals } = run;
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

  return judge(run, lease, await ordered.outcome);
}

type Ended = Extract<CommandOutcome, { event: 'ended' }>;

interface Verdict {
  readonly exit: Exit;
  readonly error?: CliError;
  /** No process of the command is left. */
  readonly isEnded: boolean;
  /** The command did not come to its own end: a signal ended it, or it did not begin. */
  readonly isInterrupted: boolean;
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
  const isInterrupted = outcome.signal !== null;
  return { exit: exitOfCommand(outcome), isEnded: true, isInterrupted };
}

function failing(error: CliError, isEnded: boolean): Verdict {
  return { exit: error.exit, error, isEnded, isInterrupted: true };
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
