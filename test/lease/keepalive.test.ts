import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { open } from '../../src/holdfast.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { world } from '../support/world.ts';

/** Counts the calls of the verbs that renew, and how many leases each named. */
function counted(store: Store) {
  const calls = { keepAlive: 0, renew: 0, rows: 0 };
  const { leases } = store;
  const [renew, keepAlive] = [leases.renew.bind(leases), leases.keepAlive?.bind(leases)];
  leases.renew = (tenures, call) => {
    calls.renew++;
    calls.rows += tenures.length;
    return renew(tenures, call);
  };
  if (keepAlive !== undefined)
    leases.keepAlive = (id, call) => {
      calls.keepAlive++;
      return keepAlive(id, call);
    };
  const since = (before: typeof calls) => ({
    keepAlive: calls.keepAlive - before.keepAlive,
    rows: calls.rows - before.rows,
  });
  return { calls, since };
}

describe('Keepalive', () => {
  it('B-25 one request per interval renews ten thousand leases, once each was attached', async () => {
    const clock = new FakeClock();
    const store = createMemoryStore({ clock });
    const { calls, since } = counted(store);
    const holdfast = await open(store, { clock, random: seededRandom(1) });
    const leases = Array.from({ length: 10_000 }, (_, i) => holdfast.acquire(`k${i}`));
    await Promise.all(leases);
    await clock.advance(40_000);
    const before = { ...calls };
    await clock.advance(100_000);
    const { keepAlive, rows } = since(before);
    expect(rows).toBe(0);
    expect(keepAlive).toBeGreaterThanOrEqual(9);
    expect(keepAlive).toBeLessThanOrEqual(12);
    expect(holdfast.held).toBe(10_000);
    expect(clock.pendingTimers).toBe(1);
  });

  it('B-25 a lease that is released before its first renewal costs no keepalive', async () => {
    const { clock, store, actor } = world();
    const { calls } = counted(store);
    const { take } = await actor();
    for (let i = 0; i < 10; i++) {
      const lease = await take('k', { ttl: '3s' });
      await clock.advance(500);
      await lease.release();
    }
    expect(calls).toEqual({ keepAlive: 0, renew: 0, rows: 0 });
  });

  it('B-25 classes with different TTLs have a keepalive each, and one key is free for the other after a release', async () => {
    const { clock, store, actor } = world();
    const { calls, since } = counted(store);
    const { take } = await actor();
    const short = await take('a', { ttl: '3s' });
    const long = await take('b', { ttl: '9s' });
    await clock.advance(9_000);
    const before = { ...calls };
    await clock.advance(18_000);
    expect(since(before).rows).toBe(0);
    expect(since(before).keepAlive).toBeGreaterThanOrEqual(18 + 6 - 4);
    expect([short.isHeld(), long.isHeld()]).toEqual([true, true]);
    await short.release();
    const again = await take('a', { ttl: '9s' });
    await clock.advance(18_000);
    expect([again.isHeld(), long.isHeld()]).toEqual([true, true]);
  });

  it('B-25 K-09 a revoked holder finds out at its next renewal, and the others keep their leases', async () => {
    const { clock, actor } = world();
    const [one, operator] = [await actor(), await actor()];
    const leases = [
      await one.take('a', { ttl: '3s' }),
      await one.take('b', { ttl: '3s' }),
    ] as const;
    await clock.advance(5_000);
    await operator.holdfast.revoke('a', { reason: 'test' });
    await clock.advance(1_250);
    expect(leases.map(({ state }) => state)).toEqual(['lost', 'held']);
    expect(leases[0].lossReason).toBe('revoked');
    await clock.advance(9_000);
    expect(leases[1].isHeld()).toBe(true);
  });

  it('B-25 a lease that was given up expires although its process renews others', async () => {
    const { clock, actor } = world();
    const [one, other] = [await actor(), await actor()];
    const kept = await one.take('kept', { ttl: '3s' });
    const lease = await one.take('k', { ttl: '3s' });
    await clock.advance(5_000);
    const stuck = { settled: new Promise(() => {}), within: 0 };
    const released = lease.release(stuck);
    await clock.advance(1);
    expect(await released).toMatchObject({ released: false, reason: 'unsettled' });
    await clock.advance(4_500);
    await other.take('k', { ttl: '3s' });
    expect(kept.isHeld()).toBe(true);
  });

  it('B-25 a lease with maxHold is renewed by its row, and expires alone', async () => {
    const { clock, store, actor } = world();
    const { calls } = counted(store);
    const [one, other] = [await actor(), await actor()];
    const kept = await one.take('kept', { ttl: '3s' });
    await one.take('k', { ttl: '3s', maxHold: '6s' });
    await clock.advance(5_900);
    expect(calls.rows).toBeGreaterThanOrEqual(5);
    await clock.advance(3_200);
    await other.take('k', { ttl: '3s' });
    expect(kept.isHeld()).toBe(true);
  });

  it('B-25 a process that wakes after its keepalive was buried renews nothing', async () => {
    const { clock, store, actor } = world();
    const [one, other] = [await actor(), await actor()];
    const leases = [await one.take('a', { ttl: '3s' }), await one.take('b', { ttl: '3s' })];
    await clock.advance(5_000);
    // The whole store is out of reach for longer than the TTL, as for a process that stands still.
    one.faults.hang = true;
    await clock.advance(3_100);
    await other.take('a', { ttl: '3s' });
    one.faults.hang = false;
    await clock.advance(3_000);
    expect(leases.map(({ state }) => state)).toEqual(['lost', 'lost']);
    const [b] = await store.leases.read(['lease:b'], { timeoutMs: 1 });
    expect(b?.kind).toBe('free');
  });

  it('B-25 a wall clock that is set back makes attached leases uncertain until the keepalive is renewed', async () => {
    const { clock, store, actor } = world();
    const { calls, since } = counted(store);
    const { take } = await actor();
    const leases = await Promise.all(['a', 'b', 'c'].map((key) => take(key, { ttl: '3s' })));
    await clock.advance(5_000);
    clock.jumpWall(-60_000);
    const before = { ...calls };
    expect(leases.map((lease) => lease.isHeld())).toEqual([false, false, false]);
    await clock.advance(1);
    expect(leases.map((lease) => lease.isHeld())).toEqual([true, true, true]);
    expect(since(before)).toEqual({ keepAlive: 1, rows: 0 });
  });

  it('B-25 a lost answer loses nothing, and a hanging store ends all attached leases at their deadline', async () => {
    const { clock, actor } = world();
    const { take, faults } = await actor();
    const leases = await Promise.all(['a', 'b'].map((key) => take(key, { ttl: '3s' })));
    await clock.advance(5_000);
    faults.loseReplies = true;
    await clock.advance(1_400);
    faults.loseReplies = false;
    await clock.advance(1_500);
    expect(leases.map((lease) => lease.isHeld())).toEqual([true, true]);
    faults.hang = true;
    const hungMs = clock.monotonicMs();
    while (leases.some((lease) => lease.state !== 'lost')) await clock.advance(10);
    expect(clock.monotonicMs() - hungMs).toBeLessThanOrEqual(2_850);
  });

  it('B-25 a store that went back, and lost attachments, is told by the version: rows are renewed', async () => {
    const { clock, store, actor } = world();
    const { calls, since } = counted(store);
    const { leases } = store;
    const keepAlive = leases.keepAlive?.bind(leases);
    let asked = 0;
    let lost = 0;
    leases.keepAlive = async (id, call) => {
      asked++;
      return (await keepAlive?.(id, { ...call, version: call.version + lost })) ?? { kind: 'gone' };
    };
    const { take } = await actor();
    const lease = await take('k', { ttl: '3s' });
    await clock.advance(4_000);
    // The row is of an earlier version.
    lost = 1;
    asked = 0;
    const before = { ...calls };
    await clock.advance(1_250);
    expect(asked).toBe(1);
    expect(since(before).rows).toBe(1);
    expect(lease.isHeld()).toBe(true);
  });

  it('B-25 a keepalive is not made twice: a lost answer makes the next renewal use another id', async () => {
    const { clock, store, actor } = world();
    const ids: [string, boolean][] = [];
    const { leases } = store;
    const renew = leases.renew.bind(leases);
    leases.renew = (tenures, call) => {
      if (call.attachTo !== undefined) ids.push([call.attachTo.id, call.attachTo.isNew]);
      return renew(tenures, call);
    };
    const { take, faults } = await actor();
    const lease = await take('k', { ttl: '3s' });
    faults.loseReplies = true;
    await clock.advance(1_600);
    faults.loseReplies = false;
    await clock.advance(3_000);
    expect(lease.isHeld()).toBe(true);
    expect(ids.length).toBeGreaterThanOrEqual(2);
    expect(ids.every(([, isNew]) => isNew)).toBe(true);
    expect(new Set(ids.map(([id]) => id)).size).toBe(ids.length);
  });
});
