// The gate: puts each of the seeded bugs into a copy of the built code, and runs worlds on it until one breaks a promise.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { CRON_BUGS } from './cron-bugs.mjs';
import { readFlags } from './flags.mjs';
import { FLEET_BUGS } from './fleet-bugs.mjs';
import { INTENT_BUGS } from './intent-bugs.mjs';
import { KEEPALIVE_BUGS } from './keepalive-bugs.mjs';
import { MIXED_BUGS } from './mixed-bugs.mjs';
import { runWorlds } from './pool.mjs';
import { RECORDS_BUGS } from './records-bugs.mjs';
import { RUN_BUGS } from './run-bugs.mjs';
import { SEEDED_BUGS } from './seeded-bugs.mjs';
import { WORKER_BUGS } from './worker-bugs.mjs';
import { WORKFLOW_BUGS } from './workflow-bugs.mjs';

const ROOT = new URL('..', import.meta.url);
/** Inside the project, where what the copies import is found; a folder for each run, so that two runs can continue at once. */
const COPIES = new URL(`node_modules/.cache/holdfast-seeded-bugs-${process.pid}/`, ROOT);
const HOUR_MS = 3_600_000;

const HELP = `Usage: npm run sim:bugs -- [--only <text>] [--hours <n>] [--seed <n>]

Puts known bugs into copies of the built code, one at a time, and shows that simulated worlds find each of them.

  --only <text>  only those whose name contains this text
  --hours <n>    give up on a bug after so many simulated hours; default 200
  --seed <n>     the seed of the first world; default 1
  --jobs <n>     worlds at once; default: one for each core
  --json         nothing but [{ name, value, unit, bar, ok }] on stdout
  --help         this

Exit code: 0 if every bug was found; 1 if one was not; 2 for wrong arguments.`;

const flags = readFlags(HELP, {
  numbers: ['hours', 'seed', 'jobs'],
  booleans: [],
  strings: ['only'],
});
const { only = '', hours = 200, seed = 1, jobs = availableParallelism() } = flags;
const ALL_BUGS = [
  ...SEEDED_BUGS,
  ...FLEET_BUGS,
  ...RUN_BUGS,
  ...WORKFLOW_BUGS,
  ...INTENT_BUGS,
  ...WORKER_BUGS,
  ...MIXED_BUGS,
  ...RECORDS_BUGS,
  ...CRON_BUGS,
  ...KEEPALIVE_BUGS,
];
const chosen = ALL_BUGS.filter(({ name }) => name.includes(only));
if (chosen.length === 0) {
  console.error(`no bug has '${only}' in its name\n\n${HELP}`);
  process.exit(2);
}
const rows = [];
for (const bug of chosen) {
  const row = await seek(bug);
  rows.push(row);
  if (!flags.json) console.log(told(row));
}
rmSync(COPIES, { recursive: true, force: true });
const missed = rows.filter(({ found }) => found === null);
if (flags.json) console.log(JSON.stringify(rows.map(asRow)));
else console.log(`\n${rows.length - missed.length} of ${rows.length} seeded bugs were found.`);
process.exitCode = missed.length > 0 ? 1 : 0;

/** Runs worlds with the bug until one breaks a promise. */
async function seek(bug) {
  const dist = copyWith(bug);
  const startMs = performance.now();
  let next = seed;
  let simulatedMs = 0;
  let found = null;
  await runWorlds({
    jobs,
    dist,
    shrinks: false,
    next: () => {
      const world = { hours: 1, ...bug.worlds };
      return (next - seed) * world.hours < hours ? { seed: next++, ...world } : null;
    },
    onReport: (report) => {
      simulatedMs += report.simulatedMs ?? 0;
      // A copy that does not even run has been found out, too, but not by what it was made for.
      if (report.crash !== undefined)
        throw new Error(`'${bug.name}' does not run: ${report.crash}`);
      if (report.violation !== null && found === null) found = report;
      return found === null;
    },
  });
  return { bug, found, simulatedMs, seconds: (performance.now() - startMs) / 1_000 };
}

/** A whole package, so that it finds its own description; what it imports is found further up. */
function copyWith({ name, patches }) {
  const copy = new URL(`${name.replaceAll(' ', '-')}/`, COPIES);
  const dist = new URL('dist/', copy);
  rmSync(copy, { recursive: true, force: true });
  mkdirSync(copy, { recursive: true });
  cpSync(fileURLToPath(new URL('dist/', ROOT)), fileURLToPath(dist), { recursive: true });
  cpSync(
    fileURLToPath(new URL('package.json', ROOT)),
    fileURLToPath(new URL('package.json', copy)),
  );
  for (const { file, find, replace } of patches) {
    const at = new URL(file, dist);
    const parts = readFileSync(at, 'utf8').split(find);
    if (parts.length !== 2)
      throw new Error(`'${name}': ${file} has its text ${parts.length - 1} times, not once`);
    writeFileSync(at, parts.join(replace));
  }
  return dist;
}

function told({ bug, found, simulatedMs, seconds }) {
  const after = `${hoursOf(simulatedMs)} simulated, ${seconds.toFixed(1)} s`;
  if (found === null) return `✗ ${bug.name.padEnd(34)} not found in ${after}: ${bug.about}`;
  const { violation, options } = found;
  return `✓ ${bug.name.padEnd(34)} seed ${String(options.seed).padEnd(4)} ${after}: ${violation.invariant}`;
}

function hoursOf(ms) {
  const hours = ms / HOUR_MS;
  return hours < 1 ? `${(hours * 60).toFixed(1)} min` : `${hours.toFixed(1)} h`;
}

function asRow({ bug, found, simulatedMs }) {
  const value = Number((simulatedMs / HOUR_MS).toFixed(3));
  return { name: bug.name, value, unit: 'h simulated', bar: hours, ok: found !== null };
}
