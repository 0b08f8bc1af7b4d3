import { hashMember, hashTarget } from '../../dist/fleet/plan/hash.js';
import { PlanCache } from '../../dist/fleet/plan/plan-cache.js';
import { openProbe } from '../redis.mjs';
import { absolute } from '../report.mjs';
import { median, monotonicMs } from '../statistics.mjs';
import { curveRow, sized } from './scale-rows.mjs';

const MEMBERS = 100;
const ROUNDS = 7;
/** So many targets change their owner between two rounds. */
const CHANGED = 100;
const MAKE_MS = 120_000;

/** Targets that a hundred members share: to plan them, and to look who owns them. */
export const scalePlan = { name: 'targets', run };

async function run(bench) {
  const rows = [];
  for (const count of bench.plan.targets) {
    bench.progress(scalePlan.name, `planning ${sized(count)}`);
    rows.push(...planned(count));
  }
  for (const count of bench.plan.lookedAt) {
    bench.progress(scalePlan.name, `looking at ${sized(count)}`);
    rows.push(...(await bench.onRedis((redis) => looked(bench, redis, count))));
  }
  return rows;
}

function planned(count) {
  const members = Array.from({ length: MEMBERS }, (_, m) => ({
    ...hashMember(`member-${m}`),
    weight: 1,
    isDraining: false,
    isForeign: false,
  }));
  const ids = Array.from({ length: count }, (_, t) => hashTarget(`device-${t}`));
  const [fresh, changed, same] = [[], [], []];
  for (let round = 0; round <= ROUNDS; round++) {
    const targets = ids.map((id) => ({ ...id, owner: null, pinned: null, planned: null }));
    const cache = new PlanCache();
    fresh.push(timed(() => cache.assign(members, targets)));
    for (const target of targets) target.owner = target.planned;
    cache.assign(members, targets);
    for (let n = 0; n < CHANGED; n++) {
      const target = targets[(n * 97) % count];
      target.owner = members[n % MEMBERS].id;
    }
    changed.push(timed(() => cache.assign(members, targets)));
    same.push(timed(() => cache.assign(members, targets)));
  }
  const row = (measure, times) =>
    curveRow(`${sized(count)} targets: ${measure}`, 'ms', median(times.slice(1)));
  const first = row('planned from nothing', fresh);
  return [
    count === 100_000 ? absolute({ ...first, atMost: 150 }) : first,
    row(`planned after ${CHANGED} changed hands`, changed),
    row('a round in which nothing changed', same),
  ];
}

async function looked(bench, { url }, count) {
  const instance = await bench.instance(url);
  await instance.ask('offerTargets', { from: 0, count }, { withinMs: MAKE_MS });
  await instance.ask('look', { count }, { withinMs: MAKE_MS });
  const probe = await openProbe(url);
  const beforeUs = await probe.redisCpuUs();
  const tookMs = await instance.ask('look', { count }, { withinMs: MAKE_MS });
  const redisMs = ((await probe.redisCpuUs()) - beforeUs) / 1_000;
  await probe.close();
  const row = (measure, value) => curveRow(`${sized(count)} targets: ${measure}`, 'ms', value);
  return [
    row('one instance looks who owns them', tookMs),
    row("Redis' processor time for that", redisMs),
  ];
}

function timed(work) {
  const startMs = monotonicMs();
  work();
  return monotonicMs() - startMs;
}
