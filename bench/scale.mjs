// Ten times as much of everything: what bends first? `--help` has the rest.
import { scaleCluster } from './measures/scale-cluster.mjs';
import { scaleLeases } from './measures/scale-leases.mjs';
import { scaleMembers } from './measures/scale-members.mjs';
import { scalePlan } from './measures/scale-plan.mjs';
import { scaleSessions, scaleWorkflows } from './measures/scale-work.mjs';
import { onRedisServers } from './process-bench.mjs';
import { runBench } from './run-bench.mjs';

const full = {
  leases: [1_000, 10_000, 100_000, 1_000_000],
  /** Three renewals of each lease at the default TTL. */
  watchMs: 30_000,
  targets: [1_000, 10_000, 100_000, 1_000_000],
  lookedAt: [1_000, 10_000, 100_000],
  members: [10, 100, 1_000],
  kept: [1_000, 10_000, 100_000],
  pairs: 50_000,
};
const quick = {
  leases: [1_000, 10_000, 100_000],
  watchMs: 12_000,
  targets: [1_000, 10_000, 100_000],
  lookedAt: [1_000, 10_000],
  members: [10, 100],
  kept: [1_000, 10_000],
  pairs: 10_000,
};

await runBench({
  file: 'scale.mjs',
  about: `Measures leases that are held, targets, members, workflows and sessions, each with ten times as much again: what one
more costs, in time, in memory and in Redis' processor time. Every measure has a redis-server of its own, which has to be
on the PATH. Takes about six minutes and 2 GB, quick about one. Build first, or use npm run bench:scale.`,
  measures: [scaleLeases, scalePlan, scaleMembers, scaleWorkflows, scaleSessions, scaleCluster],
  full,
  quick,
  deadlineMs: 1_200_000,
  start: onRedisServers('./scale-process.mjs'),
});
