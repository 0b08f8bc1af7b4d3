import { afterAll, beforeAll, describe, it } from 'vitest';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { storeConformance } from '../../testing/conformance/conformance.ts';
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts';
import { type RedisSentinels, startSentinels } from '../support/redis-sentinel.ts';

let sentinels: RedisSentinels;
let cluster: RedisCluster;
beforeAll(async () => {
  // Nothing fails here on purpose: on a busy machine servers that are silent for a second are not to be taken for dead.
  const patient = { replicas: 0, args: ['--cluster-node-timeout', '15000'] };
  const watched = startSentinels({ downAfterMs: 15_000 });
  [sentinels, cluster] = await Promise.all([watched, startCluster(patient)]);
}, 60_000);
afterAll(() => Promise.all([sentinels.stop(), cluster.stop()]));

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const conforms = (name: string, url: () => string, prefix = '') =>
  storeConformance(
    `${name} conforms`,
    {
      open: async () => {
        const store = await openRedisStore(url(), { quarantine: 'off', prefix });
        return { store, elapse: wait, dispose: () => store.close() };
      },
    },
    { describe, it: it.concurrent },
  );

conforms('Redis behind sentinels', () => sentinels.url());
conforms('a Redis Cluster', () => cluster.url);
conforms('a Redis Cluster where all keys share a slot', () => cluster.url, '{team}:');
