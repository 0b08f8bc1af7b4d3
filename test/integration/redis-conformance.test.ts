import { afterAll, beforeAll, describe, it } from 'vitest';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { storeConformance } from '../../src/testing/conformance.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

for (const prefix of ['', '{team}:']) {
  storeConformance(
    `Redis with prefix '${prefix}' conforms`,
    {
      open: async () => {
        const store = await openRedisStore(redis.url, { quarantine: 'off', prefix });
        // Redis' own clock decides: only real time passes there.
        return { store, elapse: wait, dispose: () => store.close() };
      },
    },
    { describe, it },
  );
}
