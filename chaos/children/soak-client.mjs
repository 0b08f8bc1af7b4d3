// One process of a soak: several callers that acquire, check, transfer, revoke, abort and release on keys that all
// processes share, with TTLs and guards that chance draws. It writes down when it believed to hold what.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { open } from '../../dist/index.js';
import { Beliefs, chanceOf, nowMicros } from './soak-beliefs.mjs';

const settings = JSON.parse(process.argv[2]);
const { name, client, store, keys, seed, file, forMs, maxTtlMs, others } = settings;
const chance = chanceOf(seed);
const pick = (from) => from[Math.floor(chance() * from.length)];
const oneIn = (count) => chance() * count < 1;

const CALLERS = 3;
const TTLS_MS = [600, 700, 1_000, 2_000, 5_000].filter((ttlMs) => ttlMs <= maxTtlMs);
const counts = {
  granted: 0,
  refused: 0,
  failed: 0,
  lost: 0,
  transferred: 0,
  revoked: 0,
  aborted: 0,
};
const beliefs = new Beliefs(file, name);

const adopted = await adoptedClient();
const holdfast = await open(adopted ?? store, {
  name,
  maxTtl: maxTtlMs,
  on: { 'store.warned': () => {} },
});
process.send?.({ kind: 'ready' });
const endMs = performance.now() + forMs;
await Promise.all(Array.from({ length: CALLERS }, (_, number) => caller(`${name}-${number}`)));
beliefs.flush();
appendFileSync(`${file}.counts`, JSON.stringify(counts));
await Promise.race([holdfast.close(), sleep(5_000)]);
process.exit();

/** A client of another library that Holdfast adopts; none where it connects by URL. */
async function adoptedClient() {
  if (client === 'ioredis') {
    const { Redis } = await import('ioredis');
    const redis = new Redis(store);
    redis.on('error', () => {});
    return redis;
  }
  if (client !== 'node-redis') return null;
  const { createClient } = await import('redis');
  const redis = createClient({ url: store });
  redis.on('error', () => {});
  return redis.connect();
}

async function caller(holder) {
  while (performance.now() < endMs) {
    const key = pick(keys);
    try {
      const result = await holdfast.acquire(key, options(holder));
      if (result.ok) await hold(result.lease, key);
      else await refused(key);
    } catch (error) {
      if (error.code === 'CONFIG_INVALID') throw error;
      if (error.name === 'TimeoutError') counts.aborted++;
      else counts.failed++;
      await sleep(chance() * 60);
    }
  }
}

function options(holder) {
  const ttl = pick(TTLS_MS);
  const timings = oneIn(3)
    ? { guard: ttl / 4, operationTimeout: Math.max(10, ttl / 12), renewEvery: ttl / 5 }
    : {};
  return {
    ttl,
    ...timings,
    ...(oneIn(2) && { wait: Math.floor(chance() * 1_500) }),
    ...(oneIn(2) && { holder }),
    ...(oneIn(4) && { class: 'resource' }),
    ...(oneIn(3) && { signal: AbortSignal.timeout(Math.ceil(chance() * 400)) }),
  };
}

async function refused(key) {
  counts.refused++;
  if (oneIn(40) && (await holdfast.revoke(key, { reason: 'soak' })).revoked) counts.revoked++;
  await sleep(chance() * 30);
}

/** Asks all the time whether it holds the key, then lets it go in one of the ways there are. */
async function hold(lease, key) {
  counts.granted++;
  const untilMs = performance.now() + chance() * (oneIn(3) ? 1_500 : 200);
  while (performance.now() < untilMs && lease.state !== 'lost') {
    beliefs.check(lease, key, () => lease.assertHeld());
    if (oneIn(400)) block(chance() * 1_500);
    if (oneIn(300)) void lease.renew().catch(() => {});
    await sleep(1 + chance() * 4);
  }
  beliefs.end(lease);
  if (lease.lossReason !== null) counts.lost++;
  if (!oneIn(3)) return void (await lease.release());
  counts.transferred++;
  const successor = `${pick(others)}-${Math.floor(chance() * CALLERS)}`;
  const transfer = lease.transfer(successor, { window: 50 + Math.floor(chance() * 800) });
  if (oneIn(2)) void lease.release();
  await transfer;
}

/** The event loop stands still. */
function block(ms) {
  const until = nowMicros() + ms * 1_000;
  while (nowMicros() < until);
}
