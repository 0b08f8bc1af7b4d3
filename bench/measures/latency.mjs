import { BARE, OURS, PEERS } from '../contenders.mjs';
import { versus } from '../report.mjs';
import { median } from '../statistics.mjs';

/** One caller, one pair after the other: what stands between a caller and two bare scripts? */
export const latency = { name: 'acquire + release, one caller, p50', run };

async function run(bench) {
  const members = await bench.crew([OURS, BARE, ...PEERS]);
  const results = await bench.race(latency.name, members, (member) =>
    member.ask('latency', { count: bench.plan.latencyPairs }),
  );
  const figures = {};
  for (const [{ name }, rounds] of results) figures[name] = median(rounds);
  const row = { requirement: 'K-01', measure: latency.name, unit: 'µs', figures };
  return [versus({ ...row, rivals: [BARE.name], atMost: 1.35 })];
}
