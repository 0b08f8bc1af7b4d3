import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../contenders.mjs';
import { deviceId } from '../fleet-tasks.mjs';
import { until, untilEven } from '../process-bench.mjs';
import { absolute, fact } from '../report.mjs';
import { quantile } from '../statistics.mjs';

/** Between two changes: short enough that rounds follow each other closely, and at no fixed place between them. */
const PAUSE_MS = [10, 120];
const FACTS = { options: { every: '60s' } };

/** A session is paused, or added, by another process: until the one of two instances that owns it has acted on it. */
export const fleetSessions = { name: 'a session paused or added → its owner acts', run };

async function run(bench) {
  const onRedis = await bench.onRedis((store) => measureStore(bench, 'Redis', store));
  const onSqlite = await bench.onSqlite((store) => measureStore(bench, 'SQLite', store));
  return [...rowsOf('Redis', onRedis, 250), ...rowsOf('SQLite', onSqlite, 500)];
}

async function measureStore(bench, where, { url }) {
  const { changes } = bench.plan;
  const ids = (from) => Array.from({ length: changes }, (_, i) => deviceId(from + i));
  const [old, fresh] = [ids(0), ids(changes)];
  const changer = await bench.instance(url);
  await changer.ask('add', { ids: old });
  const members = await Promise.all([bench.member(url, FACTS), bench.member(url, FACTS)]);
  await untilEven(members, old.length);
  await Promise.all(members.map((member) => member.ask('happened')));
  const askedAtMs = { pause: new Map(), add: new Map() };
  for (let i = 0; i < changes; i++) {
    bench.progress(fleetSessions.name, `${where}, ${i} of ${changes}`);
    await sleep(between(...PAUSE_MS));
    askedAtMs.pause.set(old[i], await changer.ask('pause', { id: old[i] }));
    await sleep(between(...PAUSE_MS));
    askedAtMs.add.set(fresh[i], await changer.ask('add', { ids: [fresh[i]] }));
  }
  return reactions(members, askedAtMs);
}

/** Per change how long it took: the first to act on it counts, since what was added may go to the other one later. */
async function reactions(members, askedAtMs) {
  const actedAtMs = { pause: new Map(), add: new Map() };
  const note = (verb, acts) => {
    for (const [id, atMs] of acts) {
      const knownMs = actedAtMs[verb].get(id) ?? Number.POSITIVE_INFINITY;
      if (askedAtMs[verb].has(id)) actedAtMs[verb].set(id, Math.min(atMs, knownMs));
    }
  };
  const isDone = (verb) => actedAtMs[verb].size === askedAtMs[verb].size;
  await until('every change acted on', async () => {
    for (const member of members) {
      const { released, polled } = await member.ask('happened');
      note('pause', released);
      note('add', polled);
    }
    return isDone('pause') && isDone('add');
  });
  const took = (verb) => [...askedAtMs[verb]].map(([id, ms]) => actedAtMs[verb].get(id) - ms);
  return { pause: took('pause'), add: took('add') };
}

function rowsOf(where, { pause, add }, atMost) {
  const row = (measure, values, share) => {
    const name = `${fleetSessions.name}, ${where}: ${measure}`;
    const figures = { [OURS.name]: quantile(values, share) };
    return { requirement: 'P-02', measure: name, unit: 'ms', figures };
  };
  return [
    absolute({ ...row('paused → released, p95', pause, 0.95), atMost }),
    absolute({ ...row('added → polled, p95', add, 0.95), atMost }),
    fact(row('paused → released, p50', pause, 0.5)),
    fact(row('added → polled, p50', add, 0.5)),
    fact(row('longest', [...pause, ...add], 1)),
  ];
}

function between(least, most) {
  return least + Math.random() * (most - least);
}
