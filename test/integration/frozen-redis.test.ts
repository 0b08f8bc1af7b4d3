import { describe, expect, it } from 'vitest';
import { startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import {
  assertCode,
  codeOf,
  leaveNothingBehind,
  nextEvent,
  openAt,
  take,
} from './support/holdfasts.ts';
import { expectRising, hostMs, LeaseWatch, SHORT, SHORT_VALID_MS } from './support/lease-watch.ts';

leaveNothingBehind();

describe.concurrent('while Redis is frozen', () => {
  it('K-04 K-05 K-14 a lease is uncertain, then lost at its deadline: no check ever passes after ttl − guard', async () => {
    await using redis = await startRedis();
    await using holdfast = await openAt(redis);
    const lease = await take(holdfast, 'k', SHORT);
    using watch = new LeaseWatch(lease);
    const uncertain = nextEvent(holdfast, 'lease.uncertain');
    const lost = nextEvent(holdfast, 'lease.lost');
    let abortedMs = 0;
    lease.signal.addEventListener('abort', () => {
      abortedMs = hostMs();
    });
    try {
      await redis.freeze();
      const deadlineMs = hostMs() + SHORT_VALID_MS;
      expect(await uncertain).toMatchObject({ key: 'k', reason: 'renewal_failed' });
      expect([lease.isHeld(), assertCode(lease)]).toEqual([false, '']);
      expect(await lost).toMatchObject({ key: 'k', fence: lease.fence, reason: 'expired' });
      await watch.neverPassesAfter(deadlineMs);
      expect(abortedMs).toBeGreaterThan(0);
      expect(watch.states).toEqual(['held', 'uncertain', 'lost']);
      expect(assertCode(lease)).toBe('LEASE_LOST');
      expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'expired' });
    } finally {
      await redis.thaw();
    }
    await using other = await openAt(redis);
    const next = await take(other, 'k', { ...SHORT, wait: '10s' });
    expectRising([lease.fence, next.fence]);
    expect(await lease.release()).toEqual({ released: false, reason: 'expired' });
    expect(next.isHeld()).toBe(true);
  });

  it('K-07 an acquire ends as OUTCOME_UNKNOWN within its operation timeout, and what Redis grants on waking is given back well before its TTL', async () => {
    await using redis = await startRedis();
    await using holdfast = await openAt(redis);
    await using other = await openAt(redis);
    const before = await take(holdfast, 'k');
    await before.release();
    const returned = nextEvent(holdfast, 'lease.returned');
    try {
      await redis.freeze();
      const startMs = hostMs();
      const tries = [1, 2, 3].map(() => codeOf(holdfast.acquire('k', { ttl: '12s' })));
      expect(await Promise.all(tries)).toEqual(Array(3).fill('OUTCOME_UNKNOWN'));
      // Its operation timeout is 2 s; a busy machine may add some.
      expect(hostMs() - startMs).toBeLessThan(4_000);
      expect(holdfast.held).toBe(0);
    } finally {
      await redis.thaw();
    }
    const thawedMs = hostMs();
    const { fence } = await returned;
    const next = await take(other, 'k', { ttl: '12s', wait: '20s' });
    expect(hostMs() - thawedMs).toBeLessThan(8_000);
    expectRising([before.fence, fence, next.fence]);
    expect(next.isHeld()).toBe(true);
  });

  it('K-07 K-03 what Redis grants after a freeze longer than the TTL is given back too', async () => {
    await using redis = await startRedis();
    await using holdfast = await openAt(redis);
    await using other = await openAt(redis);
    const before = await take(holdfast, 'k', SHORT);
    await before.release();
    const returned = nextEvent(holdfast, 'lease.returned', { deadlineMs: 15_000 });
    try {
      await redis.freeze();
      const frozenMs = hostMs();
      expect(await codeOf(holdfast.acquire('k', SHORT))).toBe('OUTCOME_UNKNOWN');
      const longMs = SHORT.ttl * 2 + SHORT.operationTimeout;
      await until(() => hostMs() - frozenMs > longMs, {
        what: 'a long freeze',
        deadlineMs: 10_000,
      });
    } finally {
      await redis.thaw();
    }
    // Once its TTL is over there is nothing left to give back, and no such event.
    const { fence } = await returned;
    const next = await take(other, 'k', SHORT);
    expectRising([before.fence, fence, next.fence]);
  });
});
