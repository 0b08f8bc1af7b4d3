// How fast are the stores, and what does the command line cost? `--help` has the rest.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Bench } from './bench.mjs';
import { clusterPairs } from './measures/cluster.mjs';
import { runOverhead } from './measures/run.mjs';
import { sqliteCrowd, sqliteHandover, sqlitePairs, sqliteRenewals } from './measures/sqlite.mjs';
import { sqliteSync } from './measures/sqlite-sync.mjs';
import { startCluster, startRedis } from './redis.mjs';
import { runBench } from './run-bench.mjs';

const full = {
  rounds: 7,
  budgetMs: 20_000,
  pairs: 16_384,
  crowdRounds: 3,
  crowdMs: 5_000,
  intervals: 10,
  handovers: 200,
  runs: 20,
  syncRounds: 3,
  syncMs: 3_000,
};
const quick = {
  rounds: 3,
  budgetMs: 5_000,
  pairs: 4_096,
  crowdRounds: 1,
  crowdMs: 3_000,
  intervals: 4,
  handovers: 50,
  runs: 5,
  syncRounds: 1,
  syncMs: 1_500,
};

await runBench({
  file: 'stores.mjs',
  about: `Measures the embedded store from one process and from several on one file, what waiting for the disk costs it, a Redis Cluster of three primaries
next to a single Redis, and what holdfast run adds to a command. Servers and files are its own; redis-server has to
be on the PATH. HOLDFAST_SQLITE_DRIVER=libsql measures that driver on a Node with its own SQLite. Takes about two minutes, quick about half of one. Build first, or use npm run bench:stores.`,
  measures: [
    sqlitePairs,
    sqliteCrowd,
    sqliteRenewals,
    sqliteHandover,
    sqliteSync,
    clusterPairs,
    runOverhead,
  ],
  full,
  quick,
  start: async (plan, progress) => {
    const dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
    const remove = () => rmSync(dir, { recursive: true, force: true });
    process.once('exit', remove);
    const [redis, cluster] = await Promise.all([startRedis(), startCluster()]);
    const urls = { SQLite: `sqlite:${join(dir, 'bench.db')}`, Redis: redis.url };
    const on = (url) => new Bench({ redis: { url }, plan, progress });
    const benches = { sqlite: on(urls.SQLite), single: on(redis.url), cluster: on(cluster.url) };
    const reset = () => Promise.all(Object.values(benches).map((bench) => bench.stop()));
    return {
      bench: { ...benches, urls, plan, progress },
      facts: `Redis ${redis.version}`,
      reset,
      stop: async () => {
        await reset();
        await Promise.all([redis.stop(), cluster.stop()]);
        remove();
      },
    };
  },
});
