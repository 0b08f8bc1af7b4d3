import { Redis } from 'ioredis';
import Redlock from 'redlock';
import { monotonicMs } from '../statistics.mjs';
import { KEPT_MS, keepEach, PAIR_TTL_MS } from './keeping.mjs';

export async function openContender(url, clientOptions) {
  const client = new Redis(url, clientOptions);
  const redlock = new Redlock([client], { retryCount: 0 });
  const patient = new Redlock([client]);
  return {
    async pair(key) {
      const lock = await redlock.acquire([`redlock:${key}`], PAIR_TTL_MS);
      await lock.release();
    },
    wait: (key) => patient.acquire([`redlock:${key}`], PAIR_TTL_MS),
    release: (lock) => lock.release(),
    keep: (keys) =>
      keepEach(keys, {
        acquire: (key) => redlock.acquire([`redlock:${key}`], KEPT_MS),
        extend: (lock) => lock.extend(KEPT_MS),
      }),
    claims: (key, ttlMs) => claims(patient, key, ttlMs),
  };
}

/** The lock it keeps extended by itself, and the plain one that only knows when it ends. */
async function claims(redlock, key, ttlMs) {
  const untilMs = monotonicMs() + ttlMs;
  const lock = await redlock.acquire([`redlock:${key}:plain`], ttlMs);
  const signal = await new Promise((resolve, reject) => {
    const neverDone = (started) => new Promise(() => resolve(started));
    redlock.using([`redlock:${key}`], ttlMs, neverDone).catch(reject);
  });
  return [
    { label: 'using(), its signal', believes: () => !signal.aborted, untilMs },
    { label: 'acquire(), lock.expiration', believes: () => lock.expiration > Date.now(), untilMs },
  ];
}
