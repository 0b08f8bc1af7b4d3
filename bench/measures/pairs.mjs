import { OURS, PEERS_WITH_EVERY_CLIENT } from '../contenders.mjs';
import { fact, versus } from '../report.mjs';
import { median } from '../statistics.mjs';

/** Many callers that acquire and release keys of their own: how many pairs a second, and what each costs. */
export function pairs(callers, fasterBy) {
  const what = `acquire + release, ${callers} callers`;
  return { name: what, run: (bench) => run(bench, { what, callers, fasterBy }) };
}

async function run(bench, { what, callers, fasterBy }) {
  const members = await bench.crew([OURS, ...PEERS_WITH_EVERY_CLIENT]);
  const results = await bench.race(what, members, (member) =>
    member.ask('pairs', { callers, count: bench.plan.pairs }),
  );
  const perSecond = figures(results, ({ perSecond }) => perSecond, Math.max);
  const cpuUs = figures(results, ({ cpuUs }) => cpuUs, Math.min);
  const redisUs = figures(results, ({ redisUs }) => redisUs, Math.min);
  const ceiling = 1e6 / redisUs[OURS.name];
  const common = { requirement: 'K-01' };
  return [
    versus({ ...common, measure: what, unit: 'pairs/s', figures: perSecond, atLeast: fasterBy }),
    versus({
      ...common,
      measure: `client CPU per pair, ${callers} callers`,
      unit: 'µs',
      figures: cpuUs,
      atMost: 1 / 2,
    }),
    fact({ ...common, measure: `Redis CPU per pair, ${callers} callers`, unit: 'µs', figures: redisUs }),
    fact({
      ...common,
      measure: `ceiling: Redis busy all the time, ${callers} callers`,
      unit: 'pairs/s',
      figures: { [OURS.name]: ceiling },
    }),
    fact({
      ...common,
      measure: `of that ceiling, ${callers} callers`,
      unit: '%',
      figures: { [OURS.name]: (perSecond[OURS.name] / ceiling) * 100 },
    }),
  ];
}

/** Per name the median over the rounds; of its better client where it ran with several. */
function figures(results, pick, better) {
  const byName = {};
  for (const [{ name }, rounds] of results) {
    const figure = median(rounds.map(pick));
    byName[name] = name in byName ? better(byName[name], figure) : figure;
  }
  return byName;
}
