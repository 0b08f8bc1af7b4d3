import { afterAll, beforeAll, describe, it } from 'vitest';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { storeConformance } from '../../src/testing/conformance.ts';
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts';
import { type RedisSentinels, startSentinels } from '../support/redis-sentinel.ts';

let sentinels: RedisSentinels;
let cluster: RedisCluster;
beforeAll(async () => {
  [sentinels, cluster] = await Promise.all([startSentinels(), startCluster({ replicas: 0 })]);
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
