import { OURS } from '../contenders.mjs';
import { absolute, fact } from '../report.mjs';
import { median } from '../statistics.mjs';

const WORKFLOWS = 100;
const BARE = 'bare consumer group';
/** As many as a processor takes at once, unless told otherwise. */
const MOST = 16;

/** One processor process with much to do, and a handler that does nothing but count. */
export const workflowThroughput = {
  name: 'processed actions, one processor, 100 workflows',
  run: runThroughput,
};

async function runThroughput(bench) {
  const { rounds, actions } = bench.plan;
  const redis = await bench.onRedis((store) => race(bench, store, { rounds, actions }));
  const sqlite = await bench.onSqlite((store) => {
    return race(bench, store, { rounds: 1, actions: Math.ceil(actions / 4), isAlone: true });
  });
  const figures = { [OURS.name]: median(redis.ours), [BARE]: median(redis.bare) };
  const { name } = workflowThroughput;
  const row = { requirement: 'W-13', measure: name, unit: 'actions/s', figures };
  const onSqlite = { ...row, measure: `${name}, SQLite`, figures: { [OURS.name]: sqlite.ours[0] } };
  return [absolute({ ...row, atLeast: 4_000 }), fact(onSqlite)];
}

export async function race(bench, { url }, { rounds, actions, isAlone = false }) {
  const [orchestrating, working] = [await bench.instance(url), await bench.instance(url)];
  const results = { ours: [], bare: [] };
  for (let round = 0; round <= rounds; round++) {
    bench.progress(workflowThroughput.name, `round ${round} of ${rounds}`);
    const ours = await processed(orchestrating, working, `round-${round}`, actions);
    // Code is compiled for speed only after it has run for a while.
    if (round > 0) results.ours.push(ours);
    if (isAlone) continue;
    const facts = { key: `round-${round}`, count: WORKFLOWS * actions, most: MOST };
    await orchestrating.ask('fillBare', facts);
    const bare = await working.ask('workBare', facts);
    if (round > 0) results.bare.push(bare);
  }
  return results;
}

/** Per second, from the start of the processor until the last result is in; every action once, or it does not count. */
async function processed(orchestrating, working, name, actions) {
  const facts = { of: name, target: name, count: WORKFLOWS };
  const count = WORKFLOWS * actions;
  await orchestrating.ask('claim', facts);
  await orchestrating.ask('emit', { ...facts, each: actions });
  const startMs = await working.ask('work', { name });
  const { doneAtMs, handled, repeated } = await working.ask('untilHandled', { count });
  await working.ask('stopWorking');
  const { unresolved, unread } = await orchestrating.ask('untold', facts);
  if (handled !== count || repeated > 0 || unresolved > 0 || unread !== count) {
    throw new Error(
      `of ${count} actions ${handled} were handled, ${repeated} more than once; ${unresolved} have no result, ${unread} have`,
    );
  }
  return (count / (doneAtMs - startMs)) * 1_000;
}

/** All of it at once: workflows in one process that take one step after the other, a processor in another. */
export const workflowSteps = {
  name: 'steps of 100 workflows, from emit to result',
  run: runSteps,
};

async function runSteps(bench) {
  const redis = await bench.onRedis((store) => steps(bench, store, bench.plan.stepsMs));
  const sqlite = await bench.onSqlite((store) => steps(bench, store, bench.plan.stepsMs));
  const row = (measure, figure) => ({
    requirement: 'W-13',
    measure,
    unit: 'steps/s',
    figures: { [OURS.name]: figure },
  });
  const { name } = workflowSteps;
  return [fact(row(name, redis)), fact(row(`${name}, SQLite`, sqlite))];
}

async function steps(bench, { url }, forMs) {
  bench.progress(workflowSteps.name, url.split(':')[0]);
  const [orchestrating, working] = [await bench.instance(url), await bench.instance(url)];
  await working.ask('work', { name: 'worker' });
  const facts = { of: 'flow', target: 'worker', count: WORKFLOWS };
  await orchestrating.ask('claim', facts);
  await orchestrating.ask('runSteps', { ...facts, forMs: forMs / 2 });
  return orchestrating.ask('runSteps', { ...facts, forMs });
}
