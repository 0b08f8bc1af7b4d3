import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { createClient as createClient5 } from 'redis-5';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { Emitter } from '../../src/core/events.ts';
import type { Handover } from '../../src/store/port/lease-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { adopt } from '../../src/store/redis/client/adopt.ts';
import type { AdoptableClient } from '../../src/store/redis/client/adoptable.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
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
    const call = { ...CALL, ttlMs: 60_000, inbox: 'a' };
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

describe('a batch of requests on Redis', () => {
  it('K-03 a foreign key with an expiry beyond all measure is held, beside good keys, on the same connection', async () => {
    const events = new Emitter();
    let drops = 0;
    events.on('store.disconnected', () => drops++);
    const store = await openRedisStore(redis.url, { quarantine: 'off', events });
    await redis.cli('SET', 'lease:foreign', 'somebody', 'PX', '9000000000000000000');
    const requests = ['near', 'foreign', 'by'].map((key) => ({ key: `lease:${key}`, holder: 'a' }));
    const call = { ...CALL, ttlMs: 60_000, inbox: 'a' };
    const replies = await store.leases.acquire(requests, call);
    expect(replies.map(({ kind }) => kind)).toEqual(['granted', 'busy', 'granted']);
    expect(drops).toBe(0);
    await store.close();
  });

  it('K-03 a refused acquire leaves a foreign key, and its expiry, as it was', async () => {
    const store = await openRedisStore(redis.url, { quarantine: 'off' });
    await redis.cli('SET', 'fence:{lease:theirs}', 'precious', 'PX', '60000');
    const call = { ...CALL, ttlMs: 60_000, inbox: 'a' };
    const [reply] = await store.leases.acquire([{ key: 'lease:theirs', holder: 'a' }], call);
    expect(reply).toMatchObject({ kind: 'failed', error: { code: 'KEY_FOREIGN' } });
    expect(await redis.cli('GET', 'fence:{lease:theirs}')).toBe('precious');
    expect(Number(await redis.cli('PTTL', 'fence:{lease:theirs}'))).toBeLessThanOrEqual(60_000);
    await store.close();
  });
});

/** Clients that a store can be opened with. */
const CLIENTS: Record<string, (url: string) => AdoptableClient> = {
  'node-redis 6': (url) => createClient({ url }),
  'node-redis 5': (url) => createClient5({ url }),
  ioredis: (url) => new Redis(url, { lazyConnect: true }),
};

describe.each(Object.entries(CLIENTS))('a connection through %s', (_, clientFor) => {
  it('B-01 writes no command whose time was over while the event loop was blocked', async () => {
    const dialer = adopt(clientFor(redis.url), systemClock);
    const signal = new AbortController().signal;
    const link = await dialer.dial({ timeoutMs: 5_000, signal, onEnd: () => {} });
    await redis.cli('DEL', 'early', 'late');
    const startMs = systemClock.monotonicMs();
    const late = { isOver: () => systemClock.monotonicMs() - startMs >= 10 };
    const first = link.send(['SET', 'early', '1'], { isOver: () => false });
    // A client that writes at once has written by now; one that gathers has not.
    while (!late.isOver());
    const second = link.send(['SET', 'late', '1'], late);
    expect(await Promise.allSettled([first, second])).toMatchObject([
      { value: 'OK' },
      { reason: { message: expect.stringContaining('over before it could be sent') } },
    ]);
    expect(await redis.cli('EXISTS', 'late')).toBe(0);
    link.destroy();
  });
});
