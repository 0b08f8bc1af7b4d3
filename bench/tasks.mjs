/** What a contender can be asked to do in its process. Each task is given `{ contender, redisCpuUs, memory }` and facts. */
import { setTimeout as sleep } from 'node:timers/promises';
import { each } from './contenders/keeping.mjs';
import { monotonicMs, quantile } from './statistics.mjs';

export const tasks = {
  /** Nothing: resolves when the contender is open. */
  async open() {},
  pairs,
  latency,
  hammer,
  loopDelay,
  keep,
  renew,
  letGo,
  wait,
  release,
  slotPairs,
  takeSlot,
  freeSlot,
  claim,
  watch,
  guards,
  isHeld,
  heap,
};

/** Callers that acquire and release, each over keys of its own: what it took per pair, here and in Redis. */
async function pairs({ contender, redisCpuUs }, { callers, count }) {
  const keys = Array.from({ length: callers }, (_, caller) => keysOf(caller, count / callers));
  const redisBeforeUs = await redisCpuUs();
  const cpuBefore = process.cpuUsage();
  const startMs = monotonicMs();
  await Promise.all(
    keys.map(async (own) => {
      for (const key of own) await contender.pair(key);
    }),
  );
  const tookMs = monotonicMs() - startMs;
  const cpu = process.cpuUsage(cpuBefore);
  const redisUs = (await redisCpuUs()) - redisBeforeUs;
  const done = keys.flat().length;
  return {
    perSecond: (done / tookMs) * 1_000,
    cpuUs: (cpu.user + cpu.system) / done,
    redisUs: redisUs / done,
  };
}

/** One caller, one pair after the other: the median in microseconds. */
async function latency({ contender }, { count }) {
  const keys = keysOf(0, count);
  const tookMs = new Float64Array(keys.length);
  for (let i = 0; i < keys.length; i++) {
    const startMs = monotonicMs();
    await contender.pair(keys[i]);
    tookMs[i] = monotonicMs() - startMs;
  }
  return quantile(tookMs, 0.5) * 1_000;
}

/** Callers that acquire and release for a while, from a moment that all processes share: how many pairs, and how slow. */
async function hammer({ contender }, { callers, who, startMs, forMs }) {
  const tookMs = [];
  await sleep(startMs - monotonicMs());
  const lane = async (_, caller) => {
    for (let n = 0; monotonicMs() < startMs + forMs; n++) {
      const beganMs = monotonicMs();
      await contender.pair(`${who}:${caller}:${n % 100}`);
      tookMs.push(monotonicMs() - beganMs);
    }
  };
  await Promise.all(Array.from({ length: callers }, lane));
  return { pairs: tookMs.length, p50Ms: quantile(tookMs, 0.5), p99Ms: quantile(tookMs, 0.99) };
}

/** How long the event loop was blocked at most while everything that is kept was renewed so often. */
async function loopDelay({ memory, redisCpuUs }, { intervals }) {
  let worstMs = 0;
  let lastMs = monotonicMs();
  let isOver = false;
  const turn = () => {
    const nowMs = monotonicMs();
    worstMs = Math.max(worstMs, nowMs - lastMs);
    lastMs = nowMs;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  for (let i = 0; i < intervals; i++) await memory.get('kept').renew({ redisCpuUs });
  isOver = true;
  return worstMs;
}

function keysOf(caller, count) {
  return Array.from({ length: Math.round(count) }, (_, i) => `pair:${caller}:${i}`);
}

async function keep({ contender, memory }, { kind, count, everyMs }) {
  const keys = Array.from({ length: count }, (_, i) => numbered(kind, i));
  memory.set('kept', await contender.keep(keys, everyMs));
}

async function renew({ memory, redisCpuUs }, { lanes }) {
  return memory.get('kept').renew({ lanes, redisCpuUs });
}

async function letGo({ memory }) {
  await memory.get('kept').letGo?.();
  memory.delete('kept');
}

function numbered(kind, number) {
  return `${kind}:${String(number).padStart(6, '0')}`;
}

/** Waits for the key. When it was had, on the clock that all processes share. */
async function wait({ contender, memory }, { key }) {
  const held = await contender.wait(key);
  const heldAtMs = monotonicMs();
  memory.set(key, held);
  return heldAtMs;
}

/** When the release was asked for. */
async function release({ contender, memory }, { key }) {
  const held = memory.get(key);
  memory.delete(key);
  const askedAtMs = monotonicMs();
  await contender.release(held);
  return askedAtMs;
}

/** Callers that acquire and release a slot of one pool: pairs per second. */
async function slotPairs({ contender }, { pool, slots, callers, count }) {
  const own = contender.pool(pool, slots);
  const startMs = monotonicMs();
  await each(count, callers, async () => own.release(await own.acquire()));
  return (count / (monotonicMs() - startMs)) * 1_000;
}

/** Waits for a slot. When it was had. */
async function takeSlot({ contender, memory }, { pool, slots }) {
  const held = await contender.pool(pool, slots).acquire();
  const heldAtMs = monotonicMs();
  memory.set(pool, [...(memory.get(pool) ?? []), held]);
  return heldAtMs;
}

/** Gives one of its slots back. When that was asked for. */
async function freeSlot({ contender, memory }, { pool, slots }) {
  const [held, ...rest] = memory.get(pool);
  memory.set(pool, rest);
  const askedAtMs = monotonicMs();
  await contender.pool(pool, slots).release(held);
  return askedAtMs;
}

async function claim({ contender, memory }, { key, ttlMs }) {
  memory.set('claims', await contender.claims(key, ttlMs));
}

/** Asks every millisecond whether the claims are still believed in: by how much each was for too long. */
async function watch({ memory }, { forMs }) {
  const claims = memory.get('claims').map((claim) => ({ ...claim, believedAtMs: 0 }));
  const endMs = Math.max(...claims.map(({ untilMs }) => untilMs)) + forMs;
  for (let nowMs = monotonicMs(); nowMs < endMs; nowMs = monotonicMs()) {
    for (const claim of claims) if (claim.believes()) claim.believedAtMs = nowMs;
    await sleep(1);
  }
  return claims.map(({ label, believes, believedAtMs, untilMs }) => ({
    label,
    lateMs: Math.max(0, believedAtMs - untilMs),
    isOver: !believes(),
  }));
}

/** Transactions that a lease guards: the median of the guards, in milliseconds. */
async function guards({ contender }, { count }) {
  return contender.guards(count);
}

/** Nanoseconds per call. */
async function isHeld({ contender }, { calls }) {
  const lease = await contender.hold('checked');
  let held = 0;
  const startMs = monotonicMs();
  for (let i = 0; i < calls; i++) if (lease.isHeld()) held++;
  const tookMs = monotonicMs() - startMs;
  await lease.release();
  if (held !== calls) throw new Error(`held in ${held} of ${calls} calls`);
  return (tookMs / calls) * 1e6;
}

/** Bytes per lease held: what is left after a collection, less what was there before. */
async function heap({ contender }, { count, lanes }) {
  const leases = new Array(count).fill(null);
  // Code, connections and buffers that any number of leases needs.
  await each(lanes, lanes, async (at) => (await contender.hold(`warm:${at}`)).release());
  const before = await settledBytes();
  await each(count, lanes, async (at) => {
    leases[at] = await contender.hold(numbered('device', at), { ttl: '30s' });
  });
  const bytes = (await settledBytes()) - before;
  if (!leases.every((lease) => lease.isHeld())) throw new Error('not every lease is held');
  return bytes / count;
}

async function settledBytes() {
  for (let i = 0; i < 3; i++) {
    globalThis.gc();
    await sleep(50);
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
