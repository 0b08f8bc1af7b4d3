import { OURS, PEERS_WITH_EVERY_CLIENT } from '../contenders.mjs';
import { fact, versus } from '../report.mjs';
import { median } from '../statistics.mjs';

/** Many callers that acquire and release keys of their own: how many pairs a second, and what each costs. */
export function pairs(callers, bar) {
  const name = `acquire + release, ${callers} callers`;
  return { name, run: (bench) => run(bench, { name, callers, bar }) };
}

async function run(bench, { name, callers, bar }) {
  const members = await bench.crew([OURS, ...PEERS_WITH_EVERY_CLIENT]);
  const results = await bench.race(name, members, (member) =>
    member.ask('pairs', { callers, count: bench.plan.pairs }),
  );
  const perSecond = figures(results, ({ perSecond }) => perSecond, Math.max);
  const cpuUs = figures(results, ({ cpuUs }) => cpuUs, Math.min);
  const redisUs = figures(results, ({ redisUs }) => redisUs, Math.min);
  const ceiling = 1e6 / redisUs[OURS.name];
  const share = (perSecond[OURS.name] / ceiling) * 100;
  const row = (measure, unit, figures) => {
    return { requirement: 'K-01', measure: `${measure}, ${callers} callers`, unit, figures };
  };
  return [
    versus({ ...row('acquire + release', 'pairs/s', perSecond), atLeast: bar }),
    versus({ ...row('client CPU per pair', 'µs', cpuUs), atMost: 0.35 }),
    fact(row('Redis CPU per pair', 'µs', redisUs)),
    fact(row('ceiling, with Redis always busy', 'pairs/s', { [OURS.name]: ceiling })),
    fact(row('share of the ceiling', '%', { [OURS.name]: share })),
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
