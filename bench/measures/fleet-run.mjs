import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../contenders.mjs';
import { startCounter } from '../fleet-counter.mjs';
import { absolute, fact } from '../report.mjs';
import { median, monotonicMs } from '../statistics.mjs';

const TARGETS = 10_000;

/** One instance runs a task for each target: what does it take to start them, and to keep them? */
export const fleetRun = { name: 'run, one instance, 10,000 running targets', run };

/** Memory and start are of a moment: so many instances, one after the other, and then the median. */
const ROUNDS = 3;

async function run(bench) {
  const found = [];
  for (let round = 1; round <= ROUNDS; round++) found.push(await once(bench, round));
  const { intervals } = bench.plan;
  const of = (what) => median(found.map((one) => one[what]));
  const all = (what, unit) => [found.map((one) => `${Math.round(one[what])} ${unit}`).join(', ')];
  const row = (measure, unit, figure) => {
    const name = `${fleetRun.name}: ${measure}`;
    return { requirement: 'B-04', measure: name, unit, figures: { [OURS.name]: figure } };
  };
  const notes = found[0].counts.map(
    ([what, { calls }]) => `${what}: ${calls} in ${intervals} intervals`,
  );
  const memory = row('memory above the process (RSS)', 'MB', of('grownMb'));
  const start = row('start → all running', 'ms', of('tookMs'));
  const perInterval = row('requests per renewal interval', 'requests', of('requests'));
  return [
    absolute({ ...memory, notes: all('grownMb', 'MB'), atMost: 100 }),
    absolute({ ...start, notes: all('tookMs', 'ms'), atMost: 3_000 }),
    absolute({ ...perInterval, notes, atMost: 25 }),
    fact(row('heap in use above the process', 'MB', of('heapMb'))),
    fact(row('event-loop delay, p99', 'ms', of('p99Ms'))),
    fact(row('processor', '%', of('cpu'))),
  ];
}

async function once(bench, round) {
  const { intervals, ttlMs } = bench.plan;
  const renewEveryMs = ttlMs / 3;
  const told = (what) => bench.progress(fleetRun.name, `round ${round}: ${what}`);
  return bench.onRedis(async (redis) => {
    const counter = await startCounter(redis);
    try {
      const instance = await bench.instance(counter.url);
      await instance.ask('watchLoop');
      const heapBefore = await instance.ask('heap');
      const before = await instance.ask('burden');
      told('starting them');
      const startMs = monotonicMs();
      const options = { ttl: ttlMs, discovery: 'off', stuckAfter: '10m' };
      await instance.ask('startTasks', { count: TARGETS, options });
      const tookMs = (await instance.ask('untilRunning', { count: TARGETS })) - startMs;
      // What was taken at different moments is renewed together from the first renewal on.
      told('settling');
      await sleep(renewEveryMs);
      const started = await instance.ask('burden');
      told(`${intervals} renewal intervals`);
      counter.take();
      await instance.ask('watchLoop');
      await sleep(intervals * renewEveryMs);
      const counts = [...counter.take()];
      const burden = await instance.ask('burden');
      if (burden.held !== TARGETS) throw new Error(`it holds ${burden.held} of ${TARGETS}`);
      const requests = counts.reduce((sum, [, { calls }]) => sum + calls, 0);
      return {
        counts,
        tookMs,
        requests: requests / intervals,
        grownMb: burden.megabytes - before.megabytes,
        heapMb: (await instance.ask('heap')) - heapBefore,
        p99Ms: burden.p99Ms,
        cpu: ((burden.cpuMs - started.cpuMs) / (intervals * renewEveryMs)) * 100,
      };
    } finally {
      counter.stop();
    }
  });
}
