// Runs simulated worlds, one seed after another, until so many hours have passed in them. Seeds that broke a promise before
// run first. A world that breaks one is narrowed down, drawn, and kept in sim/regressions.json.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import {
  INTERESTING_STATES,
  KEEPALIVE_STATES,
  MIXED_STATES,
  PAIR,
  pairCoverage,
  tell,
  withFound,
} from '../dist/testing/sim/index.js';
import { Corpus, featuresOf, MOST_SEEDS } from './corpus.mjs';
import { readFlags } from './flags.mjs';
import { runWorlds } from './pool.mjs';

const REGRESSIONS = new URL('regressions.json', import.meta.url);
const CORPUS = new URL('corpus.json', import.meta.url);
const HOUR_MS = 3_600_000;
/** How often a terminal, or a file, is told how far it is. */
const PROGRESS_EVERY_MS = 1_000;
const LINE_EVERY_MS = 30_000;
const CLEAR_LINE = '\r\x1b[K';
const MOST_SEED = 2 ** 31;
const KINDS = ['fleet', 'mixed', 'records', 'cron', 'keepalives', 'both'];
/** A mixed world is short: what its seed draws is what matters, and another seed draws again. */
const MIXED_WORLD = 0.1;
/** Six fires an hour. */
const CRON_WORLD = 20;

const HELP = `Usage: npm run sim -- [--hours <n>] [--seed <n>] [--jobs <n>]

Runs the production classes in simulated worlds where things go wrong, and checks what Holdfast promises.

  --hours <n>      simulated hours in all; default 100
  --kind <name>    fleet: instances that share targets; mixed: clients that share keys, each with TTLs, guards,
                   classes, prefix and quarantine of its own, while the store loses data; records: processes that
                   follow sessions which come and go; cron: hosts whose clocks differ run a job once per period;
                   keepalives: processes that hold leases of a memory store, which one row renews for each;
                   default both, half the hours fleet and half mixed
  --world <n>      simulated hours in each world; default 1, in mixed worlds ${MIXED_WORLD}, in cron worlds ${CRON_WORLD}
  --seed <n>       the seed of the first world; the others count up from it; default: by chance
  --jobs <n>       worlds at once; default: one for each core
  --instances <n>, --targets <n>, --ttl <ms>, --workflows <n>, --intents <n>
                   the same in every world, which is then a fleet; default: as its seed says
  --runs           every target has a long-lived task, in place of polls
  --no-save        do not keep what broke a promise in sim/regressions.json, nor the seeds of mixed worlds that reached
                   something new in sim/corpus.json, which has ${MOST_SEEDS} at most and is run first, unless --seed is given
  --json           nothing but the result on stdout, as JSON
  --help           this

Exit code: 0 if every promise was kept; 1 if one was broken; 2 for wrong arguments.`;

const flags = readFlags(HELP, {
  numbers: [
    'hours',
    'world',
    'seed',
    'jobs',
    'instances',
    'targets',
    'ttl',
    'workflows',
    'intents',
  ],
  booleans: ['no-save', 'runs'],
  strings: ['kind'],
});
const { hours = 100, jobs = availableParallelism() } = flags;
const { instances, targets, ttl, workflows, intents } = flags;
const firstSeed = flags.seed ?? Math.floor(Math.random() * MOST_SEED);
const shape = {
  ...(instances && { instances }),
  ...(targets && { targets }),
  ...(ttl && { ttlMs: ttl }),
  ...(workflows && { workflows }),
  ...(intents && { intents }),
  ...(flags.runs && { runs: true }),
};

const kind = flags.kind ?? (Object.keys(shape).length > 0 ? 'fleet' : 'both');
if (!KINDS.includes(kind)) {
  console.error(`--kind is one of ${KINDS.join(', ')}, not '${kind}'\n\n${HELP}`);
  process.exit(2);
}

const hasFleets = kind === 'fleet' || kind === 'both';
const isMixed = kind === 'mixed' || kind === 'both';
// Who names a seed repeats worlds, or runs others: either way these alone.
const hasCorpus = isMixed && flags.seed === undefined;

const known = JSON.parse(readFileSync(REGRESSIONS, 'utf8'));
const kept = hasCorpus ? JSON.parse(readFileSync(CORPUS, 'utf8')) : { seeds: [] };
const corpus = new Corpus();
const counts = new Map();
const failures = [];
let worlds = 0;
let simulatedMs = 0;
const startMs = performance.now();
const secondsSince = () => (performance.now() - startMs) / 1_000;

/**
 * First what broke a promise before, then what reached the most, then new worlds for as many hours as are wanted.
 */
function* plan() {
  for (const { options } of known) yield options;
  for (const seed of kept.seeds) yield { seed, hours: kept.hours, kind: 'mixed' };
  const each = kind === 'both' ? hours / 2 : hours;
  if (hasFleets) yield* worldsOf({ world: flags.world ?? 1, hours: each, options: shape });
  const options = { kind: isMixed ? 'mixed' : kind };
  const world = flags.world ?? (kind === 'cron' ? CRON_WORLD : MIXED_WORLD);
  if (kind !== 'fleet') yield* worldsOf({ world, hours: each, options });
}

function* worldsOf({ world, hours: all, options }) {
  for (let n = 0; n * world < all; n++)
    yield { seed: firstSeed + n, hours: Math.min(world, all - n * world), ...options };
}

function onReport(report) {
  if (report.crash !== undefined) throw new Error(report.crash);
  worlds++;
  simulatedMs += report.simulatedMs;
  const { options } = report;
  if (options.kind === 'mixed' && options.episodes === undefined)
    corpus.add(options, featuresOf(report.counts));
  for (const [name, count] of report.counts) counts.set(name, (counts.get(name) ?? 0) + count);
  if (report.violation === null) return;
  failures.push(report);
  if (!flags.json) console.log(`${isTerminal ? CLEAR_LINE : ''}${tell(report, commit())}\n`);
}

function commit() {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

/** What broke a promise is run first from now on. */
function save() {
  if (hasCorpus) saveCorpus();
  if (failures.length === 0) return;
  const all = withFound(known, failures, commit());
  writeFileSync(REGRESSIONS, `${JSON.stringify(all, null, 2)}\n`);
}

/** Worlds of the usual length only: others would take the time that is meant for new ones. */
function saveCorpus() {
  const broken = new Set(failures.map(({ options }) => options.seed));
  const isUsual = ({ seed, hours: each }) => each === MIXED_WORLD && !broken.has(seed);
  const seeds = corpus.kept(isUsual).map(({ seed }) => seed);
  const rows = seeds.reduce(
    (text, seed, i) => `${text}${i % 12 === 0 ? '\n    ' : ' '}${seed},`,
    '',
  );
  const list = `[${rows.slice(0, -1)}\n  ]`;
  writeFileSync(CORPUS, `{\n  "hours": ${MIXED_WORLD},\n  "seeds": ${list}\n}\n`);
}

const worldsToCome = plan();
const isTerminal = process.stderr.isTTY;
const progress = setInterval(
  () => {
    if (flags.json) return;
    const done = simulatedMs / HOUR_MS;
    const rate = (done / secondsSince()).toFixed(1);
    const line = `${done.toFixed(0)} of ${hours} h simulated, ${rate} h/s, ${failures.length} broken`;
    process.stderr.write(isTerminal ? `${CLEAR_LINE}${line}` : `${line}\n`);
  },
  isTerminal ? PROGRESS_EVERY_MS : LINE_EVERY_MS,
);
await runWorlds({
  jobs,
  shrinks: true,
  onReport,
  next: () => worldsToCome.next().value ?? null,
});
clearInterval(progress);
if (isTerminal) process.stderr.write(CLEAR_LINE);
if (!flags['no-save']) save();
report();
process.exitCode = failures.length > 0 ? 1 : 0;

function report() {
  const simulatedHours = simulatedMs / HOUR_MS;
  const seconds = secondsSince();
  const states = [
    ...(hasFleets ? INTERESTING_STATES : []),
    ...(isMixed ? MIXED_STATES : []),
    ...(kind === 'keepalives' ? KEEPALIVE_STATES : []),
  ];
  const missed = states.filter((name) => !counts.get(name));
  const pairs = isMixed ? pairCoverage(counts) : [];
  const { statePairs } = corpus;
  const facts = {
    seed: firstSeed,
    worlds,
    hours: simulatedHours,
    seconds,
    violations: failures.length,
  };
  if (flags.json) {
    const broken = failures.map(({ options, violation }) => ({ options, violation }));
    console.log(
      JSON.stringify({
        ...facts,
        broken,
        counts: Object.fromEntries(counts),
        missed,
        pairs,
        statePairs,
      }),
    );
    return;
  }
  const names = [...counts.keys()].filter((name) => !name.startsWith(PAIR)).sort();
  const width = Math.max(...names.map(({ length }) => length));
  for (const name of names)
    console.log(`  ${name.padEnd(width)}  ${counts.get(name).toLocaleString('en').padStart(12)}`);
  if (pairs.length > 0) showPairs(pairs);
  console.log(
    `\n${worlds} worlds from seed ${firstSeed}, ${simulatedHours.toFixed(1)} simulated hours in ${seconds.toFixed(1)} s ` +
      `(${(simulatedHours / seconds).toFixed(1)} h/s on ${jobs} ${jobs === 1 ? 'thread' : 'threads'}): ` +
      `${failures.length === 0 ? 'every promise was kept' : `${failures.length} broke a promise`}.`,
  );
  if (missed.length > 0)
    console.log(`Never reached, so nothing is proven about: ${missed.join(', ')}.`);
}

/** For each two drawn dimensions of which pairs are missing, how many were reached; those that were not, by name. */
function showPairs(pairs) {
  const partly = pairs.filter(({ missing }) => missing.length > 0);
  const titles = partly.map(({ a, b }) => `${a} × ${b}`);
  const width = Math.max(0, ...titles.map(({ length }) => length));
  console.log(
    '\n  pairs of drawn values that took effect in one world, of those that can, where some are missing',
  );
  for (const [i, { possible, missing }] of partly.entries())
    console.log(`  ${titles[i].padEnd(width)}  ${possible - missing.length} of ${possible}`);
  const all = pairs.flatMap(({ missing }) => missing);
  const total = pairs.reduce((sum, { possible }) => sum + possible, 0);
  console.log(`\n  ${total - all.length} of ${total} pairs were reached.`);
  const states = MIXED_STATES.length;
  console.log(
    `  ${corpus.statePairs} of ${(states * (states - 1)) / 2} pairs of interesting states were in one world.`,
  );
  for (const name of all) console.log(`  Never reached: ${name}.`);
}
