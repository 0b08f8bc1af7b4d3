import { openProbe, startCluster } from '../redis.mjs';
import { absolute } from '../report.mjs';
import { curveRow } from './scale-rows.mjs';

/** One at a time, as many processes with little to do ask; and many at once, which one Redis answers in one script. */
const CALLERS = [1, 64];
const PAIRS_MS = 120_000;

/**
 * A Cluster of three beside one Redis. All servers share this machine's cores, so its rate says little: what counts is how
 * much processor time each server needs for the same work. A Cluster whose servers have a core each is done when the
 * busiest of them is.
 */
export const scaleCluster = { name: 'a Cluster of three', run };

async function run(bench) {
  bench.progress(scaleCluster.name, 'one Redis');
  const single = await bench.onRedis(({ url }) => spent(bench, url, [url]));
  bench.progress(scaleCluster.name, 'three servers');
  const cluster = await startCluster();
  try {
    const addresses = cluster.url.replace('redis+cluster://', '').split(',');
    const servers = addresses.map((address) => `redis://${address}`);
    const clustered = await spent(bench, cluster.url, servers);
    return CALLERS.flatMap((callers, at) => rowsOf(callers, single[at], clustered[at]));
  } finally {
    await bench.reset();
    await cluster.stop();
  }
}

function rowsOf(callers, [alone], each) {
  const row = (what, unit, value) => {
    const who = callers === 1 ? 'one caller' : `${callers} callers`;
    return curveRow(`a Cluster of three, ${who}: ${what}`, unit, value);
  };
  return [
    absolute({ ...row('carries, of one Redis', '×', alone / Math.max(...each)), atLeast: 1.6 }),
    row('one Redis, for a pair', 'µs', alone),
    row('its busiest server, for a pair', 'µs', Math.max(...each)),
  ];
}

/** For each number of callers: the microseconds of each server for a pair, whichever server that pair was on. */
async function spent(bench, url, servers) {
  const { pairs } = bench.plan;
  const instance = await bench.instance(url);
  const probes = await Promise.all(servers.map(openProbe));
  const read = () => Promise.all(probes.map((probe) => probe.redisCpuUs()));
  const all = [];
  for (const callers of CALLERS) {
    const ask = (count) => instance.ask('pairs', { callers, count }, { withinMs: PAIRS_MS });
    await ask(pairs / 5);
    const before = await read();
    await ask(pairs);
    const after = await read();
    all.push(after.map((us, n) => (us - before[n]) / pairs));
  }
  for (const probe of probes) await probe.close();
  return all;
}
