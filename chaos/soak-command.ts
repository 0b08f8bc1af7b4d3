/** The command line of the soak. */
import { EXIT } from '../src/cli/exit-codes.ts';
import requireRedis from '../test/support/require-redis.ts';
import { UsageError } from './arguments.ts';
import { readSoakArguments, SOAK_HELP, type SoakWanted } from './soak-arguments.ts';
import { runSoak, type SoakReport } from './soak-run.ts';

const MOST_SHOWN = 5;

process.exitCode = await main(process.argv.slice(2));
// A connection of a process that was killed must not keep it from ending.
process.exit();

async function main(args: readonly string[]): Promise<number> {
  try {
    const wanted = readSoakArguments(args);
    if (wanted !== null) return await run(wanted);
    process.stdout.write(`${SOAK_HELP}\n`);
    return EXIT.ok;
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`soak: ${error.message}\nSee npm run soak -- --help\n`);
      return EXIT.usage;
    }
    process.stderr.write(`soak: ${error instanceof Error ? error.stack : error}\n`);
    return EXIT.internal;
  }
}

async function run(wanted: SoakWanted): Promise<number> {
  if (wanted.store === 'redis') requireRedis();
  const stopping = new AbortController();
  // Ctrl-C ends it early, with a report on what was seen until then.
  process.once('SIGINT', () => stopping.abort());
  const { signal } = stopping;
  const onProgress = (line: string) => process.stderr.write(`${line}\n`);
  const report = await runSoak({ ...wanted, signal, onProgress });
  const isFound = report.violations.length > 0;
  const isRight = isFound === wanted.isNaive && report.broken.length === 0;
  process.stdout.write(
    wanted.isJson
      ? `${JSON.stringify({ ...wanted, ...report, ok: isRight })}\n`
      : summary(wanted, report),
  );
  if (report.beliefs === 0) throw new Error('no process was granted a lease: nothing is proven');
  return isRight ? EXIT.ok : EXIT.no;
}

function summary({ store, seconds, seed }: SoakWanted, report: SoakReport): string {
  const { violations, beliefs, faults, counts, clients, broken } = report;
  const list = (of: Readonly<Record<string, number>>) =>
    Object.entries(of)
      .map(([name, count]) => `${count} ${name}`)
      .join(', ');
  const lines = [
    `${store}, ${seconds} s, seed ${seed}, clients: ${clients.join(', ')}`,
    `faults: ${list(faults)}`,
    `calls: ${list(counts)}`,
    ...violations.slice(0, MOST_SHOWN).map(({ kind, key, text }) => `✗ ${kind}: ${key}: ${text}`),
    ...(broken.length > 0 ? [`✗ did not end as they should: ${broken.join(', ')}`] : []),
    violations.length === 0
      ? `✓ ${beliefs} leases held, never two at one moment on one key, and every fence grew`
      : `✗ ${violations.length} violations in ${beliefs} leases held`,
  ];
  return `${lines.join('\n')}\n`;
}
