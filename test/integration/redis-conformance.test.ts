import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { createClient as createClient5 } from 'redis-5';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { storeConformance } from '../../testing/conformance/conformance.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** What may stand for the server, and how to be rid of it: our connections are our own, and theirs need not be open. */
const ways: Record<string, () => Parameters<typeof openRedisStore>[0]> = {
  'by its URL': () => redis.url,
  'through a client of node-redis 6': () => createClient({ url: redis.url }),
  'through a client of node-redis 5': () => createClient5({ url: redis.url }),
  'through a client of ioredis': () => new Redis(redis.url, { lazyConnect: true, keyPrefix: 'x:' }),
};

const conforms = (name: string, prefix: string, way: () => Parameters<typeof openRedisStore>[0]) =>
  storeConformance(
    `Redis ${name} with prefix '${prefix}' conforms`,
    {
      open: async () => {
        const store = await openRedisStore(way(), { quarantine: 'off', prefix });
        // Redis' own clock decides: only real time passes there.
        return { store, elapse: wait, dispose: () => store.close() };
      },
    },
    { describe, it: it.concurrent },
  );

for (const [name, way] of Object.entries(ways)) conforms(name, '', way);
conforms('by its URL', '{team}:', () => redis.url);
