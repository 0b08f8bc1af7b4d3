import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';
import { OURS } from '../contenders.mjs';
import { startCounter } from '../fleet-counter.mjs';
import { absolute, fact } from '../report.mjs';
import { monotonicMs } from '../statistics.mjs';

const TARGETS = 10_000;
const WALKS = ['keys', 'scan'];

const row = (requirement, measure, unit, figure) => ({
  requirement,
  measure,
  unit,
  figures: { [OURS.name]: figure },
});

/** Nothing happens: what does one instance ask of Redis all the same? */
export const fleetSteady = {
  name: 'steady state, one instance, 10,000 targets',
  run: runSteady,
};

async function runSteady(bench) {
  const { intervals, ttlMs } = bench.plan;
  const renewEveryMs = ttlMs / 3;
  const options = { ttl: ttlMs, discovery: 'off', results: 'off' };
  return counted(bench, { options }, async ({ redis, counter }) => {
    // What was taken at different moments is renewed together from the first renewal on.
    bench.progress(fleetSteady.name, 'settling');
    await sleep(renewEveryMs);
    bench.progress(fleetSteady.name, `${intervals} renewal intervals`);
    counter.take();
    await sleep(intervals * renewEveryMs);
    const counts = [...counter.take()];
    const requests = counts.reduce((sum, [, { calls }]) => sum + calls, 0);
    const notes = counts.map(([what, { calls }]) => `${what}: ${calls} in ${intervals} intervals`);
    const name = (measure) => `${fleetSteady.name}: ${measure}`;
    const perInterval = requests / intervals;
    const asked = row('FR-007', name('requests per renewal interval'), 'requests', perInterval);
    const walks = row(
      'FR-007',
      name('KEYS and SCAN, from the start'),
      'calls',
      await walked(redis),
    );
    return [absolute({ ...asked, notes, atMost: 25 }), absolute({ ...walks, atMost: 0 })];
  });
}

/** Many targets, polled as often as they may be: how many results go into one script call? */
export const fleetResults = { name: 'fenced results, 10,000 targets polled fast', run: runResults };

async function runResults(bench) {
  const { resultsMs } = bench.plan;
  const options = { every: '500ms', discovery: 'off' };
  return counted(bench, { options }, async ({ counter }) => {
    bench.progress(fleetResults.name, `${resultsMs / 1_000} s`);
    counter.take();
    const startMs = monotonicMs();
    await sleep(resultsMs);
    const tookMs = monotonicMs() - startMs;
    const { calls, keys } = counter.take().get('put');
    // One key of each call is that of the index.
    const written = keys - calls;
    const name = (measure) => `${fleetResults.name}: ${measure}`;
    const perCall = row('K-11', name('results per script call'), 'results', written / calls);
    const perSecond = row('K-11', name('written'), 'results/s', (written / tookMs) * 1_000);
    return [absolute({ ...perCall, atLeast: 100 }), fact(perSecond)];
  });
}

/** Runs `measure({ redis, counter })` once an instance whose requests are counted owns all targets. */
function counted(bench, facts, measure) {
  return bench.onRedis(async (redis) => {
    const counter = await startCounter(redis);
    try {
      const instance = await bench.instance(counter.url);
      await instance.ask('start', { count: TARGETS, isNoting: false, ...facts });
      await instance.ask('untilOwned', { count: TARGETS });
      return await measure({ redis, counter });
    } finally {
      counter.stop();
    }
  });
}

/** How often the keyspace was walked, by the server's own count. */
async function walked({ url }) {
  const client = createClient({ url, RESP: 2 });
  await client.connect();
  try {
    const info = await client.sendCommand(['INFO', 'commandstats']);
    return WALKS.reduce((sum, command) => {
      const calls = new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(info)?.[1];
      return sum + Number(calls ?? 0);
    }, 0);
  } finally {
    client.destroy();
  }
}
