/** What every bench has in common: its arguments, its progress, its time limit, its report and its exit code. */
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { asJson, asText, summary, unmeasured } from './report.mjs';

/** A run that takes longer hangs, unless its bench says that it takes longer. */
const DEADLINE_MS = 300_000;
const CLEAR_LINE = '\r\x1b[K';

/**
 * `about` says what is measured; `measures` are `{ name, run(bench) → rows }`; `full` and `quick` say how much; `start(plan,
 * progress)` gives `{ bench, facts, reset(), stop() }`: what measures work with, what it runs on, and how to be rid of it.
 */
export async function runBench({ deadlineMs = DEADLINE_MS, ...parts }) {
  const { file, about, measures, full, quick, start } = parts;
  const help = helpText({ file, about, measures });
  const flags = readFlags(help);
  if (flags.help) return console.log(help);
  const wanted = flags.only.toLowerCase();
  const chosen = measures.filter(({ name }) => name.toLowerCase().includes(wanted));
  if (chosen.length === 0) refuse(`no measure has '${flags.only}' in its name`, help);
  endInTime(deadlineMs);
  const { rows, ...circumstances } = await measure(chosen, () =>
    start(flags.quick ? quick : full, progress),
  );
  console.log(flags.json ? asJson(rows) : asText(rows, circumstances));
  if (rows.every(({ ok }) => ok)) return;
  if (flags.json) console.error(summary(rows));
  process.exitCode = 1;
}

function helpText({ file, about, measures }) {
  return `Usage: node bench/${file} [--quick] [--only <text>] [--json]

${about}

  --quick        fewer and shorter rounds
  --only <text>  only the measures whose name contains this text:
${measures.map(({ name }) => `                   ${name}`).join('\n')}
  --json         nothing but [{ name, value, unit, bar, ok }] on stdout; bar is null for a mere fact
  --help         this

Exit code: 0 if every bar is met; 1 if one is missed or could not be measured (the last lines name it);
2 for wrong arguments. A busy machine misses bars that a quiet one meets: repeat before you conclude.`;
}

function readFlags(help) {
  const boolean = { type: 'boolean', default: false };
  const only = { type: 'string', default: '' };
  try {
    return parseArgs({ options: { json: boolean, quick: boolean, help: boolean, only } }).values;
  } catch (error) {
    return refuse(error.message, help);
  }
}

function refuse(message, help) {
  console.error(`${message}\n\n${help}`);
  process.exit(2);
}

/** However it ends, 'exit' is emitted, and takes what was started along. */
function endInTime(deadlineMs) {
  const signals = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };
  for (const [signal, code] of Object.entries(signals)) {
    process.once(signal, () => process.exit(code));
  }
  const giveUp = () => {
    console.error(`not done after ${deadlineMs / 1_000} s: given up`);
    process.exit(1);
  };
  setTimeout(giveUp, deadlineMs).unref();
}

async function measure(chosen, start) {
  const loadBefore = loadavg()[0];
  const { bench, facts, reset, stop } = await start();
  const rows = [];
  try {
    for (const { name, run } of chosen) {
      try {
        rows.push(...(await run(bench)));
      } catch (error) {
        // The other measures continue, with new processes.
        rows.push(unmeasured(name, error));
        await reset();
      }
    }
    return { rows, absent: bench.absent ?? new Map(), where: where(facts, loadBefore) };
  } finally {
    await stop();
    if (process.stderr.isTTY) process.stderr.write(CLEAR_LINE);
  }
}

function where(facts, load) {
  const processors = availableParallelism();
  const isBusy = load > processors / 2;
  return `Node ${process.version}, ${facts}, ${processors} processors, load ${load.toFixed(1)} before it began${isBusy ? ': NOT a quiet machine' : ''}`;
}

/** What `progress` told last. */
let lastTold = '';

/** On a terminal one line that changes; in a log one line for each measure. */
function progress(what, detail) {
  if (process.stderr.isTTY) process.stderr.write(`${CLEAR_LINE}${what}: ${detail}`);
  else if (what !== lastTold) console.error(what);
  lastTold = what;
}
