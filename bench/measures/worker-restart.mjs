import { OURS } from '../contenders.mjs';
import { absolute, fact } from '../report.mjs';
import { monotonicMs } from '../statistics.mjs';

const SLOTS = 4;
const OPTIONS = { name: 'box', resources: { tuners: { slots: SLOTS, wait: '1m' } } };
const COMMAND = ['sleep', '1000'];

/**
 * A worker with commands on all of its slots is killed with -9 and started again under its name: from the start of the process until
 * new starts run on slots of the dead one, and the sessions of the dead one continue.
 */
export const workerRestart = { name: 'killed and restarted → its slots usable', run };

async function run(bench) {
  return [
    ...rowsOf('Redis', await bench.onRedis((store) => rounds(bench, store))),
    ...rowsOf('SQLite', await bench.onSqlite((store) => rounds(bench, store))),
  ];
}

/** The longest counts. */
function rowsOf(where, all) {
  const row = (what, pick) => ({
    requirement: 'I-12',
    measure: `${workerRestart.name}, ${where}, ${what}`,
    unit: 'ms',
    figures: { [OURS.name]: Math.max(...all.map(pick)) },
  });
  return [
    absolute({ ...row('from process start', ({ newMs }) => newMs), atMost: 3_000 }),
    fact(row('worker started', ({ readyMs }) => readyMs)),
    fact(row('its old sessions continue', ({ oldMs }) => oldMs)),
  ];
}

async function rounds(bench, { url }) {
  const asking = await bench.instance(url);
  const results = [];
  for (let round = 0; round < bench.plan.restarts; round++) {
    bench.progress(workerRestart.name, `${url.split(':')[0]}, round ${round}`);
    results.push(await restart(bench, asking, { url, round }));
  }
  return results;
}

/** Half of what it ran is stopped while it is dead, and as much started again: that has to have the slots of the other. */
async function restart(bench, asking, { url, round }) {
  const refs = (of, count) => Array.from({ length: count }, (_, n) => `${of}-${round}-${n}`);
  const dead = await bench.instance(url);
  const deadId = await dead.ask('open');
  await dead.ask('work', { options: OPTIONS, command: COMMAND });
  const ids = await asking.ask('submit', { refs: refs('old', SLOTS) });
  const { workers } = await asking.ask('untilState', { ids, state: 'RUNNING' });
  if (workers.some((worker) => worker !== deadId))
    throw new Error('another worker runs sessions, too');
  await dead.stop();
  const [stopped, kept] = [ids.slice(0, SLOTS / 2), ids.slice(SLOTS / 2)];
  await asking.ask('stopSessions', { ids: stopped });
  const anew = await asking.ask('submit', { refs: refs('new', SLOTS / 2) });
  const startMs = monotonicMs();
  const alive = await bench.instance(url);
  await alive.ask('work', { options: OPTIONS, command: COMMAND });
  const readyMs = monotonicMs() - startMs;
  const { atMs } = await asking.ask('untilState', { ids: anew, state: 'RUNNING' });
  const oldMs = await goesOn(asking, kept, deadId);
  // So that the next round finds nothing of this one.
  const all = [...kept, ...anew];
  await asking.ask('stopSessions', { ids: all });
  await asking.ask('untilState', { ids: [...stopped, ...all], state: 'ENDED' });
  await alive.ask('stopWorking');
  await alive.stop();
  return { newMs: atMs - startMs, readyMs, oldMs: oldMs - startMs };
}

async function goesOn(asking, ids, deadId) {
  for (;;) {
    const { atMs, workers } = await asking.ask('untilState', { ids, state: 'RUNNING' });
    if (!workers.includes(deadId)) return atMs;
  }
}
