import { describe, expect, it } from 'vitest';
import { startRedis } from '../support/redis-server.ts';
import { leaveNothingBehind, nextEvent, openAt, take } from './support/holdfasts.ts';
import { expectRising, hostMs, LeaseWatch, validMs } from './support/lease-watch.ts';

leaveNothingBehind();

const TTL_MS = 6_000;
const OPTIONS = { ttl: TTL_MS, renewEvery: '1s' };

describe.concurrent('a Redis that is killed and restarted', () => {
  it('K-05 K-02 empty: its holder hears of the loss, is never late, and the next fence is higher', async () => {
    await using redis = await startRedis();
    await using holdfast = await openAt(redis);
    await using other = await openAt(redis);
    const lease = await take(holdfast, 'k', OPTIONS);
    using watch = new LeaseWatch(lease);
    const lost = nextEvent(holdfast, 'lease.lost');
    await redis.restart({ empty: true });
    const restartedMs = hostMs();
    // Without quarantine a second holder is possible: what protects then is the fence.
    const next = await take(other, 'k', { ...OPTIONS, wait: '5s' });
    expectRising([lease.fence, next.fence]);
    expect(await lost).toMatchObject({ fence: lease.fence, reason: 'taken_over' });
    await watch.neverPassesAfter(restartedMs + validMs(TTL_MS));
    expect(next.isHeld()).toBe(true);
  });

  it('K-03 K-05 K-14 with its data: the lease survives, a renewal confirms it, and nobody else gets the key', async () => {
    await using redis = await startRedis({ appendonly: true });
    await using holdfast = await openAt(redis);
    await using other = await openAt(redis);
    const lease = await take(holdfast, 'k', OPTIONS);
    using watch = new LeaseWatch(lease);
    const uncertain = nextEvent(holdfast, 'lease.uncertain');
    const confirmed = nextEvent(holdfast, 'lease.confirmed');
    await redis.kill();
    await uncertain;
    await redis.restart();
    expect(await confirmed).toMatchObject({ key: 'k', fence: lease.fence });
    expect(await other.acquire('k', { ...OPTIONS, wait: '1s' })).toMatchObject({
      ok: false,
      fence: lease.fence,
    });
    expect(watch.states).not.toContain('lost');
    expect(await lease.release()).toEqual({ released: true });
    const next = await take(other, 'k', OPTIONS);
    expectRising([lease.fence, next.fence]);
  });

  it('K-07 K-10 while it is down: waiters go on waiting and are served when it is back', async () => {
    await using redis = await startRedis();
    await using holdfast = await openAt(redis);
    await redis.kill();
    const waiting = take(holdfast, 'k', { ...OPTIONS, wait: '20s' });
    const disconnected = holdfast
      .acquire('other', { ttl: '600ms' })
      .catch((error: unknown) => error);
    expect(await disconnected).toMatchObject({ code: 'STORE_UNREACHABLE' });
    await redis.restart();
    const lease = await waiting;
    expect(lease.isHeld()).toBe(true);
  });
});
