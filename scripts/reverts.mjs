// Brings back each defect that was fixed, one at a time, and shows what notices. `--help` has the rest.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { readFlags } from '../sim/flags.mjs';
import { FIXES } from './reverts/fixes.mjs';
import { PatchedTree } from './reverts/patched-tree.mjs';

const HELP = `Usage: npm run reverts -- [--only <text>] [--unit] [--json]

Takes back the fixes of defects, one at a time, and shows which of these notice: unit tests, simulated worlds (within 200
simulated hours), and the formal model. Takes about half an hour; with --unit some minutes.

  --only <text>  only the fixes whose number or text contains this text
  --unit         unit tests alone
  --json         nothing but [{ item, fix, caughtBy: [{ by, what, after }] }] on stdout
  --help         this

Exit code: 0 if each defect was noticed; 1 if one was not; 2 for wrong arguments.`;

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MOST_HOURS = 200;

const flags = readFlags(HELP, { numbers: [], booleans: ['unit'], strings: ['only'] });
const { only = '', unit: isUnitOnly = false, json: isJson = false } = flags;
const chosen = FIXES.filter(({ item, fix }) => item === only || `${item} ${fix}`.includes(only));
if (chosen.length === 0) {
  console.error(`no fix has '${only}' in its number or text\n\n${HELP}`);
  process.exit(2);
}

const tree = new PatchedTree();
const rows = [];
try {
  for (const fix of chosen) {
    const row = await caught(fix);
    rows.push(row);
    if (!isJson) console.log(rowText(row));
  }
} finally {
  tree.remove();
}
const missed = rows.filter(({ caughtBy }) => caughtBy.length === 0);
if (isJson) console.log(JSON.stringify(rows, null, 2));
else console.log(`\n${rows.length - missed.length} of ${rows.length} were noticed.`);
process.exitCode = missed.length === 0 ? 0 : 1;

async function caught({ item, fix, unit, sim, model }) {
  const caughtBy = [];
  if (unit !== undefined) {
    const { isRed, failed, tookMs } = await tree.run(unit);
    if (isRed)
      caughtBy.push({
        by: 'unit tests',
        what: failed[0] ?? 'they do not run',
        after: seconds(tookMs),
      });
  }
  if (!isUnitOnly && sim !== undefined) caughtBy.push(...bySimulator(sim));
  if (!isUnitOnly && model !== undefined) caughtBy.push(...byModel(model));
  // A fix that only worlds or the model know is none of the unit tests' business.
  const isLeftOut = isUnitOnly && unit === undefined;
  return isLeftOut
    ? { item, fix, caughtBy: [{ by: 'left out', what: '', after: '' }] }
    : { item, fix, caughtBy };
}

function bySimulator(name) {
  const rows = asked(['sim/bugs.mjs', '--only', name, '--hours', String(MOST_HOURS), '--json']);
  const found = rows.find((row) => row.name === name);
  return found?.ok ? [{ by: 'simulator', what: name, after: `${found.value} ${found.unit}` }] : [];
}

function byModel(name) {
  const startMs = performance.now();
  const { mistakes = [] } = asked(['sim/model.mjs', '--only', name, '--json']);
  const found = mistakes.find((row) => row.name === name);
  return found?.ok
    ? [{ by: 'model', what: name, after: seconds(performance.now() - startMs) }]
    : [];
}

function asked(args) {
  const { stdout } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' });
  return JSON.parse(stdout || '[]');
}

function seconds(ms) {
  return `${(ms / 1_000).toFixed(0)} s`;
}

function rowText({ item, fix, caughtBy }) {
  const by = caughtBy.map(({ by: who, what, after }) => `\n      ${who}, ${after}: ${what}`);
  return `${item}  ${fix}${by.length === 0 ? '\n      NOTHING NOTICED IT' : by.join('')}`;
}
