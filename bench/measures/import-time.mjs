import { OURS } from '../contenders.mjs';
import { subpaths, timeImports } from '../import-process.mjs';
import { absolute, beside, fact } from '../report.mjs';
import { median } from '../statistics.mjs';

/** Of a processor, not by the clock: a busy machine takes the same. Twice of what it was when this was written. */
const MOST_CPU_MS = 220;
const WITH_REDIS = 'holdfast, with its Redis store';
const RIVAL = 'redlock + ioredis';

/** What a program imports to hold a lease on Redis. Our own connection is loaded when a store is opened; peers are given a client. */
const PROGRAMS = {
  [OURS.name]: ['holdfast'],
  [WITH_REDIS]: ['holdfast', './dist/lib/chunks/redis-store.js'],
  [RIVAL]: ['redlock', 'ioredis'],
  'redis-semaphore + ioredis': ['redis-semaphore', 'ioredis'],
  'redlock-universal + ioredis': ['redlock-universal', 'ioredis'],
};

/** The median of many processes. */
export const importTime = { name: 'import-time', run };

async function run(bench) {
  const others = subpaths().filter((name) => name !== OURS.name);
  const all = { ...PROGRAMS, ...Object.fromEntries(others.map((name) => [name, [name]])) };
  const times = await race(bench, all);
  const row = (measure, figures) => ({ requirement: '–', measure, unit: 'ms', figures });
  const own = (measure, ms) => row(measure, { [OURS.name]: ms });
  const rivals = Object.entries(times).filter(([name]) => name.includes(' + '));
  const withRedis = (measure, unit) => {
    const peers = rivals.map(([name, time]) => [name, time[unit]]);
    const figures = { [OURS.name]: times[WITH_REDIS][unit], ...Object.fromEntries(peers) };
    return beside({ ...row(measure, figures), rival: RIVAL });
  };
  const { ms, cpuMs } = times[OURS.name];
  return [
    absolute({ ...own('import, processor time', cpuMs), atMost: MOST_CPU_MS }),
    fact(own('import, by the clock', ms)),
    withRedis('import and the store on Redis, processor time', 'cpuMs'),
    withRedis('import and the store on Redis, by the clock', 'ms'),
    ...others.map((name) => fact(own(`import of ${name}, processor time`, times[name].cpuMs))),
  ];
}

/** Everybody once per round, in an order that moves on, so that whatever else the machine does hits all alike. */
async function race(bench, programs) {
  const entries = Object.entries(programs);
  const times = new Map(entries.map(([name]) => [name, []]));
  for (let round = 0; round <= bench.plan.rounds; round++) {
    bench.progress(importTime.name, `round ${round} of ${bench.plan.rounds}`);
    for (let i = 0; i < entries.length; i++) {
      const [name, specifiers] = entries[(i + round) % entries.length];
      const time = await timeImports(specifiers);
      // The first round fills the system's cache.
      if (round > 0) times.get(name).push(time);
    }
  }
  return Object.fromEntries(
    [...times].map(([name, all]) => {
      const middle = (unit) => median(all.map((time) => time[unit]));
      return [name, { ms: middle('ms'), cpuMs: middle('cpuMs') }];
    }),
  );
}
