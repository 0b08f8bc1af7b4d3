import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import type { Handover, Store } from '../../src/store/store.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { scriptCalls } from './support/script-calls.ts';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const CALL = { timeoutMs: 5_000 };

describe('a batch of handovers on Redis', () => {
  let store: Store;
  beforeAll(async () => {
    store = await openRedisStore(redis.url, { quarantine: 'off' });
  });
  afterAll(() => store.close());

  async function held(names: readonly string[]): Promise<Handover[]> {
    const requests = names.map((name) => ({ key: `lease:${name}`, holder: 'a' }));
    const call = { ...CALL, ttlMs: 60_000, leaseClass: 'lease', inbox: 'a' };
    const replies = await store.leases.acquire(requests, call);
    return replies.map((reply, i) => {
      if (reply.kind !== 'granted') throw new Error(`not granted: ${reply.kind}`);
      return { key: `lease:${names[i]}`, holder: 'a', fence: reply.fence, successor: 'b/1' };
    });
  }

  it('K-09 is one request, however many they are', async () => {
    const handovers = await held(Array.from({ length: 256 }, (_, n) => `many-${n}`));
    await store.leases.transfer([], { ...CALL, windowMs: 1_000 });
    const before = await scriptCalls(redis);
    const replies = await store.leases.transfer(handovers, { ...CALL, windowMs: 1_000 });
    expect(await scriptCalls(redis)).toBe(before + 1);
    expect(new Set(replies.map(({ kind }) => kind))).toEqual(new Set(['transferred']));
  });

  it('K-03 K-09 something foreign under a lease or its fence fails alone, beside good keys', async () => {
    const handovers = await held(['good', 'list', 'fence-list', 'fence-text', 'fine']);
    await redis.cli('DEL', 'lease:list', 'fence:{lease:fence-list}');
    await redis.cli('LPUSH', 'lease:list', 'x');
    await redis.cli('LPUSH', 'fence:{lease:fence-list}', 'x');
    await redis.cli('SET', 'fence:{lease:fence-text}', 'garbage');
    const replies = await store.leases.transfer(handovers, { ...CALL, windowMs: 1_000 });
    const shown = replies.map((reply) =>
      reply.kind === 'failed' ? Reflect.get(reply.error, 'code') : reply.kind,
    );
    expect(shown).toEqual(['transferred', 'KEY_FOREIGN', 'KEY_FOREIGN', 'not-held', 'transferred']);
    expect(await redis.cli('GET', 'lease:fence-list')).toBe('a');
  });
});
