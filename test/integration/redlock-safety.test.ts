import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { beforeAll, describe, expect, it } from 'vitest';
import { type ExecutionError, Redlock, type RedlockAbortSignal } from '../../src/redlock/index.ts';
import { hostMs } from '../support/host-clock.ts';
import { startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { leaveNothingBehind, openAt } from './support/holdfasts.ts';
import { failure, HOLDFAST, type Locking, REDLOCK } from './support/redlocks.ts';

// Where redlock 5 and what stands in for it do not agree, and why one comes from the other.

leaveNothingBehind();

const DURATION_MS = 2_000;
/** Longer, so that a busy machine makes no timer late by as much as is left for an extension. */
const KEPT_MS = 3_000;
const KEPT = { automaticExtensionThreshold: 1_500 };

// What is loaded on first use is not waited for by a lock that runs out meanwhile.
beforeAll(async () => {
  await using redis = await startRedis();
  await using ours = await HOLDFAST.lockOn(redis);
  await (await ours.redlock.acquire(['warm-up'], 10_000)).release();
});

/** A routine that goes on until it is let go: what it has been told, and its end. */
function working({ redlock }: Locking): { signal: Promise<RedlockAbortSignal>; stop(): void } {
  let stop = () => {};
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const signal = new Promise<RedlockAbortSignal>((started, refused) => {
    const routine = (given: RedlockAbortSignal) => {
      started(given);
      return stopped;
    };
    redlock.using(['r'], KEPT_MS, routine).catch(refused);
  });
  signal.catch(() => {});
  return { signal, stop };
}

describe.concurrent('while Redis is frozen', () => {
  it("redlock's routine is not told that its lock has run out; ours is, before it can have", async () => {
    await using redis = await startRedis();
    await using theirs = await REDLOCK.lockOn(redis, KEPT);
    await using ours = await HOLDFAST.lockOn(redis, KEPT);
    const our = working(ours);
    const ourSignal = await our.signal;
    const their = working(theirs);
    const theirSignal = await their.signal;
    let toldMs = 0;
    ourSignal.addEventListener('abort', () => {
      toldMs = hostMs();
    });
    await redis.freeze();
    const frozenMs = hostMs();
    // Nothing is confirmed from here on, so this is past the end of every key.
    await until(() => hostMs() - frozenMs > KEPT_MS + 500, { what: 'both to run out' });
    expect(ourSignal.aborted).toBe(true);
    expect(toldMs - frozenMs).toBeLessThan(KEPT_MS);
    expect(ourSignal.error).toMatchObject({
      code: 'EXECUTION_FAILED',
      cause: { code: 'LEASE_LOST', reason: 'expired' },
    });
    expect(theirSignal.aborted).toBe(false);
    their.stop();
    our.stop();
    await redis.thaw();
  });

  it('redlock hands out a lock that is over already; ours refuses it, and gives back what was granted late', async () => {
    await using redis = await startRedis();
    await using theirs = await REDLOCK.lockOn(redis, { retryCount: 0 });
    await using ours = await HOLDFAST.lockOn(redis, { retryCount: 0 });
    for (const { redlock } of [theirs, ours])
      await (await redlock.acquire(['warm-up'], 10_000)).release();
    await redis.freeze();
    const frozenMs = hostMs();
    const taking = theirs.redlock.acquire(['r'], DURATION_MS);
    const refused = failure<ExecutionError>(ours.redlock.acquire(['r'], DURATION_MS));
    expect((await refused).cause).toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await until(() => hostMs() - frozenMs > DURATION_MS + 200, { what: 'the duration to be past' });
    await redis.thaw();
    const lock = await taking;
    expect(lock.expiration).toBeLessThan(Date.now());
    await until(async () => (await redis.cli('EXISTS', 'lease:r')) === 0, {
      what: 'it to be free',
    });
  });

  it('an extension that is answered after the end brings nothing back', async () => {
    await using redis = await startRedis();
    await using ours = await HOLDFAST.lockOn(redis);
    const lock = await ours.redlock.acquire(['r'], DURATION_MS);
    await redis.freeze();
    const extending = failure<ExecutionError>(lock.extend(10_000));
    await until(() => lock.signal.aborted, { what: 'the lock to be over' });
    await redis.thaw();
    expect(await extending).toMatchObject({ code: 'EXECUTION_FAILED' });
    expect([lock.isHeld(), lock.expiration]).toEqual([false, 0]);
    expect((await failure(lock.extend(10_000))).message).toMatch(/already-expired/);
    const next = await ours.redlock.acquire(['r'], 10_000);
    expect(next.fence).toBeGreaterThan(lock.fence);
    await next.release();
  });
});

describe.concurrent('other than redlock', () => {
  it('who waits is woken by the release, and does not sleep out its delay', async () => {
    await using redis = await startRedis();
    const settings = { retryCount: 1, retryDelay: 4_000, retryJitter: 0 };
    const waited = async (contender: typeof REDLOCK) => {
      await using a = await contender.lockOn(redis);
      await using b = await contender.lockOn(redis, settings);
      const lock = await a.redlock.acquire(['r'], 30_000);
      const waiting = b.redlock.acquire(['r'], 30_000);
      // redlock has been refused once then; ours stands in line.
      const line = () => redis.cli('EXISTS', 'line:{lease:r}');
      await until(async () => b.errors.length > 0 || (await line()) === 1, { what: 'it to wait' });
      await lock.release();
      const freeMs = hostMs();
      await (await waiting).release();
      return hostMs() - freeMs;
    };
    const [theirMs, ourMs] = await Promise.all([waited(REDLOCK), waited(HOLDFAST)]);
    expect(ourMs).toBeLessThan(2_000);
    expect(theirMs).toBeGreaterThan(3_000);
  });

  it('every lock has a fence, so that the work of one that paused is refused', async () => {
    await using redis = await startRedis();
    await using theirs = await REDLOCK.lockOn(redis);
    await using ours = await HOLDFAST.lockOn(redis);
    expect((await theirs.redlock.acquire(['r'], 30_000)).fence).toBeUndefined();
    await using holdfast = await openAt(redis);
    const paused = await ours.redlock.acquire(['r'], 1_000);
    const next = await ours.redlock.acquire(['r'], 30_000);
    await holdfast.records.put('balance', 2, { fence: next.fence });
    const late = holdfast.records.put('balance', 1, { fence: paused.fence });
    expect(await failure(late)).toMatchObject({ code: 'FENCE_STALE', seen: next.fence });
    await next.release();
  });

  it('a client of node-redis will do, and a prefix of ioredis stands before the keys', async () => {
    await using redis = await startRedis();
    const options = { quarantine: 'off', on: { 'store.warned': () => {} } } as const;
    const node = new Redlock([createClient({ url: redis.url })], {}, options);
    const lock = await node.acquire(['r'], 30_000);
    expect(await redis.cli('GET', 'lease:r')).toBe(lock.value);
    const client = new Redis(redis.url, { keyPrefix: 'app:', lazyConnect: true });
    const prefixed = new Redlock([client], { retryCount: 0 }, options);
    const other = await prefixed.acquire(['r'], 30_000);
    expect(await redis.cli('GET', 'app:lease:r')).toBe(other.value);
    await Promise.all([lock.release(), other.release()]);
    await Promise.all([node.quit(), prefixed.quit()]);
  });

  it('a fleet that runs both is not excluded from itself: the keys are others', async () => {
    await using redis = await startRedis();
    await using theirs = await REDLOCK.lockOn(redis, { retryCount: 0 });
    await using ours = await HOLDFAST.lockOn(redis, { retryCount: 0 });
    await theirs.redlock.acquire(['r'], 30_000);
    await ours.redlock.acquire(['r'], 30_000);
    expect(await redis.cli('EXISTS', 'r', 'lease:r')).toBe(2);
  });
});
