import { BY_HAND, OURS } from '../contenders.mjs';
import { absolute, fact, versus } from '../report.mjs';
import { median, quantile } from '../statistics.mjs';
import { handOver } from './handover.mjs';

const LEASES = 10_000;
const EVERY_MS = 2_000;
const DAY_MS = 86_400_000;
/** A TTL of 30 s is renewed this often. */
const RENEW_EVERY_MS = 10_000;

/** Many callers in one process, each with keys of its own, beside one statement per lock. */
export function postgresPairs(callers, atLeast) {
  const name = `acquire + release, ${callers} callers`;
  return { name, run: (bench) => measurePairs(bench.leases, { name, callers, atLeast }) };
}

async function measurePairs(bench, { name, callers, atLeast }) {
  const members = await bench.crew([OURS, BY_HAND]);
  const results = await bench.race(name, members, (member) =>
    member.ask('pairs', { callers, count: bench.plan.pairs }),
  );
  const figures = (pick) => mediansOf(results, (rounds) => rounds.map(pick));
  const perSecond = figures((round) => round.perSecond);
  const row = { requirement: 'K-01', measure: name, unit: 'pairs/s', figures: perSecond };
  const cpu = { measure: `client CPU per pair, ${callers} callers`, unit: 'µs' };
  const against = `${name}, against one statement per lock`;
  return [
    absolute({ ...row, atLeast }),
    versus({ ...row, measure: against, rivals: [BY_HAND.name], atLeast: 5 }),
    fact({ requirement: 'K-01', ...cpu, figures: figures((round) => round.cpuUs) }),
  ];
}

function mediansOf(results, pick) {
  return Object.fromEntries([...results].map(([{ name }, all]) => [name, median(pick(all))]));
}

/** One pair after the other: what stands between a caller and two bare transactions? */
export const postgresLatency = { name: 'acquire + release, one caller, p50', run: measureLatency };

async function measureLatency({ leases: bench }) {
  const members = await bench.crew([OURS, BY_HAND]);
  const results = await bench.race(postgresLatency.name, members, (member) =>
    member.ask('latency', { count: bench.plan.latencyPairs }),
  );
  const figures = mediansOf(results, (rounds) => rounds);
  const row = { requirement: 'K-01', measure: postgresLatency.name, unit: 'µs', figures };
  return [versus({ ...row, rivals: [BY_HAND.name], atMost: 1.3 })];
}

/** Everything one process holds, renewed once, and what that writes. */
export const postgresRenewals = { name: 'renewing 10,000 leases', run: measureRenewals };

async function measureRenewals({ leases: bench, sql }) {
  bench.progress(postgresRenewals.name, 'taking them');
  const member = await bench.open(OURS);
  const walBytes = async () => Number(await sql(`SELECT pg_current_wal_lsn() - '0/0'`));
  try {
    const updateBytes = await rowUpdate(sql, walBytes);
    await member.ask('keep', { kind: 'kept', count: LEASES, everyMs: EVERY_MS });
    // The first change of a page after a checkpoint writes all of it.
    for (let i = 0; i < 3; i++) await member.ask('renew');
    bench.progress(postgresRenewals.name, 'renewing them');
    const took = [];
    const wal = [];
    for (let i = 0; i < bench.plan.intervals; i++) {
      const before = await walBytes();
      took.push((await member.ask('renew')).ms);
      wal.push((await walBytes()) - before);
    }
    // A round may see the end of the renewal before it, or the beginning of the next one.
    const perRenewal = median(wal) / LEASES;
    const row = { requirement: 'B-25', figures: { [OURS.name]: median(took) } };
    const perDay = (perRenewal * (DAY_MS / RENEW_EVERY_MS)) / 1_000;
    const bytes = { [OURS.name]: perRenewal, 'one row update': updateBytes };
    const wrote = { requirement: 'B-25', measure: 'WAL per renewal', unit: 'bytes' };
    return [
      absolute({ ...row, measure: postgresRenewals.name, unit: 'ms', atMost: 5 }),
      fact({
        requirement: 'B-25',
        measure: 'WAL per held lease and day, TTL 30 s',
        unit: 'kB',
        figures: { [OURS.name]: perDay },
      }),
      versus({ ...wrote, figures: bytes, rivals: ['one row update'], atMost: 0.01 }),
    ];
  } finally {
    await member.stop();
  }
}

/** What a transaction writes that updates one row, as a renewal by hand does. */
async function rowUpdate(sql, walBytes) {
  await sql('CREATE TABLE one_row (key text PRIMARY KEY, until timestamptz)');
  await sql(`INSERT INTO one_row VALUES ('lease', now())`);
  const took = [];
  for (let i = 0; i < 30; i++) {
    const before = await walBytes();
    await sql('UPDATE one_row SET until = clock_timestamp()');
    took.push((await walBytes()) - before);
  }
  return median(took);
}

/** From the call of release() in one process until a waiter in another one holds the key. */
export const postgresHandover = { name: 'release → held elsewhere', run: measureHandover };

async function measureHandover({ leases: bench }) {
  bench.progress(postgresHandover.name, 'to and fro');
  const took = await handOver(bench, OURS, bench.plan.handovers);
  const at = (share) => ({ [OURS.name]: quantile(took, share) });
  const row = { requirement: 'K-10', unit: 'ms' };
  return [
    absolute({ ...row, measure: `${postgresHandover.name}, p50`, figures: at(0.5), atMost: 5 }),
    absolute({ ...row, measure: `${postgresHandover.name}, p95`, figures: at(0.95), atMost: 15 }),
  ];
}

/** One statement in a transaction of the user. */
export const postgresGuard = { name: 'guard inside a transaction, p50', run: measureGuard };

async function measureGuard({ leases: bench }) {
  bench.progress(postgresGuard.name, 'transactions');
  const member = await bench.open(OURS);
  try {
    const figures = { [OURS.name]: await member.ask('guards', { count: bench.plan.guards }) };
    const row = { requirement: 'B-22', measure: postgresGuard.name, unit: 'ms', figures };
    return [absolute({ ...row, atMost: 0.3 })];
  } finally {
    await member.stop();
  }
}
