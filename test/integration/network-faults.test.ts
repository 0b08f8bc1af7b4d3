import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Holdfast, Lease } from '../../src/index.ts';
import { FaultProxy } from '../../testing/fakes/fault-proxy.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import {
  codeOf,
  leaveNothingBehind,
  nextEvent,
  openAt,
  take,
  warmUp,
} from './support/holdfasts.ts';
import {
  expectRising,
  hostMs,
  LeaseWatch,
  SHORT,
  SHORT_VALID_MS,
  validMs,
} from './support/lease-watch.ts';

leaveNothingBehind();

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
  await warmUp(redis);
});
afterAll(() => redis.stop());

/** Nobody would see an orphan of this length run out by itself. */
const LONG = { ttl: 20_000, operationTimeout: SHORT.operationTimeout };

const proxied = () => FaultProxy.start({ target: { host: '127.0.0.1', port: redis.port } });

/** Another that waits for the key does not get it while its holder renews it, and nothing gives it away meanwhile. */
async function expectKept(lease: Lease, holdfast: Holdfast, other: Holdfast): Promise<void> {
  const wanted = other.acquire(lease.key, { ...SHORT, wait: '1.5s' });
  expect(await wanted).toMatchObject({ ok: false, holder: lease.holder });
  expect(await other.inspect(lease.key)).toMatchObject({ kind: 'held', fence: lease.fence });
  expect(lease.isHeld()).toBe(true);
  expect(holdfast.held).toBe(1);
}

describe.concurrent('a half-open connection', () => {
  it('K-07 K-05 is replaced, and the lease is kept if the network heals inside the deadline', async () => {
    await using proxy = await proxied();
    await using holdfast = await openAt(proxy);
    const options = { ttl: 6_000, renewEvery: 500, operationTimeout: 1_000 };
    const lease = await take(holdfast, 'heals', options);
    using watch = new LeaseWatch(lease);
    const confirmed = nextEvent(holdfast, 'lease.confirmed');
    const disconnected = nextEvent(holdfast, 'store.disconnected');
    await proxy.halfOpen();
    await nextEvent(holdfast, 'lease.uncertain');
    await disconnected;
    // The attempt to connect anew is lost in the same hole.
    await until(() => proxy.connections > 0, { what: 'another attempt', every: 1 });
    const probe = holdfast.acquire('probe', { ttl: '600ms' });
    expect(await codeOf(probe)).toBe('STORE_UNREACHABLE');
    await proxy.pass();
    await confirmed;
    expect(lease.isHeld()).toBe(true);
    await until(() => watch.states.length === 3, { what: 'the watch to see it' });
    expect(watch.states).toEqual(['held', 'uncertain', 'held']);
    expect(await redis.cli('GET', 'lease:heals')).toBe(lease.holder);
  });

  it('K-04 K-07 costs the lease at its deadline if it does not heal, and nothing passes after it', async () => {
    await using proxy = await proxied();
    await using holdfast = await openAt(proxy);
    const lease = await take(holdfast, 'stays', SHORT);
    using watch = new LeaseWatch(lease);
    await proxy.halfOpen();
    await watch.neverPassesAfter(hostMs() + SHORT_VALID_MS);
    expect(await codeOf(holdfast.acquire('stays-other', SHORT))).toBe('STORE_UNREACHABLE');
    await using elsewhere = await openAt(redis);
    const next = await take(elsewhere, 'stays', { ...SHORT, wait: '10s' });
    expectRising([lease.fence, next.fence]);
    await proxy.pass();
    // It comes back by itself.
    const again = await until(() => take(holdfast, 'stays-other', SHORT), {
      what: 'the store to be back',
      deadlineMs: 10_000,
    });
    expect(again.isHeld()).toBe(true);
  });
});

describe.concurrent('an unreliable network', () => {
  it('K-05 K-07 a reset connection costs no lease, and what was asked meanwhile has a typed outcome', async () => {
    await using proxy = await proxied();
    await using holdfast = await openAt(proxy);
    const lease = await take(holdfast, 'reset', SHORT);
    using watch = new LeaseWatch(lease);
    for (let i = 0; i < 5; i++) {
      const renewed = nextEvent(holdfast, 'lease.renewed');
      proxy.reset();
      await renewed;
    }
    expect(watch.states.filter((state) => state !== 'held' && state !== 'uncertain')).toEqual([]);
    expect(lease.isHeld()).toBe(true);
  });

  it('K-07 a delay of 700 ms costs no lease while the round trip stays under the operation timeout', async () => {
    await using proxy = await proxied();
    await using holdfast = await openAt(proxy);
    const options = { ttl: '6s', renewEvery: '500ms', operationTimeout: '1.6s' };
    const lease = await take(holdfast, 'slow', options);
    using watch = new LeaseWatch(lease);
    await proxy.delay(350);
    for (let i = 0; i < 3; i++) await nextEvent(holdfast, 'lease.renewed');
    const second = await take(holdfast, 'slow-second', options);
    expect(second.remainingMs()).toBeLessThan(validMs(6_000) - 650);
    expect(watch.states).toEqual(['held']);
    await second.release();
    await lease.release();
  });
});

describe.concurrent('replies that are lost after the request was carried out', () => {
  it('K-03 K-07 make an acquire unknown; the orphan is given back, and others get the key', async () => {
    await using proxy = await proxied();
    await using holdfast = await openAt(proxy);
    await using other = await openAt(redis);
    const returned = nextEvent(holdfast, 'lease.returned');
    await proxy.loseReplies();
    const outcome = codeOf(holdfast.acquire('orphan', { ...LONG, holder: 'w' }));
    await until(async () => (await redis.cli('GET', 'lease:orphan')) === 'w', {
      what: 'the grant',
    });
    expect(await outcome).toBe('OUTCOME_UNKNOWN');
    await proxy.pass();
    const { fence } = await returned;
    const next = await take(other, 'orphan', SHORT);
    expectRising([fence, next.fence]);
  });

  it('K-01 K-03 an acquire repeated by the same named holder gets the key, and keeps it', async () => {
    await using proxy = await proxied();
    await using holdfast = await openAt(proxy);
    await proxy.loseReplies();
    const outcome = codeOf(holdfast.acquire('repeat', { ...SHORT, holder: 'w' }));
    await until(async () => (await redis.cli('GET', 'lease:repeat')) === 'w', {
      what: 'the grant',
    });
    const orphaned = Number(await redis.cli('GET', 'fence:{lease:repeat}'));
    expect(await outcome).toBe('OUTCOME_UNKNOWN');
    await proxy.pass();
    const lease = await until(() => take(holdfast, 'repeat', { ...SHORT, holder: 'w' }), {
      what: 'the second acquire',
    });
    expectRising([orphaned, lease.fence]);
    await nextEvent(holdfast, 'lease.renewed');
    expect(await redis.cli('GET', 'lease:repeat')).toBe('w');
    expect(Number(await redis.cli('GET', 'fence:{lease:repeat}'))).toBe(lease.fence);
    expect(lease.isHeld()).toBe(true);
  });

  it('K-03 a release whose answer is lost never ends the newer tenure of the same named holder', async () => {
    await using proxy = await proxied();
    await using holdfast = await openAt(proxy);
    await using other = await openAt(redis);
    const first = await take(holdfast, 'unheard', { ...SHORT, holder: 'w' });
    await proxy.loseReplies();
    expect(await first.release()).toEqual({ released: false, reason: 'unknown' });
    await proxy.pass();
    const second = await until(() => take(holdfast, 'unheard', { ...SHORT, holder: 'w' }), {
      what: 'the second acquire',
    });
    await expectKept(second, holdfast, other);
    expectRising([first.fence, second.fence]);
  });

  it('K-03 K-08 letting go of a lease after it ran out never ends the newer tenure of the same named holder', async () => {
    await using proxy = await proxied();
    await using holdfast = await openAt(proxy);
    await using other = await openAt(redis);
    const first = await take(holdfast, 'ranout', { ...SHORT, holder: 'w' });
    using watch = new LeaseWatch(first);
    await proxy.halfOpen();
    await watch.neverPassesAfter(hostMs() + SHORT_VALID_MS);
    await proxy.pass();
    expect(await first.release()).toEqual({ released: false, reason: 'expired' });
    const second = await until(() => take(holdfast, 'ranout', { ...SHORT, holder: 'w' }), {
      what: 'the second acquire',
      deadlineMs: 10_000,
    });
    await expectKept(second, holdfast, other);
  });
});

describe.concurrent('requests that are carried out late', () => {
  it('K-03 a release held back on the way does not end the same holder’s newer tenure', async () => {
    await using proxy = await proxied();
    await using holdfast = await openAt(proxy);
    const first = await take(holdfast, 'late', { ...SHORT, holder: 'w' });
    await proxy.holdRequests();
    expect(await first.release()).toEqual({ released: false, reason: 'unknown' });
    await proxy.pass();
    const second = await until(() => take(holdfast, 'late', { ...SHORT, holder: 'w' }), {
      what: 'the second acquire',
    });
    const before = await redis.info('commandstats');
    proxy.releaseHeld();
    await until(
      async () =>
        (await redis.info('commandstats')).cmdstat_evalsha !== before.cmdstat_evalsha ||
        (await redis.info('commandstats')).cmdstat_eval !== before.cmdstat_eval,
      { what: 'the late release' },
    );
    await nextEvent(holdfast, 'lease.renewed');
    expect(await redis.cli('GET', 'lease:late')).toBe('w');
    expect(Number(await redis.cli('GET', 'fence:{lease:late}'))).toBe(second.fence);
    expect(second.isHeld()).toBe(true);
    expectRising([first.fence, second.fence]);
  });

  it('K-01 K-03 an acquire held back on the way does not end the same holder’s newer tenure, and leaves no orphan behind it', async () => {
    await using proxy = await proxied();
    await using holdfast = await openAt(proxy);
    await using other = await openAt(redis);
    await proxy.holdRequests();
    const outcome = codeOf(holdfast.acquire('overtaken', { ...LONG, holder: 'w' }));
    expect(await outcome).toBe('OUTCOME_UNKNOWN');
    await proxy.pass();
    const lease = await until(() => take(holdfast, 'overtaken', { ...SHORT, holder: 'w' }), {
      what: 'the second acquire',
    });
    proxy.releaseHeld();
    // Carried out late, it mints a fence that nobody was told of.
    await until(
      async () => Number(await redis.cli('GET', 'fence:{lease:overtaken}')) > lease.fence,
      {
        what: 'the late acquire',
      },
    );
    await nextEvent(holdfast, 'lease.renewed');
    expect(lease.isHeld()).toBe(true);
    expect(await other.acquire('overtaken', SHORT)).toMatchObject({ ok: false, holder: 'w' });
    await lease.release();
    const next = await take(other, 'overtaken', { ...SHORT, wait: '10s' });
    expectRising([lease.fence, next.fence]);
  });

  it('K-08 K-04 once a release is on its way, no check of the old holder passes beside a new one', async () => {
    await using proxy = await proxied();
    await using holdfast = await openAt(proxy);
    await using other = await openAt(redis);
    const first = await take(holdfast, 'beside', { ttl: '6s' });
    using watch = new LeaseWatch(first);
    await proxy.loseReplies();
    const released = first.release();
    const second = await until(() => take(other, 'beside', { ttl: '6s' }), {
      what: 'the next grant',
    });
    const grantedMs = hostMs();
    await released;
    expect(second.isHeld()).toBe(true);
    expect(watch.lastAssertedMs).toBeLessThanOrEqual(grantedMs);
  });
});
