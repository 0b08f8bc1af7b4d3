import { setTimeout as sleep } from 'node:timers/promises';
import { OURS } from '../contenders.mjs';
import { untilEven } from '../process-bench.mjs';
import { absolute, fact } from '../report.mjs';
import { median, quantile } from '../statistics.mjs';

const TARGETS = 1_000;
/** There is always a poll under way: the next one begins when one has ended. */
const FACTS = {
  count: TARGETS,
  pollMs: [200, 400],
  options: { every: '100ms', concurrency: TARGETS, results: 'off' },
};
/** After this time all polls run, each at a phase of its own. */
const MIX_MS = 500;

/** One of three stops: per target, from the end of its last poll there until another holds its lease. */
export const fleetStop = { name: 'graceful stop of one of three, 1,000 targets', run: runStop };

async function runStop(bench) {
  const gaps = [];
  await shuffle(bench, fleetStop.name, {
    onStop: ({ giver, stayed }) => gaps.push(gapsOf([giver], stayed, giver.askedAtMs)),
  });
  return rowsOf('US1.3', fleetStop.name, gaps, 100);
}

/** A third joins two: the same, per target that moves. */
export const fleetJoin = { name: 'join of a third, 1,000 targets', run: runJoin };

async function runJoin(bench) {
  const gaps = [];
  await shuffle(bench, fleetJoin.name, {
    onJoin: ({ givers, joined }) => gaps.push(gapsOf(givers, [joined], 0)),
  });
  return rowsOf('US1.2', fleetJoin.name, gaps, 50);
}

/** To two instances a third comes, and the first of the three stops, and so on. Tells what happened in each of them. */
function shuffle(bench, name, { onJoin = () => {}, onStop = () => {} }) {
  const { moveRounds } = bench.plan;
  return bench.onRedis(async ({ url }) => {
    const members = [await bench.member(url, FACTS), await bench.member(url, FACTS)];
    await untilEven(members, TARGETS);
    for (let round = 1; round <= moveRounds; round++) {
      bench.progress(name, `round ${round} of ${moveRounds}`);
      await mixed(members);
      const joining = await bench.member(url, FACTS);
      await untilEven([...members, joining], TARGETS);
      const [joined, ...givers] = await happened([joining, ...members]);
      onJoin({ givers, joined });
      members.push(joining);
      await mixed(members);
      const leaver = members.shift();
      const giver = await leaver.ask('stop');
      await untilEven(members, TARGETS);
      onStop({ giver, stayed: await happened(members) });
      await leaver.stop();
    }
  });
}

async function mixed(members) {
  await sleep(MIX_MS);
  // What was noted until now is of no interest.
  await happened(members);
}

function happened(members) {
  return Promise.all(members.map((member) => member.ask('happened')));
}

/** Per target that a receiver acquired: how long after its last poll at a giver, and whether that ended after `sinceMs`. */
function gapsOf(givers, receivers, sinceMs) {
  const settledAtMs = new Map(givers.flatMap(({ settled }) => settled));
  return receivers.flatMap(({ acquired }) =>
    acquired.map(([id, atMs]) => {
      const settledMs = settledAtMs.get(id);
      if (settledMs === undefined) throw new Error(`${id} was not polled before it moved`);
      return { ms: atMs - settledMs, isUnderWay: settledMs > sinceMs };
    }),
  );
}

function rowsOf(requirement, name, rounds, atMost) {
  const gaps = rounds.flat();
  const longestMs = Math.max(...gaps.map(({ ms }) => ms));
  const shortestMs = Math.min(...gaps.map(({ ms }) => ms));
  // An instance held a target that another was still polling.
  if (shortestMs < 0) throw new Error(`a gap of ${shortestMs} ms`);
  const row = (measure, unit, figure) => ({
    requirement,
    measure: `${name}: ${measure}`,
    unit,
    figures: { [OURS.name]: figure },
  });
  const at = (share, some) =>
    quantile(
      some.map(({ ms }) => ms),
      share,
    );
  const p99Ms = rounds.map((round) => at(0.99, round));
  const underWay = gaps.filter(({ isUnderWay }) => isUnderWay).length / gaps.length;
  const barred = row('last poll settled → held elsewhere, p99', 'ms', at(0.99, gaps));
  return [
    absolute({ ...barred, atMost }),
    // Far apart: something else on the machine kept a process waiting in one of the rounds.
    fact(row('p99 of the median round', 'ms', median(p99Ms))),
    fact(row('p99 of the worst round', 'ms', Math.max(...p99Ms))),
    fact(row('p50', 'ms', at(0.5, gaps))),
    fact(row('longest', 'ms', longestMs)),
    fact(row('moved', 'targets', gaps.length)),
    fact(row('of them polled while they were asked for', '%', underWay * 100)),
  ];
}
