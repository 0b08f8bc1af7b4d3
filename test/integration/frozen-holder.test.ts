import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FaultProxy } from '../../testing/fakes/fault-proxy.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { leaveNothingBehind, openAt, take } from './support/holdfasts.ts';
import { expectRising, hostMs, SHORT, SHORT_VALID_MS } from './support/lease-watch.ts';
import { type Lessee, startLessee } from './support/lessee.ts';

leaveNothingBehind();

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(async () => {
  await redis.stop();
  rmSync(folder, { recursive: true });
});

const stores: [string, () => string][] = [
  ['on Redis', () => redis.url],
  ['on one file', () => `sqlite:${join(folder, 'holdfast.db')}`],
];

async function acquireAll(lessee: Lessee, keys: readonly string[], options: object) {
  const fences: unknown[] = [];
  for (const key of keys) fences.push((await lessee.tell('acquire', { key, options })).fence);
  return fences;
}

describe.concurrent.each(stores)('a holder %s that is stopped', (_, url) => {
  it('K-04 K-11 for longer than its TTL: its very first check on waking says lost, and its fenced write is refused', async () => {
    await using lessee = await startLessee(url());
    await using holdfast = await openAt({ url: url() });
    const granted = await lessee.tell('acquire', { key: 'stopped', options: SHORT });
    await lessee.tell('watch', { key: 'stopped' });
    await lessee.tell('put', { key: 'stopped', value: 'first', fence: granted.fence });
    await lessee.child.freeze();
    const frozenMs = hostMs();

    const next = await take(holdfast, 'stopped', { ...SHORT, wait: '10s' });
    await holdfast.records.put('stopped', 'second', { fence: next.fence });
    expectRising([Number(granted.fence), next.fence]);

    await lessee.child.thaw();
    const woke = await lessee.child.next('woke');
    expect(woke).toMatchObject({
      isHeld: false,
      asserted: 'LEASE_LOST',
      aborted: true,
      state: 'lost',
    });
    expect(woke.lastPassMs).toBeLessThanOrEqual(frozenMs);
    expect(await lessee.child.next('lost')).toMatchObject({
      fence: granted.fence,
      reason: 'expired',
    });
    const late = await lessee.tell('put', { key: 'stopped', value: 'late', fence: granted.fence });
    expect(late).toMatchObject({ error: 'FENCE_STALE', seen: next.fence });
    expect(await holdfast.records.get('stopped')).toMatchObject({
      value: 'second',
      fence: next.fence,
    });
    // Letting go of what it has lost does nothing to the one who has it now.
    expect(await lessee.tell('release', { key: 'stopped' })).toMatchObject({
      released: false,
      reason: 'expired',
    });
    expect(await holdfast.inspect('stopped')).toMatchObject({ kind: 'held', fence: next.fence });
    expect(next.isHeld()).toBe(true);
    expect(await lessee.end()).toBe(0);
  });

  it('K-05 for less than its deadline: the lease is kept, with the same fence and without a gap', async () => {
    await using lessee = await startLessee(url());
    await using holdfast = await openAt({ url: url() });
    const options = { ttl: 6_000 };
    const granted = await lessee.tell('acquire', { key: 'short', options });
    await lessee.tell('watch', { key: 'short' });
    await lessee.child.freeze();
    expect(await holdfast.acquire('short', { ...options, wait: '1s' })).toMatchObject({
      ok: false,
    });
    await lessee.child.thaw();
    expect(await lessee.child.next('woke')).toMatchObject({
      isHeld: true,
      asserted: 'passes',
      state: 'held',
    });
    expect(await holdfast.inspect('short')).toMatchObject({ kind: 'held', fence: granted.fence });
    expect(await lessee.tell('release', { key: 'short' })).toMatchObject({ released: true });
    expect(await lessee.end()).toBe(0);
  });

  it('K-04 K-05 K-14 by its own event loop, past its TTL: the very next statement sees the loss, whatever it asks', async () => {
    await using lessee = await startLessee(url());
    await using holdfast = await openAt({ url: url() });
    const keys = ['isHeld', 'assertHeld', 'signal', 'state', 'remainingMs'];
    const fences = await acquireAll(lessee, keys, SHORT);
    const waiting = take(holdfast, 'isHeld', { ...SHORT, wait: '10s' });
    expect(await lessee.tell('block', { keys, ms: SHORT.ttl + 500 })).toMatchObject({
      isHeld: false,
      asserted: 'LEASE_LOST',
      aborted: true,
      reason: 'LEASE_LOST',
      state: 'lost',
      remainingMs: 0,
    });
    const lost = await lessee.child.next('lost');
    expect(lost).toMatchObject({ key: 'isHeld', fence: fences[0], reason: 'expired' });
    expectRising([Number(fences[0]), (await waiting).fence]);
    expect(await lessee.end()).toBe(0);
  });

  it('K-05 by its own event loop, for less than its deadline: the lease is kept', async () => {
    await using lessee = await startLessee(url());
    const keys = ['hiccup-1', 'hiccup-2', 'hiccup-3', 'hiccup-4', 'hiccup-5'];
    const fences = await acquireAll(lessee, keys, { ttl: 6_000 });
    expect(await lessee.tell('block', { keys, ms: 3_500 })).toMatchObject({
      isHeld: true,
      asserted: 'passes',
      aborted: false,
      state: 'held',
    });
    expect(await lessee.child.next('delayed')).toMatchObject({ lateMs: expect.any(Number) });
    const again = await lessee.tell('acquire', { key: keys[0], options: SHORT });
    expect(again).toMatchObject({ ok: false, reason: 'held', fence: fences[0] });
    expect(await lessee.end()).toBe(0);
  });

  it('K-10 K-02 for good (kill -9): a waiter in another process has the key at its expiry, not before, with a higher fence', async () => {
    await using lessee = await startLessee(url());
    await using waiter = await startLessee(url());
    const granted = await lessee.tell('acquire', { key: 'killed', options: SHORT });
    const waiting = waiter.tell('acquire', { key: 'killed', options: { ...SHORT, wait: '20s' } });
    await lessee.child.next('renewed');
    await lessee.child.next('renewed');
    await lessee.child.kill();
    const killedMs = hostMs();
    const next = await waiting;
    expect(next).toMatchObject({ ok: true });
    // Not before the dead one's own deadline, which its last renewal had moved.
    const renewals = lessee.child.received.filter(({ event }) => event === 'renewed');
    const lastSentMs = Number(renewals.at(-1)?.sentMs);
    expect(next.gotMs).toBeGreaterThanOrEqual(lastSentMs + SHORT_VALID_MS);
    expect(Number(next.gotMs) - killedMs).toBeLessThan(SHORT.ttl + 1_000);
    expectRising([Number(granted.fence), Number(next.fence)]);
    expect(await waiter.tell('release', { key: 'killed' })).toMatchObject({ released: true });
    expect(await waiter.end()).toBe(0);
  });
});

describe('a holder whose grant comes late', () => {
  it('K-04 by its own event loop, while the grant is on its way: a grant past its deadline is not handed out', async () => {
    await using proxy = await FaultProxy.start({ target: { host: '127.0.0.1', port: redis.port } });
    await using lessee = await startLessee(`redis://127.0.0.1:${proxy.port}`);
    await using holdfast = await openAt(redis);
    await proxy.delay(200);
    const late = { key: 'late', options: SHORT, afterMs: 100, ms: SHORT.ttl + 500 };
    const outcome = await lessee.tell('acquireLate', late);
    expect(outcome).not.toMatchObject({ ok: true });
    await proxy.pass();
    await take(holdfast, 'late', { ...SHORT, wait: '10s' });
    expect(await lessee.end()).toBe(0);
  });
});
