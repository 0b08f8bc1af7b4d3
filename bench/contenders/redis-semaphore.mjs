import { Redis } from 'ioredis';
import { Mutex, Semaphore } from 'redis-semaphore';
import { monotonicMs } from '../statistics.mjs';
import { KEPT_MS, keepEach, PAIR_TTL_MS } from './keeping.mjs';

/** `refreshInterval: 0` spares it a timer per lock. */
const BY_HAND = { refreshInterval: 0, acquireAttemptsLimit: 1 };
/** At its default it asks every 10 ms. */
const WAITING = { refreshInterval: 0, lockTimeout: PAIR_TTL_MS, acquireTimeout: PAIR_TTL_MS };
const PAIR = { ...BY_HAND, lockTimeout: PAIR_TTL_MS };

export async function openContender(url, clientOptions) {
  const client = new Redis(url, clientOptions);
  return {
    async pair(key) {
      const mutex = new Mutex(client, key, PAIR);
      await mutex.acquire();
      await mutex.release();
    },
    wait: (key) => acquire(client, key, { lockTimeout: PAIR_TTL_MS }),
    release: (mutex) => mutex.release(),
    keep: (keys) =>
      keepEach(keys, {
        acquire: (key) => acquire(client, key, { ...BY_HAND, lockTimeout: KEPT_MS }),
        extend,
      }),
    pool: (name, slots) => ({
      async acquire() {
        const semaphore = new Semaphore(client, name, slots, WAITING);
        await semaphore.acquire();
        return semaphore;
      },
      release: (semaphore) => semaphore.release(),
    }),
    async claims(key, ttlMs) {
      const untilMs = monotonicMs() + ttlMs;
      const mutex = await acquire(client, key, { lockTimeout: ttlMs });
      return [{ label: 'isAcquired', believes: () => mutex.isAcquired, untilMs }];
    },
  };
}

async function acquire(client, key, options) {
  const mutex = new Mutex(client, key, options);
  await mutex.acquire();
  return mutex;
}

/** What its timer calls; there is no public way to extend a lock by hand. */
async function extend(mutex) {
  if (!(await mutex._refresh())) throw new Error('a lock of redis-semaphore was lost');
  return mutex;
}
