/** The command line of the live fault run. */
import { tmpdir } from 'node:os';
import { parseArgs } from 'node:util';
import { EXIT } from '../src/cli/exit-codes.ts';
import { StatusLine } from '../src/cli/status-line.ts';
import { atExit } from '../test/support/process.ts';
import requireRedis from '../test/support/require-redis.ts';
import { asJson, progressLine, summary } from './report.ts';
import { keepHistory, type Progress, type RunReport, runChaos, UnknownFaultError } from './run.ts';
import { TOPOLOGIES, type TopologyName } from './topologies.ts';

const HELP = `Usage: npm run chaos -- [options]

Real processes share targets on a real store while faults are inflicted on all of them; what they
wrote down is then checked: never two that could act on one target at once, fences that only grow,
a sink that never goes back, and every target polled again in time.

  --topology NAME   ${TOPOLOGIES.join(', ')} (default single);
                    sentinel-loose goes without min-replicas-to-write: there two may hold a lease
                    while a primary is isolated, which is counted, and fences have to stay right
  --seconds N       how long to inflict faults (default 60)
  --seed N          chooses faults, their order, times and victims (default by chance); the pace of
                    processes and networks is not part of it, so a seed repeats faults, not runs
  --faults A,B      only these kinds, by the names of the summary, such as 'kill'
  --naive           a lock as people first write it, on a single Redis: it has to be found out, and
                    the run ends when it is
  --keep DIR        keeps the history there, also of a run without violations
  --json            the summary as one line of JSON on stdout
  --help

Ends with 0 if all is as it should be, 1 on a violation (--naive: if there was none), 64 on wrong use,
70 if it could not be run, 130 if it was interrupted before anything was found.`;

/** As shells have it for Ctrl-C. */
const INTERRUPTED = 130;
/** Without a terminal, a line this often. */
const LINE_EVERY_MS = 5_000;

interface Wanted {
  readonly topology: TopologyName;
  readonly seconds: number;
  readonly seed: number;
  readonly faults?: readonly string[];
  readonly isNaive: boolean;
  readonly isJson: boolean;
  readonly keep: string | undefined;
}

class UsageError extends Error {}

process.exitCode = await main(process.argv.slice(2));
// A proxy or a half-open connection must not keep it from ending.
process.exit();

async function main(args: readonly string[]): Promise<number> {
  try {
    const wanted = read(args);
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
    process.stderr.write(`chaos: ${error instanceof Error ? error.stack : error}\n`);
    return EXIT.internal;
  }
}

function read(args: readonly string[]): Wanted | null {
  const values = parsed(args);
  if (values.help) return null;
  const { topology = 'single', naive: isNaive = false, json: isJson = false, keep } = values;
  if (!TOPOLOGIES.includes(topology as TopologyName))
    throw new UsageError(`--topology is one of ${TOPOLOGIES.join(', ')}, not '${topology}'`);
  if (isNaive && topology !== 'single')
    throw new UsageError('--naive is written for a single Redis');
  const faults = values.faults?.split(',').map((name) => name.trim());
  return {
    topology: topology as TopologyName,
    seconds: wholeNumber('--seconds', values.seconds ?? '60', 1),
    seed: wholeNumber('--seed', values.seed ?? String(Date.now() % 1_000_000), 0),
    ...(faults !== undefined && { faults }),
    ...{ isNaive, isJson, keep },
  };
}

function parsed(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    const options = {
      ...{ topology: text, seconds: text, seed: text, faults: text, keep: text },
      ...{ naive: flag, json: flag, help: flag },
    };
    return parseArgs({ args: [...args], options }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

function wholeNumber(option: string, text: string, least: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least)
    throw new UsageError(`${option} is a whole number from ${least} up, not '${text}'`);
  return value;
}

async function run(wanted: Wanted): Promise<number> {
  const { topology, seconds, seed, faults, isNaive, isJson, keep } = wanted;
  if (topology !== 'sqlite') requireRedis();
  const show = progressShown(seconds, isJson);
  const report = await runChaos({
    ...{ topology, seconds, seed, variant: isNaive ? 'naive' : 'holdfast' },
    ...(faults !== undefined && { faults }),
    ...{ stopsAtViolation: isNaive, signal: interruption(), onProgress: show },
  });
  show(null);
  const isFailed = report.verdict.violations.length > 0 && !isNaive;
  const path = isFailed || keep !== undefined ? keepHistory(report, keep ?? tmpdir()) : null;
  if (isJson) process.stdout.write(`${asJson(report, path)}\n`);
  else process.stdout.write(`${summary(report)}\n`);
  if (path !== null && !isJson) process.stdout.write(`\nThe whole history: ${path}\n`);
  return exitOf(report);
}

function exitOf({ variant, verdict, isInterrupted }: RunReport): number {
  const isFound = verdict.violations.length > 0;
  if (isInterrupted && !isFound) return INTERRUPTED;
  return isFound === (variant === 'naive') ? EXIT.ok : EXIT.no;
}

/** A line that changes on a terminal, else one from time to time; with --json not in the way of the result. */
function progressShown(seconds: number, isJson: boolean): (progress: Progress | null) => void {
  if (process.stdout.isTTY && !isJson) {
    const status = new StatusLine();
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
