import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort, type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { codeOf, leaveNothingBehind, openAt, take, warmUp } from './support/holdfasts.ts';
import { expectRising, hostMs, LeaseWatch, SHORT, SHORT_VALID_MS } from './support/lease-watch.ts';
import { startLessee } from './support/lessee.ts';

leaveNothingBehind();

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
  await warmUp(redis);
});
afterAll(() => redis.stop());

const failure = (doing: Promise<unknown>) =>
  doing.then(
    () => null,
    (error: Error) => error,
  );

describe.concurrent('opening', () => {
  it('K-07 a store that is not there is STORE_UNREACHABLE, quickly', async () => {
    const port = await freePort();
    const startMs = hostMs();
    expect(await failure(openAt({ port }))).toMatchObject({
      code: 'STORE_UNREACHABLE',
      operation: 'connect',
    });
    expect(hostMs() - startMs).toBeLessThan(3_000);
  });

  it('K-07 a store that takes connections and says nothing is STORE_UNREACHABLE, too', async () => {
    await using silent = await startRedis();
    await silent.freeze();
    const startMs = hostMs();
    expect(await codeOf(openAt(silent))).toBe('STORE_UNREACHABLE');
    expect(hostMs() - startMs).toBeLessThan(9_000);
  });

  it('K-07 K-16 a wrong password is STORE_REFUSED, with what to check and without the password', async () => {
    await using locked = await startRedis();
    await locked.cli('CONFIG', 'SET', 'requirepass', 'right');
    const wrong = await failure(openAt({ url: `redis://default:wr0ng@127.0.0.1:${locked.port}` }));
    expect(wrong).toMatchObject({ code: 'STORE_REFUSED' });
    expect(wrong?.message).toMatch(/WRONGPASS.*check the URL/s);
    expect(JSON.stringify([wrong, wrong?.message, wrong?.stack])).not.toContain('wr0ng');
    const none = await failure(openAt({ port: locked.port }));
    expect(none).toMatchObject({ code: 'STORE_REFUSED' });
    expect(none?.message).toContain('redis://user:password@');
    await using holdfast = await openAt({ url: `redis://default:right@127.0.0.1:${locked.port}` });
    expect((await holdfast.examine()).store).toBe(`redis://127.0.0.1:${locked.port}`);
  });
});

describe.concurrent('closing', () => {
  it('K-07 K-08 while Redis is frozen ends within its bound, with leases, waiters and unknown outcomes about', async () => {
    await using frozen = await startRedis();
    await using holdfast = await openAt(frozen);
    const lease = await take(holdfast, 'k', SHORT);
    using watch = new LeaseWatch(lease);
    await frozen.freeze();
    const frozenMs = hostMs();
    const waiting = codeOf(holdfast.acquire('k', { ...SHORT, wait: '20s' }));
    const unknown = codeOf(holdfast.acquire('other', SHORT));
    const startMs = hostMs();
    await holdfast.close({ within: '1s' });
    // One second for the work, one operation (800 ms) to give back what is in doubt; a busy machine may add some.
    expect(hostMs() - startMs).toBeLessThan(4_000);
    expect(await waiting).toBe('CLOSED');
    expect(['OUTCOME_UNKNOWN', 'CLOSED']).toContain(await unknown);
    await until(() => hostMs() > frozenMs + SHORT_VALID_MS + 30, { what: 'the deadline to pass' });
    expect(Math.max(watch.lastHeldMs, watch.lastAssertedMs)).toBeLessThanOrEqual(
      frozenMs + SHORT_VALID_MS,
    );
    await frozen.thaw();
  });

  it('K-07 while attempts to connect go unanswered ends at once, and lets the process end', async () => {
    await using deaf = await startRedis({ args: ['--tcp-backlog', '1'] });
    await using lessee = await startLessee(deaf.url);
    await deaf.freeze();
    const deafMs = hostMs();
    // Whoever comes after the queue is full is not even refused.
    const crowd = Array.from({ length: 10 }, () => connect(deaf.port, '127.0.0.1'));
    for (const socket of crowd) socket.on('error', () => {});
    try {
      const asked = { key: 'k', options: SHORT };
      expect(await lessee.tell('acquire', asked)).toMatchObject({ error: 'OUTCOME_UNKNOWN' });
      expect(await lessee.tell('acquire', asked)).toMatchObject({ error: 'STORE_UNREACHABLE' });
      // Attempts have become patient by now: the one under way has seconds left.
      await until(() => hostMs() - deafMs > 5_000, { what: 'a while', deadlineMs: 10_000 });
      const startMs = hostMs();
      expect(await lessee.end()).toBe(0);
      expect(hostMs() - startMs).toBeLessThan(2_500);
    } finally {
      for (const socket of crowd) socket.destroy();
    }
  });

  it('K-10 rejects waiters with CLOSED, and later calls too', async () => {
    await using holdfast = await openAt(redis);
    await using other = await openAt(redis);
    const lease = await take(other, 'waiters');
    const waiting = [1, 2, 3].map(() => codeOf(holdfast.acquire('waiters', { wait: '20s' })));
    const inLine = async () => (await redis.cli('ZCARD', 'line:{lease:waiters}')) === 1;
    await until(inLine, { what: 'the line' });
    await holdfast.close();
    expect(await Promise.all(waiting)).toEqual(['CLOSED', 'CLOSED', 'CLOSED']);
    expect(await codeOf(holdfast.acquire('waiters'))).toBe('CLOSED');
    expect(lease.isHeld()).toBe(true);
  });

  it('K-03 K-08 with acquires under way leaves no orphan: others have the keys long before their TTL', async () => {
    await using other = await openAt(redis);
    const keys = [0, 1, 2, 3, 4].map((turns) => `under-way-${turns}`);
    for (const [turns, key] of keys.entries()) {
      const holdfast = await openAt(redis);
      const outcome = codeOf(take(holdfast, key, { ttl: '30s' }));
      for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
      await holdfast.close();
      await outcome;
    }
    await Promise.all(keys.map((key) => take(other, key, { ttl: '30s', wait: '10s' })));
  });

  it('K-13 K-08 ends work under way: its signal fires, it lets go, and the key is free', async () => {
    await using holdfast = await openAt(redis);
    await using other = await openAt(redis);
    const work = holdfast.withLease('work', ({ signal }) => {
      return new Promise<string>((resolve) => {
        signal.addEventListener('abort', () => resolve(String(signal.reason.code)));
      });
    });
    await until(() => holdfast.held === 1, { what: 'the work to begin' });
    await holdfast.close();
    expect(await work).toBe('CLOSED');
    expect((await take(other, 'work')).isHeld()).toBe(true);
  });

  it('K-08 K-14 leaves what nobody lets go of to run out, and says so', async () => {
    const holdfast = await openAt(redis);
    const abandoned: unknown[] = [];
    holdfast.on('lease.abandoned', (facts) => abandoned.push(facts));
    expect(await holdfast.acquire('stubborn', SHORT)).toMatchObject({ ok: true });
    await holdfast.close({ within: 50 });
    expect(abandoned).toMatchObject([{ key: 'stubborn', why: expect.any(String) }]);
    await using other = await openAt(redis);
    expect(await other.acquire('stubborn', SHORT)).toMatchObject({ ok: false });
    await take(other, 'stubborn', { ...SHORT, wait: '10s' });
  });

  it('K-08 lets the process end by itself, also with waiters and leases about', async () => {
    await using lessee = await startLessee(redis.url);
    await using second = await startLessee(redis.url);
    await lessee.tell('acquire', { key: 'ends', options: { ttl: '5s' } });
    second.child.send({ do: 'acquire', key: 'ends', options: { ttl: '5s', wait: '20s' } });
    const inLine = async () => (await redis.cli('ZCARD', 'line:{lease:ends}')) === 1;
    await until(inLine, { what: 'the line' });
    expect(await Promise.all([lessee.end(), second.end()])).toEqual([0, 0]);
    expect(await second.child.next('acquire')).toMatchObject({ error: 'CLOSED' });
  });
});

describe.concurrent('letting go after the loss', () => {
  it('K-08 K-05 is a no-op for the new owner', async () => {
    await using holdfast = await openAt(redis);
    await using other = await openAt(redis);
    const lease = await take(holdfast, 'taken', { ...SHORT, holder: 'a' });
    using watch = new LeaseWatch(lease);
    await redis.cli('DEL', 'lease:taken');
    const next = await take(other, 'taken', SHORT);
    const takenMs = hostMs();
    await watch.neverPassesAfter(takenMs + SHORT_VALID_MS);
    expect(await lease.release()).toEqual({ released: false, reason: 'taken_over' });
    expect(await other.inspect('taken')).toMatchObject({ kind: 'held', fence: next.fence });
    expect(next.isHeld()).toBe(true);
    expectRising([lease.fence, next.fence]);
  });
});
