import { BARE, BARE_UNTIMED, OURS, PEERS } from '../contenders.mjs';
import { fact, versus } from '../report.mjs';
import { median } from '../statistics.mjs';

/** One caller, one pair after the other: what stands between a caller and two bare scripts? */
export const latency = { name: 'acquire + release, one caller, p50', run };

const UNTIMED = 'bare, untimed';

async function run(bench) {
  const members = await bench.crew([OURS, BARE, BARE_UNTIMED, ...PEERS]);
  const results = await bench.race(latency.name, members, (member) =>
    member.ask('latency', { count: bench.plan.latencyPairs }),
  );
  const figures = {};
  for (const [{ name, client }, rounds] of results) {
    figures[client === BARE_UNTIMED.client ? UNTIMED : name] = median(rounds);
  }
  const row = { requirement: 'K-01', measure: latency.name, unit: 'µs', figures };
  const untimed = {
    requirement: 'K-01',
    measure: 'the same, against a client without command timeouts',
    unit: '×',
    figures: { [OURS.name]: figures[OURS.name] / figures[UNTIMED] },
  };
  return [versus({ ...row, rivals: [BARE.name], atMost: 1.35 }), fact(untimed)];
}
