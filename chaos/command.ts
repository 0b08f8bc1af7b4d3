/** The command line of the live fault run. */
import { tmpdir } from 'node:os';
import { EXIT } from '../src/cli/exit-codes.ts';
import { StatusOutput } from '../src/cli/ui/status-output.ts';
import { atExit } from '../test/support/process.ts';
import requireRedis from '../test/support/require-redis.ts';
import { HELP, readArguments, UsageError, type Wanted } from './arguments.ts';
import { isInNamespaces, namespacesMissing, runInNamespaces } from './namespaces.ts';
import { MissingProgramError, requirePostgres } from './postgres-programs.ts';
import { asJson, progressLine, summary } from './report.ts';
import { keepHistory, type Progress, type RunReport, runChaos, UnknownFaultError } from './run.ts';
import { type TopologyName, usesNamespaces } from './topologies.ts';

/** As shells have it for Ctrl-C. */
const INTERRUPTED = 130;
/** Without a terminal, a line this often. */
const LINE_EVERY_MS = 5_000;

process.exitCode = await main(process.argv.slice(2));
// A proxy or a half-open connection must not keep it from ending.
process.exit();

async function main(args: readonly string[]): Promise<number> {
  try {
    const wanted = readArguments(args);
    if (wanted === null) {
      process.stdout.write(`${HELP}\n`);
      return EXIT.ok;
    }
    return await run(wanted);
  } catch (error) {
    if (error instanceof UsageError || error instanceof UnknownFaultError) {
      process.stderr.write(`chaos: ${error.message}\nSee npm run chaos -- --help\n`);
      return EXIT.usage;
    }
    const isPlain = error instanceof MissingProgramError || !(error instanceof Error);
    process.stderr.write(`chaos: ${isPlain ? error : error.stack}\n`);
    return EXIT.internal;
  }
}

async function run(wanted: Wanted): Promise<number> {
  const { topology, seconds, seed, faults, isNaive, isJson, keep } = wanted;
  if (topology !== 'sqlite' && !topology.startsWith('postgres')) requireRedis();
  if (usesNamespaces(topology) && !isInNamespaces()) return again(topology);
  const show = progressShown(seconds, isJson);
  const report = await runChaos({
    topology,
    seconds,
    seed,
    variant: isNaive ? 'naive' : 'holdfast',
    ...(faults !== undefined && { faults }),
    stopsAtViolation: isNaive,
    signal: interruption(),
    onProgress: show,
  });
  show(null);
  const isFailed = report.verdict.violations.length > 0 && !isNaive;
  const path = isFailed || keep !== undefined ? keepHistory(report, keep ?? tmpdir()) : null;
  if (isJson) process.stdout.write(`${asJson(report, path)}\n`);
  else process.stdout.write(`${summary(report)}\n`);
  if (path !== null && !isJson) process.stdout.write(`\nThe whole history: ${path}\n`);
  return exitOf(report);
}

/** What is to be installed is installed before: in there is no way out to a network. */
async function again(topology: TopologyName): Promise<number> {
  if (topology.startsWith('postgres')) requirePostgres(['patroni', 'etcd']);
  const missing = namespacesMissing();
  if (missing === null) return runInNamespaces([process.execPath, ...process.argv.slice(1)]);
  process.stdout.write(`chaos: skipped: no network namespaces here: ${missing}\n`);
  return EXIT.ok;
}

function exitOf({ variant, verdict, isInterrupted }: RunReport): number {
  const isFound = verdict.violations.length > 0;
  if (isInterrupted && !isFound) return INTERRUPTED;
  return isFound === (variant === 'naive') ? EXIT.ok : EXIT.no;
}

/** A line that changes on a terminal, else one from time to time; with --json not in the way of the result. */
function progressShown(seconds: number, isJson: boolean): (progress: Progress | null) => void {
  if (process.stdout.isTTY && !isJson) {
    const status = new StatusOutput();
    return (progress) =>
      progress === null ? status.clear() : status.show(progressLine(progress, seconds));
  }
  let toldMs = Number.NEGATIVE_INFINITY;
  return (progress) => {
    if (progress === null || performance.now() - toldMs < LINE_EVERY_MS) return;
    toldMs = performance.now();
    process.stderr.write(`${progressLine(progress, seconds)}\n`);
  };
}

/** The first Ctrl-C ends the run, which is then reported; the second ends everything at once. */
function interruption(): AbortSignal {
  const interrupted = new AbortController();
  // The test supports end the process by the signal; here there is something left to say.
  atExit(() => {});
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.removeAllListeners(signal);
    process.on(signal, () => {
      if (interrupted.signal.aborted) process.exit(EXIT.no);
      interrupted.abort();
    });
  }
  return interrupted.signal;
}
