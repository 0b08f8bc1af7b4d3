import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Holdfast, OpenOptions } from '../../src/index.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { leaveNothingBehind, nextEvent, openAt, take } from './support/holdfasts.ts';
import { expectRising, hostMs, LeaseWatch, SHORT } from './support/lease-watch.ts';

leaveNothingBehind();

const MARGIN_MS = 1_000;
/** All leases of these tests fit into it. */
const BOUND = SHORT.ttl;
const ON = { quarantine: 'on', maxTtl: BOUND } as const;

/** Has been up longer than the bound: a store that was never used grants at once on it. */
let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
  const isOld = async () => Number((await redis.info('server')).uptime_in_seconds) >= 5;
  await until(isOld, { what: 'Redis to be five seconds old', deadlineMs: 10_000, every: 100 });
});
afterAll(() => redis.stop());

/** Tests share the server; each has a prefix, and so a marker, of its own. */
const openOn = (prefix: string, maxTtl: OpenOptions['maxTtl'] = BOUND): Promise<Holdfast> =>
  openAt(redis, { quarantine: 'on', prefix, maxTtl });

/** What FLUSHALL would do, for one prefix. */
async function flush(prefix: string): Promise<void> {
  const pattern = `*${prefix}*`;
  const script = "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end";
  await redis.cli('EVAL', script, '0', pattern);
}

describe.concurrent('a store that was never used', () => {
  it('K-15 grants at once if it has been up for longer than the bound', async () => {
    await using holdfast = await openOn('old:');
    expect((await take(holdfast, 'k', SHORT)).isHeld()).toBe(true);
  });

  it('K-15 K-14 waits if it was started just now, and says for how long', async () => {
    // INFO counts in whole seconds of the wall clock: a server started late in one is a second old early in the next.
    const isLate = () => Date.now() % 1_000 > 800 && Date.now() % 1_000 < 900;
    await until(isLate, { what: 'the end of a second', every: 1 });
    const startedMs = hostMs();
    await using young = await startRedis();
    const isOlder = async () => (await young.info('server')).uptime_in_seconds === '1';
    await until(isOlder, { what: 'the next second' });
    await using holdfast = await openAt(young, { quarantine: 'on', maxTtl: '6s' });
    const quarantined = nextEvent(holdfast, 'store.quarantined');
    // Long enough that a slow machine does not get here when it is over.
    const options = { ttl: 6_000 };
    const busy = await holdfast.acquire('k', options);
    expect(busy).toMatchObject({ ok: false, reason: 'quarantine' });
    expect(busy).not.toHaveProperty('holder');
    expect(await quarantined).toMatchObject({ keyspace: 'lease' });
    await take(holdfast, 'k', { ...options, wait: '20s' });
    expect(hostMs() - startedMs).toBeGreaterThanOrEqual(options.ttl + MARGIN_MS);
  });
});

describe.concurrent('a store that was restarted', () => {
  it('K-15 empty: a fresh client waits for the bound and a second', async () => {
    await using restarted = await startRedis();
    await restarted.kill();
    const deadMs = hostMs();
    await restarted.restart({ empty: true });
    await using holdfast = await openAt(restarted, ON);
    await take(holdfast, 'k', { ...SHORT, wait: '10s' });
    expect(hostMs() - deadMs).toBeGreaterThanOrEqual(SHORT.ttl + MARGIN_MS);
  });

  it('K-15 with its data: renewals go on, new grants wait, and fences go on growing', async () => {
    await using restarted = await startRedis({ appendonly: true });
    await using holdfast = await openAt(restarted, ON);
    const lease = await take(holdfast, 'k', { ...SHORT, wait: '10s' });
    using watch = new LeaseWatch(lease);
    await restarted.kill();
    const deadMs = hostMs();
    await restarted.restart();
    await using other = await openAt(restarted, ON);
    expect(await other.acquire('k', SHORT)).toMatchObject({ ok: false, reason: 'quarantine' });
    const next = await take(other, 'free', { ...SHORT, wait: '10s' });
    expect(hostMs() - deadMs).toBeGreaterThanOrEqual(SHORT.ttl + MARGIN_MS);
    expect(lease.isHeld()).toBe(true);
    expect(watch.states).not.toContain('lost');
    expectRising([lease.fence, next.fence]);
  });
});

describe.concurrent('a key that vanished under its holder', () => {
  it.each(['on', 'off'] as const)(
    'K-15 (quarantine %s) is put back with the same fence, where only the key was deleted',
    async (quarantine) => {
      const prefix = `del-${quarantine}:`;
      await using holdfast = await openAt(redis, { quarantine, prefix, maxTtl: BOUND });
      await using other = await openAt(redis, { quarantine, prefix, maxTtl: BOUND });
      const lease = await take(holdfast, 'k', SHORT);
      using watch = new LeaseWatch(lease);
      const reasserted = nextEvent(holdfast, 'lease.reasserted');
      await redis.cli('DEL', `${prefix}lease:k`);
      expect(await reasserted).toMatchObject({ key: 'k', fence: lease.fence });
      expect(await other.acquire('k', SHORT)).toMatchObject({
        ok: false,
        holder: lease.holder,
        fence: lease.fence,
      });
      expect(watch.states).toEqual(['held']);
      expect(await lease.release()).toEqual({ released: true });
      expectRising([lease.fence, (await take(other, 'k', SHORT)).fence]);
    },
  );

  it('K-15 is put back after a flush too, and meanwhile nobody is granted it, or anything else', async () => {
    await using holdfast = await openOn('flush:');
    await using other = await openOn('flush:');
    const lease = await take(holdfast, 'k', SHORT);
    using watch = new LeaseWatch(lease);
    const reasserted = nextEvent(holdfast, 'lease.reasserted');
    const flushedMs = hostMs();
    await flush('flush:');
    for (const key of ['k', 'never used']) {
      expect(await other.acquire(key, SHORT)).toMatchObject({ ok: false, reason: 'quarantine' });
    }
    expect(await reasserted).toMatchObject({ key: 'k', fence: lease.fence });
    await take(other, 'never used', { ...SHORT, wait: '10s' });
    expect(hostMs() - flushedMs).toBeGreaterThanOrEqual(SHORT.ttl + MARGIN_MS);
    expect(await other.acquire('k', SHORT)).toMatchObject({
      ok: false,
      reason: 'held',
      fence: lease.fence,
    });
    expect(watch.states).toEqual(['held']);
  });

  it('K-15 stops grants to a client that came after the flush and took the store for a new one', async () => {
    await using holdfast = await openOn('newcomer:');
    await using silent = await openOn('newcomer:');
    const noticed = await take(holdfast, 'noticed', SHORT);
    const long = { ttl: 3_000, renewEvery: 1_300, operationTimeout: 500 };
    const unnoticed = await take(silent, 'unnoticed', long);
    const reasserted = nextEvent(holdfast, 'lease.reasserted');
    await flush('newcomer:');
    await using newcomer = await openOn('newcomer:');
    // Nobody has told it yet: the flush has no other witness than the holders.
    await take(newcomer, 'unrelated', SHORT);
    expect(await reasserted).toMatchObject({ key: 'noticed', fence: noticed.fence });
    const result = await newcomer.acquire('unnoticed', long);
    expect({ stillHeld: unnoticed.isHeld(), result }).toMatchObject({
      stillHeld: true,
      result: { ok: false, reason: 'quarantine' },
    });
  });
});

describe.concurrent('quarantine', () => {
  it('K-15 K-12 delays each keyspace by its own bound', async () => {
    await using holdfast = await openOn('class:', { lease: 1_500, workflow: 2_900 });
    const long = { class: 'workflow' } as const;
    await (await take(holdfast, 'short')).release();
    await (await take(holdfast, 'long', long)).release();
    const flushedMs = hostMs();
    await flush('class:');
    expect(await holdfast.acquire('long', long)).toMatchObject({ ok: false, reason: 'quarantine' });
    await take(holdfast, 'short', { wait: '10s' });
    expect(await holdfast.acquire('long', long)).toMatchObject({ ok: false, reason: 'quarantine' });
    await take(holdfast, 'long', { ...long, wait: '10s' });
    expect(hostMs() - flushedMs).toBeGreaterThanOrEqual(2_900 + MARGIN_MS);
  });

  it('K-15 K-12 the store records the bounds before the first grant, and refuses a client with others', async () => {
    await using holdfast = await openOn('bounds:');
    expect(await redis.cli('HGET', 'bounds:holdfast:marker', 'maxttl:lease')).toBe(String(BOUND));
    expect(await holdfast.maxTtl()).toMatchObject({ lease: BOUND, workflow: BOUND });
    const other = openAt(redis, { prefix: 'bounds:' });
    await expect(other).rejects.toMatchObject({ code: 'STORE_UNSUITABLE' });
    await expect(other).rejects.toThrow(/3000 ms there and 30000 ms here/);
  });
});
