// How fast are leases, next to the libraries people use instead and next to bare Redis? `--help` has the rest.
import { parseArgs } from 'node:util';
import { Bench } from './bench.mjs';
import { freeze } from './measures/freeze.mjs';
import { handover } from './measures/handover.mjs';
import { checks, heap } from './measures/holding.mjs';
import { latency } from './measures/latency.mjs';
import { pairs } from './measures/pairs.mjs';
import { renewals } from './measures/renewals.mjs';
import { startRedis } from './redis.mjs';
import { asJson, asText, verdict } from './report.mjs';

const HELP = `Usage: node bench/leases.mjs [--quick] [--only <text>] [--json]

Measures acquire, renew, release and waiting of holdfast, of redlock, redis-semaphore and redlock-universal,
and of bare Lua scripts, all on one redis-server of its own (it has to be on the PATH), in interleaved rounds.

  --quick        fewer and shorter rounds: under a minute instead of under three
  --only <text>  only the measures whose name contains this text
  --json         only [{ name, value, unit, bar, ok }] on stdout; bar is null where there is none
  --help         this

Exit code: 0 if every bar is met, 1 if one is missed (the last line names it) or the run failed, 2 for
wrong arguments. Build first (npm run build), or use npm run bench:leases [-- --quick].`;

const FULL = {
  rounds: 9,
  budgetMs: 25_000,
  pairs: 8_192,
  latencyPairs: 400,
  handovers: 400,
  peerHandovers: 30,
  watchMs: 9_000,
};
const QUICK = {
  rounds: 3,
  budgetMs: 6_000,
  pairs: 4_096,
  latencyPairs: 300,
  handovers: 200,
  peerHandovers: 10,
  watchMs: 5_000,
};
/** A run that is not done by then hangs. */
const DEADLINE_MS = 300_000;

const MEASURES = [pairs(64, 1.2), pairs(256, 1.6), latency, renewals, handover, freeze, checks, heap];

const flags = readFlags();
if (flags.help) console.log(HELP);
else await main();

function readFlags() {
  const boolean = { type: 'boolean', default: false };
  const options = { json: boolean, quick: boolean, help: boolean, only: { type: 'string', default: '' } };
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    fail(error.message);
  }
}

function fail(message) {
  console.error(`${message}\n\n${HELP}`);
  process.exit(2);
}

async function main() {
  const chosen = MEASURES.filter(({ name }) => name.includes(flags.only));
  if (chosen.length === 0) fail(`no measure is called that: ${MEASURES.map(({ name }) => name).join('; ')}`);
  // Without a listener these end the process without 'exit', and leave Redis behind.
  for (const [signal, code] of [['SIGHUP', 129], ['SIGINT', 130], ['SIGTERM', 143]]) {
    process.once(signal, () => process.exit(code));
  }
  setTimeout(() => {
    console.error(`not done after ${DEADLINE_MS / 1_000} s: given up`);
    process.exit(1);
  }, DEADLINE_MS).unref();
  const { rows, absent } = await measure(chosen);
  console.log(flags.json ? asJson(rows) : asText(rows, absent));
  if (rows.every(({ ok }) => ok)) return;
  if (flags.json) console.error(verdict(rows));
  process.exitCode = 1;
}

async function measure(chosen) {
  const redis = await startRedis();
  const bench = new Bench({ redis, plan: flags.quick ? QUICK : FULL, progress });
  const rows = [];
  try {
    for (const { run } of chosen) rows.push(...(await run(bench)));
    return { rows, absent: bench.absent };
  } finally {
    await bench.stop();
    await redis.stop();
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  }
}

/** On a terminal one line that changes; in a log a line for each thing begun. */
function progress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
  else console.error(text);
}
