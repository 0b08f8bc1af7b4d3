import { BARE, BARE_UNTIMED, OURS, PEERS } from '../contenders.mjs';
import { fact, versus } from '../report.mjs';
import { median } from '../statistics.mjs';

/**
 * One caller, one pair after the other. Client and server work by turns, so it matters which processors they have: with
 * one each, the figures are mostly the time that an idle processor takes to wake.
 */
export const latency = { name: 'acquire + release, one caller, p50', run };

const UNTIMED = 'bare, untimed';
/** How many times the figure of each rival ours may be. redis-semaphore has neither a fence nor a deadline. */
const BARS = { redlock: 1, 'redlock-universal': 1, 'redis-semaphore': 1.25 };

async function run(bench) {
  const members = await bench.crew([OURS, BARE, BARE_UNTIMED, ...PEERS]);
  if (bench.placement === null) return rows(latency.name, await figures(bench, members));
  const apart = await figures(bench, members);
  const together = await bench.onOneProcessor(() => figures(bench, members));
  return [
    ...rows(`${latency.name}, a processor each`, apart),
    ...rows(`${latency.name}, one processor`, together),
  ];
}

/** Many short rounds: the median of few would be that of a moment. */
async function figures(bench, members) {
  const { latencyPairs: count, latencyRounds: rounds, budgetMs } = bench.plan;
  const measure = (member) => member.ask('latency', { count });
  const results = await bench.race(latency.name, members, measure, { rounds, budgetMs });
  const byName = {};
  for (const [{ name, client }, medians] of results) {
    byName[client === BARE_UNTIMED.client ? UNTIMED : name] = median(medians);
  }
  return byName;
}

function rows(measure, figures) {
  const row = { requirement: 'K-01', measure, unit: 'µs', figures };
  const toBare = figures[OURS.name] / figures[BARE.name];
  return [
    ...Object.entries(BARS).flatMap(([rival, atMost]) => {
      if (!(rival in figures)) return [];
      return versus({ ...row, measure: `${measure}, against ${rival}`, rivals: [rival], atMost });
    }),
    fact({
      ...row,
      measure: `${measure}, against bare scripts`,
      unit: '×',
      figures: { [OURS.name]: toBare },
    }),
  ];
}
