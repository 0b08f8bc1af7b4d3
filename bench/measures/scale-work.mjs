import { openProbe } from '../redis.mjs';
import { curveRow, grown, sized } from './scale-rows.mjs';

const MAKE_MS = 300_000;
/** As many as the task asks for one after the other. */
const SAMPLES = 300;

/** Workflows that are open, each with an action under way. */
export const scaleWorkflows = measureOf({
  name: 'open workflows',
  make: 'workflows',
  oneMore: 'oneWorkflow',
  what: 'claim, emit and release one more',
});

/** Sessions that were accepted and wait for a worker. */
export const scaleSessions = measureOf({
  name: 'sessions accepted',
  make: 'sessions',
  oneMore: 'oneSession',
  what: 'accept one more',
});

function measureOf({ name, make, oneMore, what }) {
  const measure = async (bench, { url }, count) => {
    const instance = await bench.instance(url);
    const bytes = await grown(url, () =>
      instance.ask(make, { from: 0, count }, { withinMs: MAKE_MS }),
    );
    const probe = await openProbe(url);
    const beforeUs = await probe.redisCpuUs();
    const tookMs = await instance.ask(oneMore, { from: count });
    const redisUs = ((await probe.redisCpuUs()) - beforeUs) / SAMPLES;
    await probe.close();
    const row = (text, unit, value) => curveRow(`${sized(count)} ${name}: ${text}`, unit, value);
    return [
      row(what, 'ms', tookMs),
      row("Redis' processor time for that", 'µs', redisUs),
      row('memory in Redis for each', 'bytes', bytes / count),
    ];
  };
  const run = async (bench) => {
    const rows = [];
    for (const count of bench.plan.kept) {
      bench.progress(name, sized(count));
      rows.push(...(await bench.onRedis((redis) => measure(bench, redis, count))));
    }
    return rows;
  };
  return { name, run };
}
