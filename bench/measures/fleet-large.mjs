import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../contenders.mjs';
import { absolute, fact } from '../report.mjs';
import { monotonicMs } from '../statistics.mjs';

const TARGETS = 50_000;
const LOOK_EVERY_MS = 10_000;

/** One instance owns everything there is, at its defaults, with a handler that does nothing. */
export const fleetLarge = { name: 'one instance, 50,000 targets every 60 s', run };

async function run(bench) {
  const { largeMs } = bench.plan;
  return bench.onRedis(async ({ url }) => {
    bench.progress(fleetLarge.name, 'taking them');
    const instance = await bench.instance(url);
    await instance.ask('watchLoop');
    const startMs = monotonicMs();
    const facts = { count: TARGETS, isNoting: false, options: { every: '60s' } };
    await instance.ask('start', facts);
    const tookMs = (await instance.ask('untilOwned', { count: TARGETS })) - startMs;
    const taking = await instance.ask('burden');
    await instance.ask('watchLoop');
    for (let ms = 0; ms < largeMs; ms += LOOK_EVERY_MS) {
      bench.progress(fleetLarge.name, `${ms / 1_000} of ${largeMs / 1_000} s`);
      await sleep(Math.min(LOOK_EVERY_MS, largeMs - ms));
    }
    const burden = await instance.ask('burden');
    if (burden.held !== TARGETS) throw new Error(`it holds ${burden.held} of ${TARGETS}`);
    const row = (measure, unit, figure) => {
      const name = `${fleetLarge.name}: ${measure}`;
      return { requirement: 'K-03', measure: name, unit, figures: { [OURS.name]: figure } };
    };
    return [
      absolute({ ...row('event-loop delay, p99', 'ms', burden.p99Ms), atMost: 50 }),
      absolute({ ...row('memory (RSS)', 'MB', burden.megabytes), atMost: 350 }),
      fact(row('event-loop delay, longest', 'ms', burden.maxMs)),
      fact(row('memory at its peak', 'MB', burden.peakMegabytes)),
      fact(row('processor', '%', ((burden.cpuMs - taking.cpuMs) / largeMs) * 100)),
      fact(row('start → all owned', 'ms', tookMs)),
      fact(row('event-loop delay meanwhile, longest', 'ms', taking.maxMs)),
    ];
  });
}
