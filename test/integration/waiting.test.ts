import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Holdfast } from '../../src/index.ts';
import { FaultProxy } from '../../testing/fakes/fault-proxy.ts';
import type { Message } from '../support/child.ts';
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
import { expectRising, hostMs, SHORT } from './support/lease-watch.ts';
import { type Lessee, startLessee } from './support/lessee.ts';

leaveNothingBehind();

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
  await warmUp(redis);
});
afterAll(() => redis.stop());

/** Whoever gets the key long before this was woken: no expiry can have told it. */
const TTL_MS = 30_000;
const LONG_BEFORE_MS = 12_000;
/** A second is promised; the rest is for a busy machine. */
const FROZEN_PASSED_MS = 3_000;
const OPTIONS = { ttl: TTL_MS };
const WAITING = { ...OPTIONS, wait: '25s' };

async function inLine(key: string, count: number, server = redis): Promise<void> {
  const isLong = async () => (await server.cli('ZCARD', `line:{lease:${key}}`)) === count;
  await until(isLong, { what: `${count} in line for ${key}` });
}

/** How many scripts clients have run on a server. */
async function scriptsRun(server: RedisServer): Promise<number> {
  const stats = await server.info('commandstats');
  const calls = (name: string) => Number(/calls=(\d+)/.exec(stats[name] ?? '')?.[1] ?? 0);
  return calls('cmdstat_evalsha') + calls('cmdstat_eval');
}

/** Lets go of a lease, and measures how long the next in line takes to have it. */
async function handOver(
  from: Holdfast,
  key: string,
  release: () => Promise<unknown>,
  waiting: Promise<Message>,
) {
  const inspected = await from.inspect(key);
  if (inspected.kind !== 'held') throw new Error(`'${key}' is not held`);
  const startMs = hostMs();
  await release();
  const next = await waiting;
  expect(hostMs() - startMs).toBeLessThan(LONG_BEFORE_MS);
  expectRising([inspected.fence, Number(next.fence)]);
}

const waits = (lessee: Lessee, key: string, options: object = WAITING) =>
  lessee.tell('acquire', { key, options }, 28_000);

describe.concurrent('waiting for a key that another process holds', () => {
  it('K-10 asks nothing while it waits, and is woken by the release', async () => {
    await using quiet = await startRedis();
    await using holdfast = await openAt(quiet);
    await using waiter = await startLessee(quiet.url);
    const lease = await take(holdfast, 'k', OPTIONS);
    const waiting = waits(waiter, 'k');
    await inLine('k', 1, quiet);
    const before = await scriptsRun(quiet);
    const sinceMs = hostMs();
    await until(() => hostMs() - sinceMs > 2_000, { what: 'two seconds of watching' });
    expect(await scriptsRun(quiet)).toBe(before);
    await handOver(holdfast, 'k', () => lease.release(), waiting);
    expect(await waiting).toMatchObject({ ok: true });
    expect(await waiter.end()).toBe(0);
  });

  it('K-10 a waiter that gives up makes room: the next is woken', async () => {
    await using holdfast = await openAt(redis);
    await using quitter = await openAt(redis);
    await using waiter = await startLessee(redis.url);
    const lease = await take(holdfast, 'quit', OPTIONS);
    const abort = new AbortController();
    const given = codeOf(quitter.acquire('quit', { ...WAITING, signal: abort.signal }));
    await inLine('quit', 1);
    const waiting = waits(waiter, 'quit');
    await inLine('quit', 2);
    abort.abort(Object.assign(new Error('enough'), { code: 'ENOUGH' }));
    expect(await given).toBe('ENOUGH');
    await inLine('quit', 1);
    await handOver(holdfast, 'quit', () => lease.release(), waiting);
    expect(await waiter.end()).toBe(0);
  });

  it('B-02 waiters that are frozen do not keep the key from one that runs', async () => {
    await using holdfast = await openAt(redis);
    await using first = await startLessee(redis.url);
    await using second = await startLessee(redis.url);
    await using waiter = await startLessee(redis.url);
    const lease = await take(holdfast, 'late', OPTIONS);
    const aborting = { key: 'late', options: WAITING, abortAfterMs: 2_000 };
    const given = [first, second].map((frozen) => frozen.tell('acquire', aborting));
    await inLine('late', 2);
    const waiting = waits(waiter, 'late');
    await inLine('late', 3);
    for (const frozen of [first, second]) await frozen.child.freeze();
    const releasedMs = hostMs();
    await lease.release();
    expect(await waiting).toMatchObject({ ok: true });
    expect(hostMs() - releasedMs).toBeLessThan(FROZEN_PASSED_MS);
    await until(() => hostMs() - releasedMs > 2_100, { what: 'their signals to be due' });
    for (const frozen of [first, second]) await frozen.child.thaw();
    for (const outcome of given) expect(await outcome).toMatchObject({ error: expect.anything() });
    for (const thawed of [first, second]) expect(await thawed.end()).toBe(0);
  });

  it('K-10 a waiter that was killed in the line does not swallow the wake of the next', async () => {
    await using holdfast = await openAt(redis);
    await using dead = await startLessee(redis.url);
    await using waiter = await startLessee(redis.url);
    const lease = await take(holdfast, 'dead', OPTIONS);
    const never = waits(dead, 'dead').catch(() => 'dead');
    await inLine('dead', 1);
    const waiting = waits(waiter, 'dead');
    await inLine('dead', 2);
    await dead.child.kill();
    expect(await never).toBe('dead');
    await handOver(holdfast, 'dead', () => lease.release(), waiting);
    expect(await waiter.end()).toBe(0);
  });

  it('K-10 the signal connection cut during the release costs time, not the key', async () => {
    await using cut = await startRedis();
    await using holdfast = await openAt(cut);
    await using waiter = await startLessee(cut.url);
    const lease = await take(holdfast, 'k', OPTIONS);
    const waiting = waits(waiter, 'k');
    await inLine('k', 1, cut);
    await Promise.all([
      handOver(holdfast, 'k', () => lease.release(), waiting),
      cut.cli('CLIENT', 'KILL', 'TYPE', 'pubsub'),
    ]);
    // And the other way round: the connection is gone before the release.
    const again = await waiter.tell('release', { key: 'k' });
    expect(again).toMatchObject({ released: true });
    const held = await take(holdfast, 'k', OPTIONS);
    const second = waits(waiter, 'k');
    await inLine('k', 1, cut);
    await cut.cli('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await handOver(holdfast, 'k', () => held.release(), second);
    expect(await waiter.end()).toBe(0);
  });
});

describe.concurrent('waiting in one process', () => {
  it('K-10 serves in the order of coming', async () => {
    await using holdfast = await openAt(redis);
    const order: number[] = [];
    const first = await take(holdfast, 'order', OPTIONS);
    const turns = [1, 2, 3, 4, 5].map(async (n) => {
      const lease = await take(holdfast, 'order', WAITING);
      order.push(n);
      await lease.release();
      return lease.fence;
    });
    await inLine('order', 1);
    await first.release();
    expectRising([first.fence, ...(await Promise.all(turns))]);
    expect(order).toEqual([1, 2, 3, 4, 5]);
  });

  it('K-10 a free key is granted however short the patience, and one held by the process itself is a refusal', async () => {
    await using proxy = await FaultProxy.start({ target: { host: '127.0.0.1', port: redis.port } });
    await using holdfast = await openAt(proxy);
    const impatient = { ...OPTIONS, wait: 1 };
    await (await take(holdfast, 'impatient', WAITING)).release();
    // No answer comes before the patience is over.
    await proxy.delay(50);
    const both = [1, 2].map(() => holdfast.acquire('impatient', impatient));
    const [first, second] = await Promise.all(both);
    expect([first, second]).toMatchObject([{ ok: true }, { ok: false, reason: 'held' }]);
    await holdfast.close({ within: 0 });
  });

  it('K-10 sets of keys taken crosswise never block each other for ever, and are taken whole or not at all', async () => {
    await using one = await openAt(redis);
    await using two = await openAt(redis);
    let inside = 0;
    const rounds = async (holdfast: Holdfast, keys: string[]) => {
      for (let i = 0; i < 10; i++) {
        await using set = await holdfast.acquireAll(keys, WAITING);
        inside += 1;
        expect(inside).toBe(1);
        expect(set.isHeld()).toBe(true);
        await new Promise((resolve) => setImmediate(resolve));
        inside -= 1;
      }
    };
    await Promise.all([rounds(one, ['x', 'y', 'z']), rounds(two, ['z', 'y', 'x'])]);
    const held = await take(one, 'y', OPTIONS);
    expect(await codeOf(two.acquireAll(['x', 'y', 'z'], OPTIONS))).toBe('LEASE_HELD');
    expect(await redis.cli('EXISTS', 'lease:x', 'lease:z')).toBe(0);
    await held.release();
  });
});

describe.concurrent('waiting while Redis is frozen', () => {
  it('K-10 K-07 ends when the patience does, and at once when its signal fires', async () => {
    await using frozen = await startRedis();
    await using holdfast = await openAt(frozen);
    const abort = new AbortController();
    await frozen.freeze();
    try {
      const startMs = hostMs();
      const patient = codeOf(holdfast.acquire('k', { ...SHORT, wait: '1s' })).then(
        () => hostMs() - startMs,
      );
      const aborted = codeOf(
        holdfast.acquire('k', { ...SHORT, wait: '20s', signal: abort.signal }),
      ).then(() => hostMs() - startMs);
      abort.abort();
      // Aborting needs no answer of anybody; patience may last for one operation (800 ms) more.
      expect(await aborted).toBeLessThan(1_000);
      expect(await patient).toBeLessThan(4_000);
    } finally {
      await frozen.thaw();
    }
  });

  it('K-10 K-07 a waiter is served once Redis goes on, and the first answer counts', async () => {
    await using frozen = await startRedis();
    await using holdfast = await openAt(frozen);
    await frozen.freeze();
    const waiting = take(holdfast, 'k', { ...SHORT, wait: '20s' });
    const refused = nextEvent(holdfast, 'store.disconnected');
    await refused;
    await frozen.thaw();
    const lease = await waiting;
    await nextEvent(holdfast, 'lease.renewed');
    expect(lease.isHeld()).toBe(true);
  });
});
