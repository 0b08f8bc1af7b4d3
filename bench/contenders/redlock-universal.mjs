import { Redis } from 'ioredis';
import { createLock, IoredisAdapter } from 'redlock-universal';
import { monotonicMs } from '../statistics.mjs';
import { KEPT_MS, keepEach, PAIR_TTL_MS } from './keeping.mjs';

/** On ioredis: its adapter for node-redis came out a quarter slower, and at 1.6 times the processor time. */
export async function openContender(url, clientOptions) {
  const adapter = new IoredisAdapter(new Redis(url, clientOptions));
  const lean = { adapter, performance: 'lean', retryAttempts: 0 };
  const named = (key) => `universal:${key}`;
  return {
    async pair(key) {
      const lock = createLock({ ...lean, key: named(key), ttl: PAIR_TTL_MS });
      if (!(await lock.release(await lock.acquire()))) throw new Error(`${key} was not released`);
    },
    wait: (key) => acquire({ adapter, key: named(key), ttl: PAIR_TTL_MS }),
    release: ({ lock, handle }) => lock.release(handle),
    keep: (keys) =>
      keepEach(keys, {
        acquire: (key) => acquire({ ...lean, key: named(key), ttl: KEPT_MS }),
        extend,
      }),
    claims: (key, ttlMs) => claims(createLock({ adapter, key: named(key), ttl: ttlMs }), ttlMs),
  };
}

async function acquire(options) {
  const lock = createLock(options);
  return { lock, handle: await lock.acquire() };
}

async function extend(held) {
  if (await held.lock.extend(held.handle, KEPT_MS)) return held;
  throw new Error('a lock of redlock-universal was lost');
}

async function claims(lock, ttlMs) {
  const untilMs = monotonicMs() + ttlMs;
  const signal = await new Promise((resolve, reject) => {
    lock.using((started) => new Promise(() => resolve(started))).catch(reject);
  });
  return [{ label: 'using(), its signal', believes: () => !signal.aborted, untilMs }];
}
