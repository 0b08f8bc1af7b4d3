// How fast are workflows, and what do they cost while nothing happens? `--help` has the rest.
import { workflowEmit } from './measures/workflow-emit.mjs';
import { workflowCalls, workflowSleeping } from './measures/workflow-functions.mjs';
import { workflowIdle } from './measures/workflow-idle.mjs';
import { workflowStart } from './measures/workflow-start.mjs';
import { workflowSteps, workflowThroughput } from './measures/workflow-throughput.mjs';
import { onRedisServers } from './process-bench.mjs';
import { runBench } from './run-bench.mjs';

const full = {
  emitRounds: 21,
  starts: 1_000,
  rounds: 7,
  /** Per workflow and round. */
  actions: 200,
  stepsMs: 5_000,
  /** The default TTL: renewed every 240 s, or up to a tenth sooner. */
  idleTtlMs: 300_000,
  sleepers: 100_000,
};
const quick = {
  emitRounds: 7,
  starts: 200,
  rounds: 3,
  actions: 100,
  stepsMs: 2_000,
  idleTtlMs: 30_000,
  sleepers: 5_000,
};

await runBench({
  file: 'workflows.mjs',
  about: `Measures orchestrators and processors in processes of their own, on Redis servers and files of their own: what it
takes to emit an action next to a bare XADD over the same client, how soon its handler starts in another process, how many
actions one processor gets done next to a consumer group written by hand, what calls and steps of a function cost, what
sleeping workflows cost, and what 10,000 workflows ask of Redis while nothing happens. redis-server has to be on the PATH. Takes about six minutes, nearly five of them for the last, which
waits for one renewal at the default TTL; quick uses a tenth of that TTL and takes about one. Build first, or use npm run
bench:workflows.`,
  measures: [
    workflowEmit,
    workflowStart,
    workflowThroughput,
    workflowSteps,
    workflowCalls,
    workflowSleeping,
    workflowIdle,
  ],
  full,
  quick,
  deadlineMs: 900_000,
  start: onRedisServers('./workflow-process.mjs'),
});
