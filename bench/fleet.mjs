// How well does a fleet share its targets out, and what does it cost? `--help` has the rest.
import { fleetCrash } from './measures/fleet-crash.mjs';
import { fleetLarge } from './measures/fleet-large.mjs';
import { fleetJoin, fleetStop } from './measures/fleet-moves.mjs';
import { fleetPlan } from './measures/fleet-plan.mjs';
import { fleetRun } from './measures/fleet-run.mjs';
import { fleetSessions } from './measures/fleet-sessions.mjs';
import { fleetResults, fleetSteady } from './measures/fleet-steady.mjs';
import { onRedisServers } from './process-bench.mjs';
import { runBench } from './run-bench.mjs';

const full = {
  planRounds: 15,
  moveRounds: 7,
  kills: 6,
  /** The default: renewed every 10 s. */
  ttlMs: 30_000,
  intervals: 3,
  resultsMs: 10_000,
  largeMs: 300_000,
  changes: 100,
};
const quick = {
  planRounds: 5,
  moveRounds: 2,
  kills: 2,
  ttlMs: 4_500,
  intervals: 3,
  resultsMs: 3_000,
  largeMs: 20_000,
  changes: 15,
};

await runBench({
  file: 'fleet.mjs',
  about: `Measures the plan next to the seeds' formula and a consistent ring of 100 points, and a fleet of real processes on
Redis servers and files of its own: what a stop, a join and a crash cost each target, what steady state asks of Redis,
what 10,000 running tasks and one instance with 50,000 targets take. redis-server has to be on the PATH. Takes under twelve minutes, five of
them for the last; quick about one and a half. Build first, or use npm run bench:fleet.`,
  measures: [
    fleetPlan,
    fleetStop,
    fleetJoin,
    fleetCrash,
    fleetSteady,
    fleetResults,
    fleetRun,
    fleetSessions,
    fleetLarge,
  ],
  full,
  quick,
  deadlineMs: 900_000,
  start: onRedisServers('./fleet-instance.mjs'),
});
