import { randomBytes, randomUUID } from 'node:crypto';
import { hashMember, hashTarget } from '../../dist/fleet/plan/hash.js';
import { plan } from '../../dist/fleet/plan/plan.js';
import { OURS } from '../contenders.mjs';
import { ringOwners, seedsOwners } from '../fleet-rivals.mjs';
import { deviceId } from '../fleet-tasks.mjs';
import { absolute, fact } from '../report.mjs';
import { median, monotonicMs } from '../statistics.mjs';

const SIZES = [
  { targets: 10_000, members: 20, atMostMs: 20 },
  { targets: 100_000, members: 100, atMostMs: 300 },
];
const IDS = { devices: deviceId, UUIDs: () => randomUUID() };
const SEEDS = "the seeds' formula";
const RING = 'a ring';

/** Who should own what: how long it takes to say, how even it is, and how much moves when a member joins or leaves. */
export const fleetPlan = { name: 'plan', run };

async function run(bench) {
  const rows = [];
  for (const size of SIZES)
    for (const [kind, idOf] of Object.entries(IDS)) {
      const label = `${size.targets.toLocaleString('en-US')} × ${size.members}, ${kind}`;
      bench.progress(fleetPlan.name, label);
      rows.push(...measureSize(bench.plan, size, idOf, label));
    }
  return rows;
}

function measureSize({ planRounds }, size, idOf, label) {
  const members = Array.from({ length: size.members + 1 }, (_, i) => memberOf(i));
  const hashStartMs = monotonicMs();
  const targets = Array.from({ length: size.targets }, (_, i) => targetOf(idOf(i)));
  const hashingMs = monotonicMs() - hashStartMs;
  const ours = measureOurs(members, targets, planRounds);
  const schemes = {
    [OURS.name]: ours,
    [SEEDS]: measureRival(seedsOwners, members, targets),
    [RING]: measureRival(ringOwners, members, targets),
  };
  const row = (measure, unit, pick) => {
    const figures = Object.fromEntries(
      Object.entries(schemes).map(([name, scheme]) => [name, pick(scheme)]),
    );
    return { requirement: 'P-01', measure: `plan ${label}: ${measure}`, unit, figures };
  };
  const alone = (measure, unit, figure) => ({
    ...row(measure, unit, () => 0),
    figures: { [OURS.name]: figure },
  });
  return [
    absolute({ ...row('slower of both', 'ms', ({ tookMs }) => tookMs), atMost: size.atMostMs }),
    fact(alone('from nothing', 'ms', ours.freshMs)),
    fact(alone('with owners, on a join', 'ms', ours.joinMs)),
    fact(alone('all ids and hashes once, before', 'ms', hashingMs)),
    fact(alone("time, × the seeds' formula", '×', ours.tookMs / schemes[SEEDS].tookMs)),
    absolute({ ...row('members off floor/ceil', 'members', ({ off }) => off), atMost: 0 }),
    fact(row('busiest, of ideal', '×', ({ busiest }) => busiest)),
    fact(row('idlest, of ideal', '×', ({ idlest }) => idlest)),
    absolute({ ...row('moves on a join, of least', '×', ({ join }) => join), atMost: 1.05 }),
    absolute({ ...row('moves on a leave, of least', '×', ({ leave }) => leave), atMost: 1.05 }),
  ];
}

function memberOf(i) {
  const id = `api-${i % 7}-${1_794_735_731_650_762_000n + BigInt(i) * 1_234_567n}-${randomBytes(4).toString('hex')}`;
  return { ...hashMember(id), weight: 1, isDraining: false, isForeign: false };
}

function targetOf(id) {
  return { ...hashTarget(id), owner: null };
}

/** All members but the last are there; on a join it comes, on a leave the one before it goes. */
function measureOurs(all, targets, rounds) {
  const [members, fewer] = [all.slice(0, -1), all.slice(0, -2)];
  const { planned } = plan(members, targets);
  const owned = targets.map((target, t) => ({ ...target, owner: members[planned[t]].id }));
  const fresh = warm(rounds, () => plan(members, targets));
  const join = warm(rounds, () => plan(all, owned));
  const leave = plan(fewer, owned);
  return {
    tookMs: Math.max(fresh.tookMs, join.tookMs),
    freshMs: fresh.tookMs,
    joinMs: join.tookMs,
    ...evenness(
      [planned, members.length],
      [join.result.planned, all.length],
      [leave.planned, fewer.length],
    ),
    ...churn(all, planned, join.result.planned, leave.planned),
  };
}

/** Some of these take seconds, so the three plans that are needed are the rounds. */
function measureRival(ownersOf, all, targets) {
  const [before, joined, left] = [all.slice(0, -1), all, all.slice(0, -2)].map((members) =>
    timed(() => ownersOf(members, targets)),
  );
  return {
    tookMs: median([before, joined, left].map(({ tookMs }) => tookMs)),
    ...evenness([before.result, all.length - 1]),
    ...churn(all, before.result, joined.result, left.result),
  };
}

/** The median of so many rounds; the one before them warms up. */
function warm(rounds, work) {
  const all = Array.from({ length: rounds + 1 }, () => timed(work));
  const warmed = all.slice(1);
  return {
    tookMs: median(warmed.map(({ tookMs }) => tookMs)),
    result: all[0].result,
  };
}

function timed(work) {
  const startMs = monotonicMs();
  const result = work();
  return { tookMs: monotonicMs() - startMs, result };
}

/** The worst of all plans given, each with its number of members. */
function evenness(...plans) {
  let [off, busiest, idlest] = [0, 0, Number.POSITIVE_INFINITY];
  for (const [owners, count] of plans) {
    const loads = loadsOf(owners, count);
    const ideal = owners.length / count;
    off += loads.filter((load) => load < Math.floor(ideal) || load > Math.ceil(ideal)).length;
    busiest = Math.max(busiest, ...loads.map((load) => load / ideal));
    idlest = Math.min(idlest, ...loads.map((load) => load / ideal));
  }
  return { off, busiest, idlest };
}

/** What moves, in multiples of what has to: the newcomer's share on a join, what the leaver had on a leave. */
function churn(all, before, joined, left) {
  const leaver = all.length - 2;
  const leaverHad = loadsOf(before, all.length)[leaver];
  const moves = (after) => before.reduce((sum, owner, t) => sum + (owner === after[t] ? 0 : 1), 0);
  return {
    join: moves(joined) / Math.floor(before.length / all.length),
    // Where it had nothing, nothing had to move.
    leave: leaverHad === 0 ? 1 + moves(left) : moves(left) / leaverHad,
  };
}

function loadsOf(owners, count) {
  const loads = new Array(count).fill(0);
  for (const owner of owners) loads[owner]++;
  return loads;
}
