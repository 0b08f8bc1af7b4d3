import { OURS } from '../contenders.mjs';
import { fact } from '../report.mjs';
import { median } from '../statistics.mjs';

const STARTS = 1_000;

/** So many accepted starts that need no slot, and one worker that comes to them: until the last one's function has begun. */
export const workerThroughput = { name: `starts of ${STARTS} accepted intents, one worker`, run };

async function run(bench) {
  const row = (where, all) =>
    fact({
      requirement: 'I-08',
      measure: `${workerThroughput.name}, ${where}`,
      unit: 'starts/s',
      figures: { [OURS.name]: median(all) },
    });
  return [
    row('Redis', await bench.onRedis((store) => rounds(bench, store))),
    row('SQLite', await bench.onSqlite((store) => rounds(bench, store))),
  ];
}

async function rounds(bench, { url }) {
  const asking = await bench.instance(url);
  const results = [];
  for (let round = 0; round < bench.plan.throughputs; round++) {
    bench.progress(workerThroughput.name, `${url.split(':')[0]}, round ${round}`);
    const refs = Array.from({ length: STARTS }, (_, n) => `recording-${round}-${n}`);
    const ids = await asking.ask('submit', { refs, type: 'vod.start' });
    const working = await bench.instance(url);
    const fromMs = await working.ask('work', {});
    const untilMs = await working.ask('untilBegun', { count: STARTS });
    results.push(STARTS / ((untilMs - fromMs) / 1_000));
    await asking.ask('stopSessions', { ids });
    await working.ask('untilIdle');
    await working.ask('stopWorking');
    await working.stop();
  }
  return results;
}
