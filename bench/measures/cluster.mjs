import { OURS } from '../contenders.mjs';
import { versus } from '../report.mjs';
import { median } from '../statistics.mjs';

const CALLERS = 64;

/** A Cluster of three primaries next to one Redis, on the same machine: a script per key instead of one for all. */
export const clusterPairs = {
  name: `Cluster: acquire + release, ${CALLERS} callers`,
  run: measureCluster,
};

async function measureCluster(bench) {
  const [clustered] = await bench.cluster.crew([OURS]);
  const [single] = await bench.single.crew([OURS]);
  const results = await bench.single.race(clusterPairs.name, [clustered, single], (member) =>
    member.ask('pairs', { callers: CALLERS, count: bench.plan.pairs }),
  );
  const figure = (member, pick) => median(results.get(member).map(pick));
  const both = (pick) => ({
    [OURS.name]: figure(clustered, pick),
    'one Redis': figure(single, pick),
  });
  const row = { requirement: 'K-01', rivals: ['one Redis'] };
  return [
    versus({
      ...row,
      measure: clusterPairs.name,
      unit: 'pairs/s',
      atLeast: 0.5,
      figures: both(({ perSecond }) => perSecond),
    }),
  ];
}
