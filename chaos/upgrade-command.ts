/** The command line of the upgrade test. */
import { EXIT } from '../src/cli/exit-codes.ts';
import requireRedis from '../test/support/require-redis.ts';
import { UsageError } from './arguments.ts';
import { MissingProgramError } from './postgres-programs.ts';
import { readUpgradeArguments, UPGRADE_HELP, type UpgradeWanted } from './upgrade-arguments.ts';
import { buildCommit, currentBuild, earlierCommits, formatAt } from './upgrade-builds.ts';
import { openByOther, type Refusal, runUpgrade, type UpgradeReport } from './upgrade-run.ts';

const MOST_SHOWN = 10;

process.exitCode = await main(process.argv.slice(2));
// A connection of a process that was killed must not keep it from ending.
process.exit();

async function main(args: readonly string[]): Promise<number> {
  try {
    const wanted = readUpgradeArguments(args);
    if (wanted !== null) return await run(wanted);
    process.stdout.write(`${UPGRADE_HELP}\n`);
    return EXIT.ok;
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`upgrade-test: ${error.message}\nSee npm run upgrade-test -- --help\n`);
      return EXIT.usage;
    }
    const isPlain = error instanceof MissingProgramError || !(error instanceof Error);
    process.stderr.write(`upgrade-test: ${isPlain ? error : error.stack}\n`);
    return EXIT.internal;
  }
}

async function run(wanted: UpgradeWanted): Promise<number> {
  const { store } = wanted;
  const commits = earlierCommits(store);
  if (commits === null) {
    process.stdout.write(
      'Skipped: this checkout has no git history to build an earlier commit from.\n',
    );
    return EXIT.ok;
  }
  if (store === 'redis') requireRedis();
  const current = currentBuild(store);
  const { oldest, before } = commits;
  const from = wanted.from ?? oldest;
  if (formatAt(from, store) !== current.format) {
    const rule = `it has stored format ${formatAt(from, store)}, and this build has ${current.format}`;
    throw new UsageError(
      `--from is ${from}: ${rule}. Choose a commit from ${oldest.slice(0, 8)} on`,
    );
  }
  const onProgress = (line: string) => process.stderr.write(`${line}\n`);
  onProgress('building the earlier commits, unless that is done …');
  const [earlier, other] = [buildCommit(from, store), buildCommit(before, store)];
  const refusals = [
    await openByOther(store, other, current),
    await openByOther(store, current, other),
  ];
  const report = await runUpgrade({ ...wanted, earlier, current, onProgress });
  const isRight =
    report.violations.length + report.problems.length === 0 && refusals.every(isRefused);
  process.stdout.write(
    wanted.isJson
      ? `${JSON.stringify({ ...wanted, ...report, refusals, ok: isRight })}\n`
      : summary(wanted, report, refusals),
  );
  return isRight ? EXIT.ok : EXIT.no;
}

/** The error names both formats, and the store is as it was. */
function isRefused({ code, message, isChanged }: Refusal): boolean {
  return (
    code === 'STORE_UNSUITABLE' && /(format|version) \d+.* \1 \d+/s.test(message) && !isChanged
  );
}

function summary(
  { store, seed }: UpgradeWanted,
  report: UpgradeReport,
  refusals: readonly Refusal[],
): string {
  const { violations, problems, done, beliefs, accepted, kills, stops } = report;
  const counts = Object.entries(done).map(([commit, of]) => {
    const list = Object.entries(of).map(([what, count]) => `${count} ${what}`);
    return `${commit}: ${list.join(', ')}`;
  });
  const lines = [
    `${store}, seed ${seed}: ${stops} instances stopped, ${kills} killed`,
    ...counts,
    ...violations.slice(0, MOST_SHOWN).map(({ kind, key, text }) => `✗ ${kind}: ${key}: ${text}`),
    ...problems.slice(0, MOST_SHOWN).map((problem) => `✗ ${problem}`),
    ...refusals.map((one) => {
      const how = `${one.opened} on a store of ${one.made}: ${one.code ?? 'opened it'}`;
      return isRefused(one)
        ? `✓ ${how}, and nothing was changed`
        : `✗ ${how}: ${one.message}${one.isChanged ? ' (the store has changed)' : ''}`;
    }),
    violations.length === 0
      ? `✓ ${beliefs} times of work, never two at one moment on one thing, and every fence grew`
      : `✗ ${violations.length} violations in ${beliefs} times of work`,
    `${problems.length === 0 ? '✓' : '✗'} ${accepted} workflows and sessions accepted, ${problems.length} problems`,
  ];
  return `${lines.join('\n')}\n`;
}
