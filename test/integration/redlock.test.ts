import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ExecutionError, Lock, RedlockAbortSignal } from '../../src/redlock/index.ts';
import { hostMs } from '../support/host-clock.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { leaveNothingBehind } from './support/holdfasts.ts';
import { type Contender, failure, HOLDFAST, type Locking, REDLOCK } from './support/redlocks.ts';

// The same stories, told of redlock 5 and of what stands in for it, on the same server.

leaveNothingBehind();

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
  // What is loaded on first use is not waited for by a lock that runs out meanwhile.
  await using warm = await HOLDFAST.lockOn(redis);
  await (await warm.redlock.acquire(['warm-up'], LONG_MS)).release();
});
afterAll(() => redis.stop());

const ONCE = { retryCount: 0 };
/** For locks that are short: on a busy machine an answer may come too late for them. */
const FEW = { retryCount: 3 };
/** Long enough for a busy machine; short enough to be waited out. */
const SHORT_MS = 2_000;
/** For what is to be extended in time. */
const KEPT_MS = 3_000;
const LONG_MS = 10_000;

describe.concurrent.each([REDLOCK, HOLDFAST])('$name', (contender: Contender) => {
  const { lockOn, keyOf, surface } = contender;
  const named = (resource: string) => `${contender.name}-${resource}`;

  it('refuses other callers, says so, and admits them after a release', async () => {
    await using a = await lockOn(redis);
    await using b = await lockOn(redis, ONCE);
    const resource = named('conflict');
    const lock = await a.redlock.acquire([resource], LONG_MS);
    expect(lock.resources).toEqual([resource]);
    expect(await redis.cli('GET', keyOf(resource))).toBe(lock.value);
    expect(lock.expiration).toBeGreaterThan(Date.now());
    expect(lock.expiration).toBeLessThan(Date.now() + LONG_MS);
    const error = await failure<ExecutionError>(b.redlock.acquire([resource], LONG_MS));
    expect(error).toBeInstanceOf(surface.ExecutionError);
    expect(error.name).toBe('ExecutionError');
    expect(error.message).toMatch(/^The operation was unable to achieve a quorum during its retry/);
    const [stats] = await Promise.all(error.attempts);
    expect(stats).toMatchObject({ membershipSize: 1, quorumSize: 1 });
    expect(stats?.votesAgainst.get(b.client)).toBeInstanceOf(surface.ResourceLockedError);
    expect(b.errors[0]).toBeInstanceOf(surface.ResourceLockedError);
    expect(b.errors[0]?.message).toMatch(
      /^The operation was applied to: 0 of the 1 requested resources\./,
    );
    const { attempts } = await lock.release();
    expect((await attempts[0])?.votesFor).toEqual(new Set([a.client]));
    expect(lock.expiration).toBe(0);
    await (await b.redlock.acquire([resource], LONG_MS)).release();
  });

  it("says redlock's own sentences about arguments that are wrong", async () => {
    await using a = await lockOn(redis);
    const resource = named('arguments');
    const none = () => new surface.default([]);
    expect(none).toThrow('Redlock must be instantiated with at least one redis client.');
    expect((await failure(a.redlock.acquire([resource], 1.5))).message).toContain(
      'Duration must be an integer value in milliseconds.',
    );
    const short = a.redlock.using([resource], 550, async () => 0);
    expect((await failure(short)).message).toContain(
      'A lock `duration` must be at least 100ms greater than the `automaticExtensionThreshold` setting.',
    );
  });

  it('extends a lock into another one, and the old one is over', async () => {
    await using a = await lockOn(redis, FEW);
    await using b = await lockOn(redis, ONCE);
    const resource = named('extend');
    const first = await a.redlock.acquire([resource], SHORT_MS);
    const startMs = hostMs();
    const second = await first.extend(LONG_MS);
    expect([second.value, second.resources]).toEqual([first.value, [resource]]);
    expect(first.expiration).toBe(0);
    expect((await failure(first.extend(LONG_MS))).message).toMatch(
      /^Cannot extend an already-expired lock\./,
    );
    await until(() => hostMs() - startMs > SHORT_MS + 200, { what: 'the first end to be past' });
    expect(second.expiration).toBeGreaterThan(Date.now());
    expect(await failure(b.redlock.acquire([resource], LONG_MS))).toBeInstanceOf(
      surface.ExecutionError,
    );
    await a.redlock.release(second);
    await (await b.redlock.acquire([resource], LONG_MS)).release();
  });

  it('ends a lock when its duration is over, and refuses to extend or release it later', async () => {
    await using a = await lockOn(redis, FEW);
    await using b = await lockOn(redis, { retryCount: -1, retryDelay: 20, retryJitter: 10 });
    const resource = named('expiry');
    const startMs = hostMs();
    const lock = await a.redlock.acquire([resource], SHORT_MS);
    const next = await b.redlock.acquire([resource], LONG_MS);
    const waitedMs = hostMs() - startMs;
    expect(waitedMs).toBeGreaterThan(SHORT_MS - 20);
    expect(waitedMs).toBeLessThan(SHORT_MS + 4_000);
    expect(lock.expiration).toBeLessThan(Date.now());
    expect((await failure(lock.extend(LONG_MS))).message).toMatch(/already-expired/);
    expect(await failure(lock.release())).toBeInstanceOf(surface.ExecutionError);
    expect(await redis.cli('GET', keyOf(resource))).toBe(next.value);
    await next.release();
  });

  it('locks several resources all or none', async () => {
    await using a = await lockOn(redis, ONCE);
    await using b = await lockOn(redis, ONCE);
    const [one, two, three] = [named('one'), named('two'), named('three')];
    const pair = await a.redlock.acquire([one, two], LONG_MS);
    const error = await failure<ExecutionError>(b.redlock.acquire([three, two], LONG_MS));
    expect(error).toBeInstanceOf(surface.ExecutionError);
    expect(await redis.cli('EXISTS', keyOf(three))).toBe(0);
    const longer = await pair.extend(LONG_MS);
    await longer.release();
    expect(await redis.cli('EXISTS', keyOf(one), keyOf(two))).toBe(0);
    await (await b.redlock.acquire([three, two], LONG_MS)).release();
  });

  it('waits as long as its retries last, and no longer', async () => {
    await using a = await lockOn(redis, ONCE);
    await using b = await lockOn(redis);
    const resource = named('retry');
    const lock = await a.redlock.acquire([resource], LONG_MS);
    const startMs = hostMs();
    const settings = { retryCount: 5, retryDelay: 200, retryJitter: 50 };
    const error = await failure<ExecutionError>(b.redlock.acquire([resource], LONG_MS, settings));
    const waitedMs = hostMs() - startMs;
    expect(error).toBeInstanceOf(surface.ExecutionError);
    expect(waitedMs).toBeGreaterThan(700);
    expect(waitedMs).toBeLessThan(4_000);
    const patient = b.redlock.acquire([resource], LONG_MS, { ...settings, retryCount: 30 });
    await lock.release();
    await (await patient).release();
  });

  it('keeps the lock of a routine, gives its result, and frees it', async () => {
    await using a = await lockOn(redis, { automaticExtensionThreshold: 1_500 });
    await using b = await lockOn(redis, ONCE);
    const resource = named('using');
    const startMs = hostMs();
    let seen: RedlockAbortSignal | undefined;
    const result = await a.redlock.using([resource], KEPT_MS, async (signal) => {
      seen = signal;
      await until(() => hostMs() - startMs > KEPT_MS + 500, { what: 'its duration to be past' });
      expect(await failure(b.redlock.acquire([resource], LONG_MS))).toBeInstanceOf(
        surface.ExecutionError,
      );
      return 42;
    });
    expect([result, seen?.aborted]).toEqual([42, false]);
    await (await b.redlock.acquire([resource], LONG_MS)).release();
  });

  it('passes on what a routine throws, and frees its lock', async () => {
    await using a = await lockOn(redis, ONCE);
    const resource = named('throwing');
    const own = new Error('mine');
    const routine = async (): Promise<never> => {
      throw own;
    };
    expect(await failure(a.redlock.using([resource], LONG_MS, { retryCount: 1 }, routine))).toBe(
      own,
    );
    await (await a.redlock.acquire([resource], LONG_MS)).release();
  });

  it('tells a routine whose lock was taken, and does not count what it returns', async () => {
    await using a = await lockOn(redis, FEW);
    const resource = named('taken');
    let seen: Error | undefined;
    const running = failure(
      a.redlock.using([resource], SHORT_MS, async (signal) => {
        await redis.cli('SET', keyOf(resource), 'somebody else', 'PX', 60_000);
        await until(() => signal.aborted, { what: 'the signal to fire' });
        seen = signal.error;
        return 'done';
      }),
    );
    expect(await running).toBeInstanceOf(surface.ExecutionError);
    expect(seen).toBeInstanceOf(surface.ExecutionError);
    expect(await redis.cli('GET', keyOf(resource))).toBe('somebody else');
  });

  it.each<[string, (from: Locking) => Promise<unknown>]>([
    ['a part of a millisecond', ({ redlock }) => redlock.acquire(['x'], 1_000.5)],
    ['no time to extend', ({ redlock }) => redlock.using(['x'], 550, async () => {})],
    ['no routine', ({ redlock }) => redlock.using(['x'], 5_000, {})],
  ])('refuses %s', async (_, call) => {
    await using a = await lockOn(redis, ONCE);
    expect(await failure(call(a))).toBeInstanceOf(Error);
    expect(a.errors).toEqual([]);
  });

  it('ends the client it was given on quit', async () => {
    await using a = await lockOn(redis, ONCE);
    const lock: Lock = await a.redlock.acquire([named('quit')], LONG_MS);
    await lock.release();
    await a.redlock.quit();
    await until(() => a.client.status === 'end', { what: 'the client to be ended' });
  });
});
