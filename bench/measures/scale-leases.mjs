import { openProbe } from '../redis.mjs';
import { absolute } from '../report.mjs';
import { curveRow, grown, sized } from './scale-rows.mjs';

/** In one process at most; beyond that, several hold them. */
const MOST_IN_ONE = 250_000;
const HOLD_MS = 300_000;

/** Leases held at the default TTL, each renewed every ten seconds. */
export const scaleLeases = { name: 'leases held', run };

async function run(bench) {
  const rows = [];
  for (const count of bench.plan.leases) {
    bench.progress(scaleLeases.name, sized(count));
    rows.push(...(await bench.onRedis((redis) => measure(bench, redis, count))));
  }
  return rows;
}

async function measure(bench, { url }, count) {
  const holders = Math.ceil(count / MOST_IN_ONE);
  const each = count / holders;
  const members = await Promise.all(Array.from({ length: holders }, () => bench.instance(url)));
  const memory = await grown(url, () =>
    Promise.all(
      members.map((member, m) =>
        member.ask('hold', { from: m * each, count: each }, { withinMs: HOLD_MS }),
      ),
    ),
  );
  const { watchMs } = bench.plan;
  const probe = await openProbe(url);
  const redisBeforeUs = await probe.redisCpuUs();
  const kept = await Promise.all(
    members.map((member) => member.ask('keeping', { forMs: watchMs }, { withinMs: HOLD_MS })),
  );
  const redisShare = ((await probe.redisCpuUs()) - redisBeforeUs) / 1_000 / watchMs;
  await probe.close();
  const sum = (pick) => kept.reduce((total, one) => total + pick(one), 0);
  const row = (measure, unit, value) =>
    curveRow(`${scaleLeases.name}, ${sized(count)}: ${measure}`, unit, value);
  const held = row('still held', '%', (sum((one) => one.held) / count) * 100);
  return [
    absolute({ ...held, atLeast: 100 }),
    absolute({ ...row("Redis' core", '%', redisShare * 100), atMost: 50 }),
    row("the holders' cores", '%', sum(({ share }) => share) * 100),
    row('memory in Redis for each', 'bytes', memory / count),
    row('memory in the holder for each', 'bytes', sum(({ bytes }) => bytes) / count),
  ];
}
