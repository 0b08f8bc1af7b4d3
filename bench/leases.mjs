// How fast are leases, next to the libraries people use instead, and next to bare Redis? `--help` has the rest.
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { Bench } from './bench.mjs';
import { freeze } from './measures/freeze.mjs';
import { handover } from './measures/handover.mjs';
import { checks, heap } from './measures/holding.mjs';
import { latency } from './measures/latency.mjs';
import { pairs } from './measures/pairs.mjs';
import { renewals } from './measures/renewals.mjs';
import { startRedis } from './redis.mjs';
import { asJson, asText, summary, unmeasured } from './report.mjs';

const MEASURES = [
  pairs(64, 1.2),
  pairs(256, 1.6),
  latency,
  renewals,
  handover,
  freeze,
  checks,
  heap,
];

const HELP = `Usage: node bench/leases.mjs [--quick] [--only <text>] [--json]

Measures holdfast next to redlock, redis-semaphore, redlock-universal and bare Lua scripts, in interleaved
rounds on one redis-server of its own, which has to be on the PATH. Build first, or use npm run bench:leases.

  --quick        fewer and shorter rounds: under one minute instead of under three
  --only <text>  only the measures whose name contains this text:
${MEASURES.map(({ name }) => `                   ${name}`).join('\n')}
  --json         nothing but [{ name, value, unit, bar, ok }] on stdout; bar is null for a mere fact
  --help         this

Exit code: 0 if every bar is met; 1 if one is missed or could not be measured (the last lines name it);
2 for wrong arguments. A busy machine misses bars that a quiet one meets: repeat before you conclude.`;

const FULL = {
  rounds: 7,
  /** No further round of a measure begins after this. */
  budgetMs: 25_000,
  pairs: 16_384,
  latencyPairs: 500,
  /** So many locks a peer is tried to extend at a time; then it does it the way that came out best. */
  lanes: [64, 256, 256, 1_024],
  /** How often ours are renewed per round, first uncounted and then counted. */
  settlingIntervals: 3,
  intervals: 3,
  handovers: 300,
  peerHandovers: 30,
  watchMs: 9_000,
};
const QUICK = {
  rounds: 3,
  budgetMs: 5_000,
  pairs: 8_192,
  latencyPairs: 300,
  lanes: [256],
  settlingIntervals: 1,
  intervals: 1,
  handovers: 200,
  peerHandovers: 10,
  watchMs: 5_000,
};
/** A run that is not done by then hangs. */
const DEADLINE_MS = 300_000;

const CLEAR_LINE = '\r\x1b[K';
/** What `progress` told last. */
let lastTold = '';

const flags = readFlags();
if (flags.help) console.log(HELP);
else await main();

function readFlags() {
  const boolean = { type: 'boolean', default: false };
  const only = { type: 'string', default: '' };
  try {
    return parseArgs({ options: { json: boolean, quick: boolean, help: boolean, only } }).values;
  } catch (error) {
    return refuse(error.message);
  }
}

function refuse(message) {
  console.error(`${message}\n\n${HELP}`);
  process.exit(2);
}

async function main() {
  const wanted = flags.only.toLowerCase();
  const chosen = MEASURES.filter(({ name }) => name.toLowerCase().includes(wanted));
  if (chosen.length === 0) refuse(`no measure has '${flags.only}' in its name`);
  endInTime();
  const { rows, ...circumstances } = await measure(chosen);
  console.log(flags.json ? asJson(rows) : asText(rows, circumstances));
  if (rows.every(({ ok }) => ok)) return;
  if (flags.json) console.error(summary(rows));
  process.exitCode = 1;
}

/** However it ends, 'exit' is emitted, and takes Redis along. */
function endInTime() {
  const signals = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };
  for (const [signal, code] of Object.entries(signals)) {
    process.once(signal, () => process.exit(code));
  }
  const giveUp = () => {
    console.error(`not done after ${DEADLINE_MS / 1_000} s: given up`);
    process.exit(1);
  };
  setTimeout(giveUp, DEADLINE_MS).unref();
}

async function measure(chosen) {
  const redis = await startRedis();
  const bench = new Bench({ redis, plan: flags.quick ? QUICK : FULL, progress });
  const loadBefore = loadavg()[0];
  const rows = [];
  try {
    for (const { name, run } of chosen) {
      try {
        rows.push(...(await run(bench)));
      } catch (error) {
        // What it has cost so far is not lost: the other measures go on, with processes that know nothing of it.
        rows.push(unmeasured(name, error));
        await bench.stop();
      }
    }
    return { rows, absent: bench.absent, where: where(redis, loadBefore) };
  } finally {
    await bench.stop();
    await redis.stop();
    if (process.stderr.isTTY) process.stderr.write(CLEAR_LINE);
  }
}

function where(redis, load) {
  const processors = availableParallelism();
  const facts = `Node ${process.version}, Redis ${redis.version}, ${processors} processors`;
  const isBusy = load > processors / 2;
  return `${facts}, load ${load.toFixed(1)} before it began${isBusy ? ': NOT a quiet machine' : ''}`;
}

/** On a terminal one line that changes; in a log one line for each measure. */
function progress(what, detail) {
  if (process.stderr.isTTY) process.stderr.write(`${CLEAR_LINE}${what}: ${detail}`);
  else if (what !== lastTold) console.error(what);
  lastTold = what;
}
