import { OURS } from '../contenders.mjs';
import { absolute, fact } from '../report.mjs';
import { median, monotonicMs, quantile } from '../statistics.mjs';
import { handOver } from './handover.mjs';

const LEASES = 10_000;
const EVERY_MS = 500;
const PROCESSES = 4;
/** So that all processes are told before it begins. */
const HEAD_START_MS = 200;

const ours = (figure) => ({ [OURS.name]: figure });

/** One process on a file of its own. */
export const sqlitePairs = { name: 'SQLite: acquire + release, one process', run: measurePairs };

async function measurePairs(bench) {
  const rows = [];
  for (const callers of [1, 64]) {
    const [member] = await bench.sqlite.crew([OURS]);
    const results = await bench.sqlite.race(sqlitePairs.name, [member], () =>
      member.ask('pairs', { callers, count: bench.plan.pairs }),
    );
    const perSecond = median(results.get(member).map((round) => round.perSecond));
    const who = callers === 1 ? 'one caller' : `${callers} callers`;
    const measure = `${sqlitePairs.name}, ${who}`;
    const row = { requirement: 'K-01', measure, unit: 'pairs/s', figures: ours(perSecond) };
    rows.push(absolute({ ...row, atLeast: 3_000 }));
  }
  return rows;
}

/** Several processes on one file: nobody starves. */
export const sqliteCrowd = {
  name: `SQLite: acquire + release, ${PROCESSES} processes on one file`,
  run: measureCrowd,
};

async function measureCrowd(bench) {
  const shares = [];
  const totals = [];
  const p99s = [];
  for (let round = 1; round <= bench.plan.crowdRounds; round++) {
    bench.progress(sqliteCrowd.name, `round ${round} of ${bench.plan.crowdRounds}`);
    const all = await hammer(bench, bench.plan.crowdMs);
    const total = all.reduce((sum, { pairs }) => sum + pairs, 0);
    totals.push((total / bench.plan.crowdMs) * 1_000);
    shares.push(Math.min(...all.map(({ pairs }) => pairs)) / total);
    p99s.push(Math.max(...all.map(({ p99Ms }) => p99Ms)));
  }
  const row = (measure, unit, figure) => {
    return {
      requirement: 'K-01',
      measure: `${sqliteCrowd.name}, ${measure}`,
      unit,
      figures: ours(figure),
    };
  };
  return [
    absolute({ ...row('share of the slowest', 'of all', Math.min(...shares)), atLeast: 1 / 8 }),
    fact(row('together', 'pairs/s', median(totals))),
    fact(row('p99 of the slowest', 'ms', median(p99s))),
  ];
}

async function hammer(bench, forMs) {
  const members = await Promise.all(
    Array.from({ length: PROCESSES }, () => bench.sqlite.open(OURS)),
  );
  try {
    const startMs = monotonicMs() + HEAD_START_MS;
    return await Promise.all(
      members.map((member, who) => member.ask('hammer', { callers: 4, who, startMs, forMs })),
    );
  } finally {
    await Promise.all(members.map((member) => member.stop()));
  }
}

/** Everything one process holds, renewed: what does its event loop see of it? */
export const sqliteRenewals = { name: 'SQLite: renewing 10,000 leases', run: measureRenewals };

async function measureRenewals(bench) {
  bench.progress(sqliteRenewals.name, 'taking them');
  const member = await bench.sqlite.open(OURS);
  try {
    await member.ask('keep', { kind: 'kept', count: LEASES, everyMs: EVERY_MS });
    await member.ask('renew');
    bench.progress(sqliteRenewals.name, 'renewing them');
    const took = [];
    for (let i = 0; i < bench.plan.intervals; i++) took.push((await member.ask('renew')).ms);
    const worstMs = await member.ask('loopDelay', { intervals: bench.plan.intervals });
    const row = { requirement: 'K-03', unit: 'ms' };
    const blocked = `${sqliteRenewals.name}, longest block of the event loop`;
    return [
      absolute({ ...row, measure: blocked, figures: ours(worstMs), atMost: 15 }),
      fact({
        ...row,
        measure: `${sqliteRenewals.name}, all of them once`,
        figures: ours(median(took)),
      }),
    ];
  } finally {
    await member.stop();
  }
}

/** From the call of release() in one process until a waiter in another one holds the key. */
export const sqliteHandover = { name: 'SQLite: release → held elsewhere', run: measureHandover };

async function measureHandover(bench) {
  bench.progress(sqliteHandover.name, 'to and fro');
  const took = await handOver(bench.sqlite, OURS, bench.plan.handovers);
  const row = { requirement: 'K-10', unit: 'ms' };
  const at = (share) => ours(quantile(took, share));
  return [
    fact({ ...row, measure: `${sqliteHandover.name}, p50`, figures: at(0.5) }),
    absolute({ ...row, measure: `${sqliteHandover.name}, p95`, figures: at(0.95), atMost: 60 }),
  ];
}
