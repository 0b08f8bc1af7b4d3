// How soon does what was accepted run, and how soon is it free again? `--help` has the rest.
import { pool } from './measures/pool.mjs';
import { workerRestart } from './measures/worker-restart.mjs';
import { workerSlots } from './measures/worker-slots.mjs';
import { workerStart } from './measures/worker-start.mjs';
import { workerStop } from './measures/worker-stop.mjs';
import { workerThroughput } from './measures/worker-throughput.mjs';
import { onRedisServers } from './process-bench.mjs';
import { runBench } from './run-bench.mjs';

const full = {
  starts: 300,
  freed: 200,
  stops: 3,
  restarts: 5,
  throughputs: 5,
  rounds: 7,
  budgetMs: 20_000,
  slotPairs: 4_096,
  slotHandovers: 400,
};
const quick = {
  starts: 60,
  freed: 40,
  stops: 1,
  restarts: 1,
  throughputs: 2,
  rounds: 3,
  budgetMs: 5_000,
  slotPairs: 1_024,
  slotHandovers: 60,
};

await runBench({
  file: 'workers.mjs',
  about: `Measures workers in processes of their own, on Redis servers and files of their own: from the 202 that a client has until the
function of its session begins, from the end of one until what has waited for its slot runs, from the end of 200 until
their leases are free, and how soon the slots of a worker can be used that was killed and is started again. Pools beside
the counting semaphore of redis-semaphore. redis-server has to be on the PATH. Takes about three minutes, quick about one.
Build first, or use npm run bench:workers.`,
  measures: [workerStart, workerSlots, workerStop, workerRestart, workerThroughput, pool],
  full,
  quick,
  deadlineMs: 600_000,
  start: onRedisServers('./worker-process.mjs'),
});
