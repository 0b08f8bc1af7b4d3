// How fast is the store on PostgreSQL, next to what people write by hand, and to two job queues? `--help` has the rest.
import { Bench } from './bench.mjs';
import {
  postgresGuard,
  postgresHandover,
  postgresLatency,
  postgresPairs,
  postgresRenewals,
} from './measures/postgres-leases.mjs';
import { postgresJobs, postgresStart, postgresThroughput } from './measures/postgres-work.mjs';
import { startPostgres } from './postgres-server.mjs';
import { ProcessBench } from './process-bench.mjs';
import { runBench } from './run-bench.mjs';

const full = {
  rounds: 7,
  /** No further round of a measure begins after this. */
  budgetMs: 25_000,
  pairs: 16_384,
  latencyPairs: 500,
  intervals: 10,
  handovers: 300,
  guards: 1_000,
  starts: 1_000,
  workRounds: 5,
  actions: 40,
  jobRounds: 5,
  jobMs: 6_000,
};
const quick = {
  rounds: 3,
  budgetMs: 5_000,
  pairs: 8_192,
  latencyPairs: 200,
  intervals: 4,
  handovers: 100,
  guards: 300,
  starts: 200,
  workRounds: 2,
  actions: 40,
  jobRounds: 2,
  jobMs: 2_000,
};

await runBench({
  file: 'postgres.mjs',
  about: `Measures leases, guard, workflows and jobs on one PostgreSQL of its own, from Debian's package, with its default
settings and its data on a disk: next to a table of locks over pg with one statement per lock, to pg-boss and to
graphile-worker, in interleaved rounds. Takes about five minutes, quick about one and a half. Build first, or use
npm run bench:postgres.`,
  measures: [
    postgresPairs(64, 15_000),
    postgresPairs(256, 25_000),
    postgresLatency,
    postgresRenewals,
    postgresHandover,
    postgresGuard,
    postgresStart,
    postgresThroughput,
    postgresJobs,
  ],
  full,
  quick,
  deadlineMs: 900_000,
  start: async (plan, progress) => {
    const { url, version, sql, stop } = await startPostgres();
    const leases = new Bench({ redis: { url }, plan, progress });
    const work = new ProcessBench({ plan, progress, file: './workflow-process.mjs' });
    const reset = () => Promise.all([leases.stop(), work.reset()]);
    return {
      bench: { leases, work, sql, url, plan, progress },
      facts: `PostgreSQL ${version}`,
      reset,
      stop: async () => {
        await reset();
        await stop();
      },
    };
  },
});
