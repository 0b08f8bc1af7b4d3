// How fast are leases, next to the libraries people use instead, and next to bare Redis? `--help` has the rest.
import { Bench } from './bench.mjs';
import { freeze } from './measures/freeze.mjs';
import { handover } from './measures/handover.mjs';
import { checks, heap } from './measures/holding.mjs';
import { latency } from './measures/latency.mjs';
import { pairs } from './measures/pairs.mjs';
import { renewals } from './measures/renewals.mjs';
import { PLACED, placement } from './placement.mjs';
import { startRedis } from './redis.mjs';
import { runBench } from './run-bench.mjs';

const measures = [pairs(64, 1.5), pairs(256, 2), latency, renewals, handover, freeze, checks, heap];

const full = {
  rounds: 7,
  /** No further round of a measure begins after this. */
  budgetMs: 25_000,
  pairs: 16_384,
  latencyPairs: 500,
  latencyRounds: 41,
  /** So many locks a peer is tried to extend at a time; then it does it the way that came out best. */
  lanes: [64, 256, 256, 1_024],
  /** How often ours are renewed per round, first uncounted and then counted. */
  settlingIntervals: 3,
  intervals: 3,
  handovers: 300,
  peerHandovers: 30,
  watchMs: 9_000,
};
const quick = {
  rounds: 3,
  budgetMs: 5_000,
  pairs: 8_192,
  latencyPairs: 300,
  latencyRounds: 15,
  lanes: [256],
  settlingIntervals: 1,
  intervals: 1,
  handovers: 200,
  peerHandovers: 10,
  watchMs: 5_000,
};

await runBench({
  file: 'leases.mjs',
  about: `Measures holdfast next to redlock, redis-semaphore, redlock-universal and bare Lua scripts, in interleaved
rounds on one redis-server of its own, which has to be on the PATH; takes about three minutes, quick under one.
Where there are two processors and taskset (util-linux), the contenders stay on one and Redis on the other; one caller
is measured with both on the same processor, too. Elsewhere nothing is pinned, and one caller's figures jump.
Build first, or use npm run bench:leases.`,
  measures,
  full,
  quick,
  start: async (plan, progress) => {
    const redis = await startRedis();
    const bench = new Bench({ redis, plan, progress, placement });
    return {
      bench,
      facts: `Redis ${redis.version}, ${PLACED}`,
      reset: () => bench.stop(),
      stop: async () => {
        await bench.stop();
        await redis.stop();
      },
    };
  },
});
