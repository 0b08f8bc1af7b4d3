import { OURS } from '../contenders.mjs';
import { absolute, fact } from '../report.mjs';
import { quantile } from '../statistics.mjs';

/** Actions are this far apart, give or take half of it: processors have long been idle when one comes. */
const EVERY_MS = 10;
/** In which code is compiled for speed. */
const WARM_UP = 200;

/** From the call of emit() in one process until the handler starts in another. */
export const workflowStart = { name: 'emit → handler started in another process', run };

async function run(bench) {
  const { starts } = bench.plan;
  const redis = await bench.onRedis((store) => delays(bench, store, starts));
  const sqlite = await bench.onSqlite((store) => delays(bench, store, Math.ceil(starts / 5)));
  const row = (measure, ms, share) => ({
    requirement: 'W-13',
    measure: `${workflowStart.name}, ${measure}`,
    unit: 'ms',
    figures: { [OURS.name]: quantile(ms, share) },
  });
  return [
    absolute({ ...row('p50', redis, 0.5), atMost: 2 }),
    absolute({ ...row('p95', redis, 0.95), atMost: 8 }),
    fact(row('p99', redis, 0.99)),
    fact(row('SQLite, p50', sqlite, 0.5)),
    fact(row('SQLite, p95', sqlite, 0.95)),
  ];
}

/** In ms, from the call of emit() to the handler. */
export async function delays(bench, { url }, count) {
  bench.progress(workflowStart.name, url.split(':')[0]);
  const [orchestrating, working] = [await bench.instance(url), await bench.instance(url)];
  await working.ask('work', { name: 'worker' });
  await orchestrating.ask('claim', { of: 'one', count: 1 });
  const facts = { of: 'one', target: 'worker', everyMs: EVERY_MS };
  const asked = await orchestrating.ask('emitSpaced', { ...facts, count: WARM_UP + count });
  await working.ask('untilHandled', { count: WARM_UP + count });
  const handled = new Map(await working.ask('handledAt'));
  return asked.slice(WARM_UP).map(([id, askedAtMs]) => handled.get(id) - askedAtMs);
}
