import { OURS } from '../contenders.mjs';
import { absolute, fact } from '../report.mjs';
import { median } from '../statistics.mjs';

const SESSIONS = 200;
const COMMANDS = 50;

/** A worker with many sessions is told to stop: from the end of the last pipeline until the last lease is free. */
export const workerStop = { name: `graceful stop of a worker with ${SESSIONS} sessions`, run };

async function run(bench) {
  return [
    ...rowsOf('Redis', await bench.onRedis((store) => rounds(bench, store))),
    ...rowsOf('SQLite', await bench.onSqlite((store) => rounds(bench, store))),
  ];
}

function rowsOf(where, { functions, commands }) {
  const row = (name, what, all) => ({
    requirement: 'K-08',
    measure: `${name}, ${where}, ${what}`,
    unit: 'ms',
    figures: { [OURS.name]: median(all) },
  });
  const { name } = workerStop;
  const freedMs = functions.map(({ lastEndMs, lastReleaseMs }) => lastReleaseMs - lastEndMs);
  const wholeMs = functions.map(({ askedAtMs, doneAtMs }) => doneAtMs - askedAtMs);
  const ofCommands = commands.map(({ askedAtMs, lastReleaseMs }) => lastReleaseMs - askedAtMs);
  const withCommands = `graceful stop of a worker with ${COMMANDS} commands`;
  return [
    absolute({ ...row(name, 'pipelines ended → leases free', freedMs), atMost: 1_000 }),
    fact(row(name, 'all of it', wholeMs)),
    fact(row(withCommands, 'until leases are free', ofCommands)),
  ];
}

async function rounds(bench, store) {
  const results = { functions: [], commands: [] };
  for (let round = 0; round < bench.plan.stops; round++) {
    bench.progress(workerStop.name, `${store.url.split(':')[0]}, round ${round}`);
    const which = (kind) => `${kind}-${round}`;
    results.functions.push(await stop(bench, store, { of: which('function'), count: SESSIONS }));
    const command = { command: ['sleep', '1000'], count: COMMANDS };
    results.commands.push(await stop(bench, store, { of: which('command'), ...command }));
  }
  return results;
}

async function stop(bench, { url }, { of, count, command }) {
  const [asking, working] = [await bench.instance(url), await bench.instance(url)];
  await working.ask('work', { options: { resources: { tuners: SESSIONS } }, command });
  const refs = Array.from({ length: count }, (_, n) => `${of}-${n}`);
  const ids = await asking.ask('submit', { refs });
  await asking.ask('untilState', { ids, state: 'RUNNING' });
  const held = await asking.ask('leases');
  const expected = 2 * count;
  if (held.length < expected) throw new Error(`${held.length} leases of ${expected} are held`);
  const result = await working.ask('stopWorking');
  const left = await asking.ask('leases');
  if (left.length > 0) throw new Error(`${left.length} leases are left: ${left.slice(0, 5)}`);
  // Nobody continues with them.
  await asking.ask('stopSessions', { ids });
  await working.ask('work', { options: { resources: { tuners: SESSIONS } } });
  await asking.ask('untilState', { ids, state: 'ENDED' });
  await Promise.all([asking.stop(), working.stop()]);
  return result;
}
