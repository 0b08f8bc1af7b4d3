import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../contenders.mjs';
import { until, untilEven } from '../process-bench.mjs';
import { absolute, fact } from '../report.mjs';
import { monotonicMs, quantile } from '../statistics.mjs';

const TARGETS = 300;
const TTL_MS = 3_000;
const RENEW_EVERY_MS = TTL_MS / 3;
const FACTS = { count: TARGETS, options: { ttl: TTL_MS, every: '1s' } };
/** Killed at a random moment, a lease has half a renewal interval less than its TTL to go. */
const EXPECTED_MS = TTL_MS - RENEW_EVERY_MS / 2;

/** One of three is killed: per target it had, until another polls it. At moments spread over the renewal interval. */
export const fleetCrash = { name: 'crash of one of three, TTL 3 s, 300 targets', run };

async function run(bench) {
  const { kills } = bench.plan;
  const took = [];
  await bench.onRedis(async ({ url }) => {
    const join = () => bench.member(url, FACTS);
    const members = await Promise.all([join(), join(), join()]);
    for (let kill = 0; kill < kills; kill++) {
      bench.progress(fleetCrash.name, `${kill + 1} of ${kills}`);
      await untilEven(members, TARGETS);
      const [victim, ...others] = members.splice(0);
      took.push(...(await killed(victim, others, (kill + 0.5) / kills)));
      members.push(...others, await join());
    }
  });
  const meanMs = took.reduce((sum, ms) => sum + ms, 0) / took.length;
  const row = (measure, unit, figure) => {
    const name = `${fleetCrash.name}: ${measure}`;
    return { requirement: 'US2.1', measure: name, unit, figures: { [OURS.name]: figure } };
  };
  const p99 = row('polled by another, p99', 'ms', quantile(took, 0.99));
  const offPercent = (Math.abs(meanMs - EXPECTED_MS) / EXPECTED_MS) * 100;
  return [
    absolute({ ...p99, atMost: TTL_MS + 500 }),
    absolute({ ...row('mean, off TTL − renewEvery/2', '%', offPercent), atMost: 15 }),
    fact(row('mean', 'ms', meanMs)),
    fact(row('soonest', 'ms', quantile(took, 0))),
    fact(row('latest', 'ms', quantile(took, 1))),
    fact(row('taken over', 'targets', took.length)),
  ];
}

/** Kills the instance this share of an interval after a renewal. */
async function killed(victim, others, phase) {
  const renewedAtMs = await victim.ask('nextRenewal');
  const ids = await victim.ask('owned');
  await sleep(renewedAtMs + phase * RENEW_EVERY_MS - monotonicMs());
  await Promise.all(others.map((other) => other.ask('happened')));
  const killedAtMs = monotonicMs();
  await victim.stop();
  const missing = new Set(ids);
  const took = [];
  await until(`${ids.length} targets polled by others`, async () => {
    for (const { polled } of await Promise.all(others.map((other) => other.ask('happened'))))
      for (const [id, atMs] of polled) if (missing.delete(id)) took.push(atMs - killedAtMs);
    return missing.size === 0;
  });
  return took;
}
