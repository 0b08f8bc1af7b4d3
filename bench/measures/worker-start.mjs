import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../contenders.mjs';
import { absolute, fact } from '../report.mjs';
import { quantile } from '../statistics.mjs';

/** Starts are this far apart, give or take half of it: everybody has long been idle when one comes. */
const EVERY_MS = 20;
/** In which code is compiled for speed. */
const WARM_UP = 50;

/** From the 202 that a client has, over HTTP, until the function that runs for its session begins. One at a time. */
export const workerStart = { name: '202 → pipeline started', run };

async function run(bench) {
  const apart = (store) => delays(bench, store, { isApart: true });
  const together = (store) => delays(bench, store, { isApart: false });
  return [
    ...rowsOf('Redis, API and worker apart', await bench.onRedis(apart)),
    ...rowsOf('SQLite, API and worker apart', await bench.onSqlite(apart)),
    ...rowsOf('SQLite, API and worker in one process', await bench.onSqlite(together)),
  ];
}

function rowsOf(where, delays) {
  const row = (what, share, from) => ({
    requirement: 'I-08',
    measure: `${workerStart.name}, ${where}, ${what}`,
    unit: 'ms',
    figures: { [OURS.name]: quantile(delays[from], share) },
  });
  return [
    absolute({ ...row('p50', 0.5, 'fromAccepted'), atMost: 10 }),
    absolute({ ...row('p95', 0.95, 'fromAccepted'), atMost: 30 }),
    fact(row('from the request on, p50', 0.5, 'fromSent')),
  ];
}

async function delays(bench, { url }, { isApart }) {
  const store = url.split(':')[0];
  bench.progress(workerStart.name, isApart ? store : `${store}, one process`);
  const [asking, working] = [await bench.instance(url), await bench.instance(url)];
  const serving = isApart ? await bench.instance(url) : working;
  const port = await serving.ask('serve');
  await working.ask('work', {});
  const result = { fromAccepted: [], fromSent: [] };
  for (let n = -WARM_UP; n < bench.plan.starts; n++) {
    await sleep(EVERY_MS * (0.5 + Math.random()));
    const body = { type: 'stream.start', serviceRef: `channel-${n}` };
    const { id, sentAtMs, acceptedAtMs } = await asking.ask('post', { port, body });
    const begunAtMs = await working.ask('begunAt', { id });
    if (n >= 0) {
      result.fromAccepted.push(begunAtMs - acceptedAtMs);
      result.fromSent.push(begunAtMs - sentAtMs);
    }
    await asking.ask('post', { port, body: { type: 'stream.stop', sessionId: id } });
    await working.ask('untilIdle');
  }
  return result;
}
