import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { type Holdfast, open } from '../../src/index.ts';
import { encodeCommand, ReplyReader } from '../../src/store/redis/client/wire.ts';
import { startSentinels } from '../support/redis-sentinel.ts';
import { startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { codeOf, leaveNothingBehind, nextEvent, openAt, take } from './support/holdfasts.ts';
import { expectRising, hostMs, LeaseWatch, SHORT, validMs } from './support/lease-watch.ts';
import { startLessee } from './support/lessee.ts';

leaveNothingBehind();

/** Outlasts a failover of the quick sentinels. */
const LASTING = { ttl: 9_000, renewEvery: 500, operationTimeout: 1_000 } as const;
const QUIET = { 'store.warned': () => {} };
const BOUND = { maxTtl: LASTING.ttl } as const;
const ON = { quarantine: 'on', ...BOUND } as const;

/** A sentinel that answers what it is told to, and nothing else. */
async function startPuppet(answers: Readonly<Record<string, string[]>>) {
  const server = createServer((socket) => {
    const reader = new ReplyReader((command) => {
      const [, verb = ''] = command as string[];
      socket.write(encodeCommand(answers[verb] ?? []));
    });
    socket.on('data', (chunk: Buffer) => reader.feed(chunk));
    socket.on('error', () => {});
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.dispose]: () => void server.close() };
}

/** A store on which nothing is in quarantine: it was used a TTL ago, or is old. */
async function ready(holdfast: Holdfast, options: { ttl: number }): Promise<void> {
  await (await take(holdfast, 'ready', { ...options, wait: '20s' })).release();
}

describe.concurrent('a primary behind sentinels', () => {
  it('K-02 K-15 K-10 is killed: leases go on under their fences, newcomers wait out the quarantine, waiters are woken', async () => {
    await using watched = await startSentinels();
    const url = watched.url();
    await using holdfast = await openAt({ url }, ON);
    await using other = await openAt({ url }, ON);
    await using waiter = await startLessee(url, BOUND);
    await ready(holdfast, LASTING);
    const lease = await take(holdfast, 'k', LASTING);
    using watch = new LeaseWatch(lease);
    const old = await watched.primary();
    const [replica] = await watched.replicas();
    const isThere = async () => (await replica?.cli('EXISTS', 'lease:k')) === 1;
    await until(isThere, { what: 'the replica to be in step' });
    const options = { ttl: '9s', wait: '25s' };
    const waiting = waiter.tell('acquire', { key: 'k', options }, 28_000);
    const inLine = async () => (await old.cli('ZCARD', 'line:{lease:k}')) === 1;
    await until(inLine, { what: 'the line' });
    await old.kill();
    const deadMs = hostMs();
    await nextEvent(holdfast, 'store.connected');
    await nextEvent(holdfast, 'lease.renewed');
    expect(await other.acquire('fresh', LASTING)).toMatchObject({
      ok: false,
      reason: 'quarantine',
    });
    const fresh = await take(other, 'fresh', { ...LASTING, wait: '20s' });
    expect(hostMs() - deadMs).toBeGreaterThanOrEqual(LASTING.ttl + 1_000);
    expect([lease.isHeld(), watch.states.includes('lost')]).toEqual([true, false]);
    expect((await holdfast.inspect('k')) as object).toMatchObject({ fence: lease.fence });
    const releasedMs = hostMs();
    expect(await lease.release()).toEqual({ released: true });
    const next = await waiting;
    expect(next).toMatchObject({ ok: true });
    expect(hostMs() - releasedMs).toBeLessThan(6_000);
    expectRising([lease.fence, Number(next.fence)]);
    expect(fresh.isHeld()).toBe(true);
    expect(await waiter.end()).toBe(0);
  });

  it.each(['the URL', 'an ioredis client'])(
    'K-03 K-15 by %s: is replaced by hand and goes on taking writes: we leave it within seconds, and no two hold a key',
    async (way) => {
      await using watched = await startSentinels({ asShipped: true });
      const sentinels = watched.sentinels.map(({ port }) => ({ host: '127.0.0.1', port }));
      const client = new Redis({ sentinels, name: 'mymaster', lazyConnect: true });
      await using holdfast =
        way === 'the URL'
          ? await openAt({ url: watched.url() }, ON)
          : await open(client, { ...ON, on: QUIET });
      await using other = await openAt({ url: watched.url() }, ON);
      await ready(holdfast, SHORT);
      const old = await watched.primary();
      const lease = await take(holdfast, 'k', SHORT);
      using watch = new LeaseWatch(lease);
      const left = nextEvent(holdfast, 'store.disconnected', { deadlineMs: 20_000 });
      await watched.sentinels[0]?.cli('SENTINEL', 'FAILOVER', 'mymaster');
      const isNamed = async () => (await watched.primary()) !== old;
      await until(isNamed, { what: 'another primary', deadlineMs: 15_000 });
      const namedMs = hostMs();
      await left;
      expect(hostMs() - namedMs).toBeLessThan(3_500);
      const [mine, its] = await Promise.all([
        until(() => (lease.isHeld() ? holdfast.inspect('k') : undefined), { what: 'the lease' }),
        other.acquire('k', { ...SHORT, wait: '6s' }),
      ]);
      expect(mine).toMatchObject({ holder: lease.holder, fence: lease.fence });
      expect(its).toMatchObject({ ok: false });
      expect(watch.states).not.toContain('lost');
      client.disconnect();
    },
  );

  it('K-04 K-07 is frozen, replaced and thawed: what it executes late does no harm', async () => {
    await using watched = await startSentinels();
    const url = watched.url();
    await using holdfast = await openAt({ url });
    await using other = await openAt({ url });
    const lease = await take(holdfast, 'k', SHORT);
    using watch = new LeaseWatch(lease);
    const old = await watched.primary();
    await old.freeze();
    const late = codeOf(holdfast.acquire('late', SHORT));
    expect(await late).toBe('OUTCOME_UNKNOWN');
    await watched.untilFailedOver(old);
    const next = await take(other, 'late', { ...SHORT, wait: '10s' });
    await old.thaw();
    const isReplica = async () => (await old.info('replication')).role === 'slave';
    await until(isReplica, { what: 'the old one to follow', deadlineMs: 15_000 });
    expect(next.isHeld()).toBe(true);
    expect(await other.inspect('late')).toMatchObject({ holder: next.holder, fence: next.fence });
    // The next primary may have renewed it in time; or the old one, thawed within the operation's timeout and not yet told that it is none.
    if (lease.state === 'lost')
      await watch.neverPassesAfter(watch.lastConfirmedMs + validMs(SHORT.ttl));
    else expect(await other.inspect('k')).toMatchObject({ fence: lease.fence });
  });

  it('K-04 K-07 is cut off from its replicas: it refuses, typed, and the lease is lost in time', async () => {
    const args = ['--min-replicas-to-write', '1', '--min-replicas-max-lag', '1'];
    await using watched = await startSentinels({ args });
    await using holdfast = await openAt({ url: watched.url() });
    const lease = await take(holdfast, 'k', SHORT);
    using watch = new LeaseWatch(lease);
    const [replica] = await watched.replicas();
    const cut = [replica, ...watched.sentinels];
    try {
      await Promise.all(cut.map((server) => server?.freeze()));
      const refusal = async () =>
        (await codeOf(holdfast.acquire('other', SHORT))) === 'STORE_REFUSED';
      await until(refusal, { what: 'NOREPLICAS' });
      const refusedMs = hostMs();
      await watch.neverPassesAfter(refusedMs + validMs(SHORT.ttl));
      expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST', reason: 'expired' });
      const error = await holdfast.acquire('other', SHORT).catch((thrown: Error) => thrown);
      expect(error).toMatchObject({ reply: expect.stringMatching('NOREPLICAS') });
    } finally {
      await Promise.all(cut.map((server) => server?.thaw()));
    }
  });

  it('K-15 is being replaced by a sentinel that still has its address and the new number: we go where clients are sent', async () => {
    await using old = await startRedis();
    await using promoted = await startRedis();
    // What the one that leads a failover says while it tells the replicas to follow.
    using leader = await startPuppet({
      MASTER: ['ip', '127.0.0.1', 'port', String(old.port), 'config-epoch', '7'],
      'GET-MASTER-ADDR-BY-NAME': ['127.0.0.1', String(promoted.port)],
    });
    const url = `redis+sentinel://127.0.0.1:${leader.port}/mymaster`;
    await using holdfast = await openAt({ url });
    await take(holdfast, 'k', SHORT);
    expect(await promoted.cli('EXISTS', 'lease:k')).toBe(1);
    expect(await old.cli('DBSIZE')).toBe(0);
  });

  it('K-15 a sentinel that slept through the failover does not lead us back', async () => {
    await using watched = await startSentinels();
    await using holdfast = await openAt({ url: watched.url() });
    const lease = await take(holdfast, 'k', LASTING);
    using watch = new LeaseWatch(lease);
    const [sleeper] = watched.sentinels;
    const old = await watched.primary();
    const [replica] = await watched.replicas();
    const isThere = async () => (await replica?.cli('EXISTS', 'lease:k')) === 1;
    await until(isThere, { what: 'the replica to be in step' });
    await sleeper?.freeze();
    await old.kill();
    await watched.untilFailedOver(old);
    const renewed = () => lease.state === 'lost' || (lease.isHeld() && lease.remainingMs() > 8_000);
    await until(renewed, { what: 'a renewal' });
    expect(lease.signal.reason).toBeUndefined();
    let disconnections = 0;
    holdfast.on('store.disconnected', () => {
      disconnections += 1;
    });
    await old.restart();
    await sleeper?.thaw();
    await watched.untilHealthy();
    const sinceMs = hostMs();
    await until(() => hostMs() - sinceMs > 2_000, { what: 'two looks of the watch' });
    expect(lease.signal.reason).toBeUndefined();
    expect([disconnections, lease.isHeld()]).toEqual([0, true]);
    expect(watch.states).not.toContain('lost');
  });
});
