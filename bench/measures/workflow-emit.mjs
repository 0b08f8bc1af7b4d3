import { OURS } from '../contenders.mjs';
import { startCounter } from '../fleet-counter.mjs';
import { absolute, fact, versus } from '../report.mjs';
import { median } from '../statistics.mjs';

const BARE = 'bare XADD';
/** A workflow has at most 1,000 actions that are not done yet, so each round has a workflow of its own. */
const EACH = 500;
/** One after the other within a round, so that what else the machine does hits both alike. */
const TURNS = 10;
/** Rounds that do not count: code is compiled for speed only after it has run for a while. */
const WARM_UP = 6;
const COUNTED = 200;

/** One orchestrator that wants one thing after the other: what stands between it and the least that publishing takes? */
export const workflowEmit = { name: 'emit, one orchestrator, sequential', run };

async function run(bench) {
  const redis = await bench.onRedis((redis) => race(bench, redis, redis.url));
  const client = await bench.onRedis((redis) => race(bench, redis, `client+${redis.url}`));
  const sqlite = await bench.onSqlite((store) => rounds(bench, store));
  const name = workflowEmit.name;
  const row = { requirement: 'W-02', measure: name, unit: 'actions/s', figures: perSecond(redis) };
  const requests = { [OURS.name]: redis.requests };
  const onSqlite = { [OURS.name]: 1e6 / median(sqlite) };
  return [
    absolute({
      requirement: 'W-02',
      measure: `${name}: requests per action`,
      unit: 'requests',
      figures: requests,
      atMost: 1,
    }),
    versus({ ...row, measure: `${name}, our connection`, rivals: [BARE], atLeast: 0.6 }),
    versus({
      ...row,
      measure: `${name}, a client of node-redis`,
      figures: perSecond(client),
      rivals: [BARE],
      atLeast: 0.6,
    }),
    fact({ ...row, measure: `${name}, SQLite`, figures: onSqlite }),
  ];
}

function perSecond({ ours, bare }) {
  return { [OURS.name]: 1e6 / median(ours), [BARE]: 1e6 / median(bare) };
}

/** Both over the same client. */
async function race(bench, redis, address) {
  const instance = await bench.instance(address);
  const ours = [];
  const bare = [];
  for (let round = 1 - WARM_UP; round <= bench.plan.emitRounds; round++) {
    bench.progress(workflowEmit.name, `round ${round} of ${bench.plan.emitRounds}`);
    const of = `round-${round + WARM_UP}`;
    await instance.ask('claim', { of, count: 1 });
    const turns = { ours: [], bare: [] };
    const each = EACH / TURNS;
    const emit = async () => {
      turns.ours.push(await instance.ask('emit', { of, count: 1, each, target: of }));
    };
    const add = async () => {
      turns.bare.push(await instance.ask('add', { key: of, each }));
    };
    for (let turn = 0; turn < TURNS; turn++) {
      if (turn % 2 === 0) await emit();
      await add();
      if (turn % 2 === 1) await emit();
    }
    if (round <= 0) continue;
    ours.push(median(turns.ours));
    bare.push(median(turns.bare));
  }
  return { ours, bare, requests: await requestsEach(bench, redis) };
}

/** By what goes over the wire. */
async function requestsEach(bench, redis) {
  const counter = await startCounter(redis);
  try {
    const instance = await bench.instance(counter.url);
    await instance.ask('claim', { of: 'counted', count: 1 });
    counter.take();
    await instance.ask('emit', { of: 'counted', count: 1, each: COUNTED, target: 'counted' });
    const calls = [...counter.take().values()].reduce((sum, { calls }) => sum + calls, 0);
    return calls / COUNTED;
  } finally {
    counter.stop();
  }
}

async function rounds(bench, { url }) {
  const instance = await bench.instance(url);
  const us = [];
  for (let round = 0; round <= 3; round++) {
    const of = `round-${round}`;
    await instance.ask('claim', { of, count: 1 });
    const took = await instance.ask('emit', { of, count: 1, each: EACH, target: of });
    if (round > 0) us.push(took);
  }
  return us;
}
