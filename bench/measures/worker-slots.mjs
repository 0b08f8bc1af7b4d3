import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../contenders.mjs';
import { absolute, fact } from '../report.mjs';
import { quantile } from '../statistics.mjs';

const SLOTS = 4;
const WARM_UP = 20;
/** The start that waits has asked for every slot, and knows that it has to wait. */
const SETTLE_MS = 30;

/** From the end of what runs on a slot until what has waited for one runs: all slots busy, one start waiting, two workers. */
export const workerSlots = { name: 'slot freed → next waiting start running', run };

async function run(bench) {
  return [
    ...rowsOf('Redis', await bench.onRedis((store) => delays(bench, store))),
    ...rowsOf('SQLite', await bench.onSqlite((store) => delays(bench, store))),
  ];
}

function rowsOf(where, { all, elsewhere }) {
  const row = (what, ms, share) => ({
    requirement: 'I-08',
    measure: `${workerSlots.name}, ${where}, ${what}`,
    unit: 'ms',
    figures: { [OURS.name]: quantile(ms, share) },
  });
  const freed = `freed by another worker (${elsewhere.length} of ${all.length}), p95`;
  return [
    fact(row('p50', all, 0.5)),
    absolute({ ...row('p95', all, 0.95), atMost: 30 }),
    ...(elsewhere.length === 0 ? [] : [fact(row(freed, elsewhere, 0.95))]),
  ];
}

async function delays(bench, { url }) {
  bench.progress(workerSlots.name, url.split(':')[0]);
  const asking = await bench.instance(url);
  const workers = new Map();
  for (let i = 0; i < 2; i++) {
    const working = await bench.instance(url);
    workers.set(await working.ask('open'), working);
    await working.ask('work', { options: { resources: { tuners: { slots: SLOTS, wait: '1m' } } } });
  }
  const running = [];
  for (let n = 0; n < SLOTS; n++) running.push(await started(asking, `first-${n}`));
  const result = { all: [], elsewhere: [] };
  for (let n = -WARM_UP; n < bench.plan.freed; n++) {
    const [id] = await asking.ask('submit', { refs: [`channel-${n}`] });
    await asking.ask('untilState', { ids: [id], state: 'STARTING' });
    await sleep(SETTLE_MS * (0.5 + Math.random()));
    const freed = running.shift();
    const endedAtMs = await workers.get(freed.worker).ask('endOne', { id: freed.id });
    const next = await seen(asking, id);
    const begunAtMs = await workers.get(next.worker).ask('begunAt', { id });
    running.push(next);
    if (n < 0) continue;
    result.all.push(begunAtMs - endedAtMs);
    if (freed.worker !== next.worker) result.elsewhere.push(begunAtMs - endedAtMs);
  }
  return result;
}

async function started(asking, ref) {
  const [id] = await asking.ask('submit', { refs: [ref] });
  return seen(asking, id);
}

/** Once it runs: who runs it. */
async function seen(asking, id) {
  const { workers } = await asking.ask('untilState', { ids: [id], state: 'RUNNING' });
  return { id, worker: workers[0] };
}
