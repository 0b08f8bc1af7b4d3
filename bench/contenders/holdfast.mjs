import { open, systemClock } from 'holdfast';
import { median, monotonicMs } from '../statistics.mjs';

const OPEN = { quarantine: 'off', name: 'bench' };
/** Without one renewal of everything in this time, the keeper is not at work. */
const INTERVAL_DEADLINE_MS = 10_000;

export async function openContender(url) {
  const holdfast = await open(url, OPEN);
  return {
    async pair(key) {
      const result = await holdfast.acquire(key);
      if (!result.ok) throw new Error(`${key} is held by ${result.holder}`);
      const { released } = await result.lease.release();
      if (!released) throw new Error(`${key} was not released`);
    },
    wait: (key) => acquire(holdfast, key, { wait: '30s' }),
    release: (lease) => lease.release(),
    hold: (key, options) => acquire(holdfast, key, options),
    keep: (keys, everyMs) => keep(url, keys, everyMs),
    claims: (key, ttlMs) => claims(holdfast, key, ttlMs),
    guards: (count) => guards(holdfast, url, count),
    pool: (name, slots) => pool(holdfast.pool(name, { slots })),
  };
}

/** Guards transactions of a connection that the user has. */
async function guards(holdfast, url, count) {
  const { default: pg } = await import('pg');
  const tx = new pg.Client({ connectionString: url });
  await tx.connect();
  const lease = await acquire(holdfast, 'guarded');
  const tookMs = [];
  for (let i = 0; i < count; i++) {
    await tx.query('BEGIN');
    const startMs = monotonicMs();
    await lease.guard(tx);
    tookMs.push(monotonicMs() - startMs);
    await tx.query('COMMIT');
  }
  await lease.release();
  await tx.end();
  return median(tookMs);
}

function pool(slots) {
  return {
    async acquire() {
      const result = await slots.acquire({ wait: '30s' });
      if (!result.ok) throw new Error(`${result.pool} is full`);
      return result.lease;
    },
    release: (lease) => lease.release(),
  };
}

async function acquire(holdfast, key, options) {
  const result = await holdfast.acquire(key, options);
  if (!result.ok) throw new Error(`${key} is held by ${result.holder}`);
  return result.lease;
}

/**
 * It renews by itself, so `renew` waits for the keeper to renew every lease once, and adds up its batches: each from
 * the moment the keeper's timer fired, read off a clock that notes it, to the event that says all were confirmed.
 */
async function keep(url, keys, everyMs) {
  const watch = { firings: [], redisCpuUs: () => Promise.resolve(0) };
  const holdfast = await open(url, { ...OPEN, clock: watched(watch) });
  const terms = { ttl: '30s', renewEvery: everyMs };
  const leases = await Promise.all(keys.map((key) => acquire(holdfast, key, terms)));
  return {
    async renew({ redisCpuUs }) {
      watch.redisCpuUs = redisCpuUs;
      const sums = { ms: 0, redisUs: 0 };
      for (const batch of await oneInterval(holdfast, watch, keys.length)) {
        sums.ms += batch.ms;
        sums.redisUs += (await batch.redisAfterUs) - (await batch.redisBeforeUs);
      }
      return sums;
    },
    async letGo() {
      await Promise.all(leases.map((lease) => lease.release()));
      await holdfast.close();
    },
  };
}

/** The system's clock, except that it notes when a timer fires, and how much processor time Redis had used at that moment. */
function watched(watch) {
  const clock = Object.create(systemClock);
  clock.after = (delayMs, run) =>
    systemClock.after(delayMs, () => {
      // Sent before the keeper sends anything, over another connection.
      const redisBeforeUs = watch.redisCpuUs();
      watch.firings.push({ atMs: systemClock.monotonicMs(), redisBeforeUs });
      run();
    });
  return clock;
}

/** The batches in which the keeper next renews each of its leases once: their counts add up to all of them. */
function oneInterval(holdfast, watch, leases) {
  watch.firings.length = 0;
  let batches = [];
  let count = 0;
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`no renewals that add up to ${leases}`));
    const deadline = setTimeout(late, INTERVAL_DEADLINE_MS);
    const unsubscribe = holdfast.on('lease.renewed', (batch) => {
      const nowMs = systemClock.monotonicMs();
      const firing = watch.firings.findLast(({ atMs }) => atMs <= nowMs - batch.tookMs);
      // It began before we looked.
      if (firing === undefined) return;
      const { atMs, redisBeforeUs } = firing;
      batches.push({ ms: nowMs - atMs, redisBeforeUs, redisAfterUs: watch.redisCpuUs() });
      count += batch.count;
      if (count === leases) {
        clearTimeout(deadline);
        unsubscribe();
        resolve(batches);
      } else if (count > leases) {
        // Batches were joined: some of these leases have been renewed twice.
        batches = [];
        count = 0;
      }
    });
  });
}

/** Counts from the send, as the lease does: the request goes out in this turn, before what is queued behind it. */
async function claims(holdfast, key, ttlMs) {
  let sentAtMs = 0;
  const acquiring = acquire(holdfast, key, { ttl: ttlMs });
  setImmediate(() => {
    sentAtMs = monotonicMs();
  });
  const lease = await acquiring;
  const guardMs = Math.min(Math.max(ttlMs / 20, 100), 1_500);
  const believes = () => {
    try {
      lease.assertHeld();
      return true;
    } catch {
      return false;
    }
  };
  return [{ label: 'assertHeld()', believes, untilMs: sentAtMs + ttlMs - guardMs }];
}
