import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../contenders.mjs';
import { startCounter } from '../fleet-counter.mjs';
import { absolute } from '../report.mjs';
import { monotonicMs } from '../statistics.mjs';

const WORKFLOWS = 10_000;
const MINUTE_MS = 60_000;
/** The TTL that workflows have unless told otherwise, and how often it is renewed then. */
const DEFAULT_TTL_MS = 300_000;
const DEFAULT_RENEW_EVERY_MS = 240_000;
/** A shorter one is renewed this often. */
const RENEW_SHARE = 1 / 3;

/** Nothing happens: what does one process ask of Redis for the workflows that it holds? */
export const workflowIdle = { name: '10,000 idle workflows held by one process', run };

async function run(bench) {
  const ttlMs = bench.plan.idleTtlMs;
  const isDefault = ttlMs === DEFAULT_TTL_MS;
  const renewEveryMs = isDefault ? DEFAULT_RENEW_EVERY_MS : ttlMs * RENEW_SHARE;
  const { requests, notes } = await bench.onRedis((redis) =>
    requestsPerPeriod(bench, redis, { ttlMs, renewEveryMs }),
  );
  const figures = { [OURS.name]: requests * (MINUTE_MS / DEFAULT_RENEW_EVERY_MS) };
  const how = isDefault
    ? `counted over ${renewEveryMs / 1_000} s, one period of the default TTL`
    : `counted over ${renewEveryMs / 1_000} s, one period of a TTL of ${ttlMs / 1_000} s; a minute of the default has a quarter of one`;
  return [
    absolute({
      requirement: 'W-09',
      measure: `${workflowIdle.name}: requests`,
      unit: 'a minute',
      figures,
      notes: [how, ...notes],
      atMost: 25,
    }),
  ];
}

/** All requests, of whatever kind, in as much time as every workflow is renewed once in. */
async function requestsPerPeriod(bench, redis, { ttlMs, renewEveryMs }) {
  const counter = await startCounter(redis);
  try {
    const instance = await bench.instance(counter.url);
    bench.progress(workflowIdle.name, 'claiming them');
    await instance.ask('claim', { of: 'idle', count: WORKFLOWS, options: { ttl: ttlMs } });
    const renewed = instance.ask('untilRenewed', {}, { withinMs: 2 * renewEveryMs });
    counter.take();
    const startMs = monotonicMs();
    bench.progress(workflowIdle.name, `${renewEveryMs / 1_000} s of nothing`);
    await sleep(renewEveryMs);
    const counts = [...counter.take()];
    const tookMs = monotonicMs() - startMs;
    await renewed;
    const requests = counts.reduce((sum, [, { calls }]) => sum + calls, 0);
    const notes = counts.map(([what, { calls }]) => `${what}: ${calls}`);
    return { requests: requests * (renewEveryMs / tookMs), notes };
  } finally {
    counter.stop();
  }
}
