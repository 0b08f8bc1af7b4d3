import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../contenders.mjs';
import { startCounter } from '../fleet-counter.mjs';
import { absolute, fact } from '../report.mjs';
import { monotonicMs } from '../statistics.mjs';

const TARGETS = 10_000;

/** One instance runs a task for each target: what does it take to start them, and to keep them? */
export const fleetRun = { name: 'run, one instance, 10,000 running targets', run };

async function run(bench) {
  const { intervals, ttlMs } = bench.plan;
  const renewEveryMs = ttlMs / 3;
  return bench.onRedis(async (redis) => {
    const counter = await startCounter(redis);
    try {
      const instance = await bench.instance(counter.url);
      await instance.ask('watchLoop');
      const before = await instance.ask('burden');
      bench.progress(fleetRun.name, 'starting them');
      const startMs = monotonicMs();
      const options = { ttl: ttlMs, discovery: 'off', stuckAfter: '10m' };
      await instance.ask('startTasks', { count: TARGETS, options });
      const tookMs = (await instance.ask('untilRunning', { count: TARGETS })) - startMs;
      // What was taken at different moments is renewed together from the first renewal on.
      bench.progress(fleetRun.name, 'settling');
      await sleep(renewEveryMs);
      const started = await instance.ask('burden');
      bench.progress(fleetRun.name, `${intervals} renewal intervals`);
      counter.take();
      await instance.ask('watchLoop');
      await sleep(intervals * renewEveryMs);
      const counts = [...counter.take()];
      const burden = await instance.ask('burden');
      if (burden.held !== TARGETS) throw new Error(`it holds ${burden.held} of ${TARGETS}`);
      const requests = counts.reduce((sum, [, { calls }]) => sum + calls, 0);
      const notes = counts.map(
        ([what, { calls }]) => `${what}: ${calls} in ${intervals} intervals`,
      );
      const row = (measure, unit, figure) => {
        const name = `${fleetRun.name}: ${measure}`;
        return { requirement: 'B-04', measure: name, unit, figures: { [OURS.name]: figure } };
      };
      const grownMb = burden.megabytes - before.megabytes;
      const cpu = ((burden.cpuMs - started.cpuMs) / (intervals * renewEveryMs)) * 100;
      const perInterval = row('requests per renewal interval', 'requests', requests / intervals);
      return [
        absolute({ ...row('memory above the process (RSS)', 'MB', grownMb), atMost: 100 }),
        absolute({ ...row('start → all running', 'ms', tookMs), atMost: 3_000 }),
        absolute({ ...perInterval, notes, atMost: 25 }),
        fact(row('event-loop delay, p99', 'ms', burden.p99Ms)),
        fact(row('processor', '%', cpu)),
      ];
    } finally {
      counter.stop();
    }
  });
}
