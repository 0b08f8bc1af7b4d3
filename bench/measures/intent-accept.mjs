import { OURS } from '../contenders.mjs';
import { absolute, fact, versus } from '../report.mjs';
import { median } from '../statistics.mjs';

/** Requests under way at once. */
const CONNECTIONS = 64;
/** Rounds that do not count: code is compiled for speed only after it has run for a while. */
const WARM_UP = 2;
const BARES = { node: 'bare route, node-redis', ours: 'bare route, our connection' };

/** One process that accepts, next to the least that any route with a store behind it takes. */
export const intentAccept = { name: 'accepted intents, one process', run };

async function run(bench) {
  return bench.onRedis(async ({ url }) => {
    const [serving, bareNode, bareOurs, loading] = await Promise.all(
      Array.from({ length: 4 }, () => bench.instance(url)),
    );
    const runners = {
      distinct: { port: await serving.ask('serveOurs'), isDistinct: true },
      node: { port: await bareNode.ask('serveBare', { client: 'node-redis' }), isDistinct: true },
      ours: { port: await bareOurs.ask('serveBare', { client: 'ours' }), isDistinct: true },
    };
    runners.replays = { ...runners.distinct, isDistinct: false };
    runners.declared = { ...runners.distinct, isDeclared: true };
    return rowsOf(await rounds(bench, loading, runners));
  });
}

/** All of them in every round, each time in another order: what else the machine does hits all alike. */
async function rounds(bench, loading, runners) {
  const results = Object.fromEntries(Object.keys(runners).map((name) => [name, []]));
  const { rounds, loadMs } = bench.plan;
  for (let round = 1 - WARM_UP; round <= rounds; round++) {
    bench.progress(intentAccept.name, `round ${round} of ${rounds}`);
    for (const [name, { port, isDistinct, isDeclared }] of inTurn(runners, round + WARM_UP)) {
      const facts = { port, isDistinct, isDeclared, connections: CONNECTIONS, forMs: loadMs };
      const result = await loading.ask('load', facts);
      check(name, result, { isFirst: round === 1 - WARM_UP });
      if (round > 0) results[name].push(result);
    }
  }
  return results;
}

function inTurn(runners, round) {
  const all = Object.entries(runners);
  return all.map((_, i) => all[(i + round) % all.length]);
}

/** What is not what it claims to be does not count. */
function check(name, { requests, created, sessions }, { isFirst }) {
  const expected = { distinct: requests, declared: requests, replays: isFirst ? 1 : 0 }[name] ?? 0;
  if (created !== expected)
    throw new Error(`${name}: of ${requests} requests ${created} made a session`);
  if (name === 'replays' && sessions !== 1) throw new Error('replays led to more than one session');
}

function rowsOf({ distinct, replays, declared, ...bare }) {
  const rate = (results) => median(results.map(({ perSecond }) => perSecond));
  const accepted = rate(distinct);
  // Round by round, and then the median: a slow moment of the machine is in both sides of a ratio.
  const nextTo = (results) =>
    median(results.map(({ perSecond }, i) => perSecond / distinct[i].perSecond));
  const figures = { [OURS.name]: accepted };
  for (const [name, results] of Object.entries(bare)) figures[BARES[name]] = rate(results);
  const row = (measure, unit, value) => ({
    requirement: 'I-01',
    measure: `${intentAccept.name}${measure}`,
    unit,
    figures: { [OURS.name]: value },
  });
  const p99 = (results) => median(results.map(({ p99Ms }) => p99Ms));
  const shares = [...distinct, ...replays, ...declared, ...Object.values(bare).flat()].map(
    (r) => r.cpuShare,
  );
  const busiest = Math.round(Math.max(...shares) * 100);
  const distinctRow = row(', distinct channels', 'intents/s', accepted);
  return [
    versus({
      ...distinctRow,
      figures,
      rivals: Object.values(BARES),
      atLeast: 0.4,
      notes: [`the loader took at most ${busiest} % of one processor`],
    }),
    fact(row(', distinct channels, p99', 'ms', p99(distinct))),
    fact(row(', bare route, p99', 'ms', Math.min(...Object.values(bare).map(p99)))),
    absolute({
      ...row(', replays of one channel', '× distinct', nextTo(replays)),
      atLeast: 1,
    }),
    absolute({
      ...row(', declared kind with a schema', '× distinct channels', nextTo(declared)),
      requirement: 'B-11',
      atLeast: 0.9,
    }),
    fact(row(', declared kind with a schema, rate', 'intents/s', rate(declared))),
    fact(row(', replays of one channel, rate', 'intents/s', rate(replays))),
    fact(row(', replays of one channel, p99', 'ms', p99(replays))),
  ];
}
