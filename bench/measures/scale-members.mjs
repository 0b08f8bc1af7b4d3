import { openProbe } from '../redis.mjs';
import { curveRow, sized } from './scale-rows.mjs';

const LISTS = 20;
/** At the default TTL each member sends a heartbeat and reads all others in this time. */
const ROUND_MS = 10_000;
const MAKE_MS = 120_000;

/** Instances of a fleet: what their heartbeats, and reading each other's, cost Redis. */
export const scaleMembers = { name: 'members', run };

async function run(bench) {
  const rows = [];
  for (const count of bench.plan.members) {
    bench.progress(scaleMembers.name, sized(count));
    rows.push(...(await bench.onRedis((redis) => measure(bench, redis, count))));
  }
  return rows;
}

async function measure(bench, { url }, count) {
  const instance = await bench.instance(url);
  await instance.ask('beat', { count, lists: 0 }, { withinMs: MAKE_MS });
  const probe = await openProbe(url);
  const spent = async (lists) => {
    const beforeUs = await probe.redisCpuUs();
    await instance.ask('beat', { count, lists }, { withinMs: MAKE_MS });
    return ((await probe.redisCpuUs()) - beforeUs) / 1_000;
  };
  const beatsMs = await spent(0);
  const listMs = ((await spent(LISTS)) - beatsMs) / LISTS;
  await probe.close();
  const row = (what, unit, value) => curveRow(`${sized(count)} members: ${what}`, unit, value);
  return [
    row("Redis' processor time for one list of all", 'ms', listMs),
    row(
      "Redis' core for all heartbeats and lists",
      '%',
      ((beatsMs + count * listMs) / ROUND_MS) * 100,
    ),
  ];
}
