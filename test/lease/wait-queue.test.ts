import { describe, expect, it } from 'vitest';
import { world } from '../support/world.ts';

describe('K-10 waiting', () => {
  it('K-10 a release wakes a waiter at once', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const lease = await a.take('k');
    const waiting = b.holdfast.acquire('k', { wait: '20s' });
    await clock.advance(5_000);
    await lease.release();
    await clock.advance(0);
    const result = await waiting;
    expect(result.ok && result.lease.fence > lease.fence).toBe(true);
    expect(b.happened.at(-1)).toMatchObject({ name: 'lease.acquired', waitedMs: 5_000 });
  });

  it('K-10 a waiter gets the key of a dead holder at the expiry it saw, not at the next round of a loop', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    await a.take('k', { ttl: '3s' });
    a.faults.hang = true;
    const startMs = clock.monotonicMs();
    let takenMs = 0;
    const waiting = b.take('k', { ttl: '3s', wait: '20s' }).then(() => {
      takenMs = clock.monotonicMs();
    });
    await clock.advance(3_100);
    await waiting;
    expect(takenMs - startMs).toBeGreaterThanOrEqual(3_000);
    expect(takenMs - startMs).toBeLessThanOrEqual(3_010);
  });

  it('K-10 waiters of one process are served in the order of their arrival', async () => {
    const { clock, actor } = world();
    const { take } = await actor();
    const first = await take('k');
    const order: number[] = [];
    const all = [1, 2, 3].map(async (n) => {
      const lease = await take('k', { wait: '20s' });
      order.push(n);
      await clock.sleep(10);
      await lease.release();
    });
    await clock.advance(100);
    await first.release();
    await clock.advance(1_000);
    await Promise.all(all);
    expect(order).toEqual([1, 2, 3]);
  });

  it('K-10 when the time is over, the result has the holder and the remaining time', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const lease = await a.take('k');
    const waiting = b.holdfast.acquire('k', { wait: '2s' });
    await clock.advance(2_000);
    expect(await waiting).toMatchObject({
      ok: false,
      holder: lease.holder,
      fence: lease.fence,
      reason: 'held',
      waitedMs: 2_000,
      expiresInMs: 28_000,
    });
    expect(b.names()).toEqual(['lease.refused']);
  });

  it('K-10 an AbortSignal ends the wait with its own reason', async () => {
    const { clock, actor } = world();
    const { holdfast, take } = await actor();
    await take('k');
    const reason = new Error('enough');
    const controller = new AbortController();
    const waiting = holdfast.acquire('k', { wait: '20s', signal: controller.signal });
    const outcome = expect(waiting).rejects.toBe(reason);
    await clock.advance(1_000);
    controller.abort(reason);
    await outcome;
    await expect(holdfast.acquire('j', { signal: controller.signal })).rejects.toBe(reason);
  });

  it('K-10 a waiter that leaves passes the hint on to the next', async () => {
    const { clock, actor } = world();
    const [a, b, c] = [await actor(), await actor(), await actor()];
    const lease = await a.take('k');
    const impatient = b.holdfast.acquire('k', { wait: '1s' });
    await clock.advance(10);
    const patient = c.take('k', { wait: '20s' });
    await clock.advance(1_000);
    expect((await impatient).ok).toBe(false);
    await lease.release();
    await clock.advance(0);
    expect((await patient).isHeld()).toBe(true);
  });

  it('K-10 the release of a lease that was acquired after an expiry wakes the next waiter, not its own process', async () => {
    const { clock, store, actor } = world();
    const [a, b, c] = [await actor(), await actor(), await actor()];
    await a.take('k', { ttl: '3s' });
    a.faults.hang = true;
    const second = b.take('k', { wait: '1m' });
    await clock.advance(10);
    const third = c.take('k', { wait: '1m' });
    await clock.advance(10);
    // So that it is b who has it.
    c.faults.hang = true;
    await clock.advance(3_100);
    const { holder, fence } = await second;
    c.faults.hang = false;
    await clock.advance(10_000);
    // As by a process that ends with it: it could not pass a hint on.
    b.faults.hang = true;
    await store.leases.release([{ key: 'lease:k', holder, fence }], { timeoutMs: 1_000 });
    await clock.advance(10);
    expect((await third).isHeld()).toBe(true);
  });

  it('K-10 a grant that comes after its caller has left is released', async () => {
    const { clock, store, actor } = world();
    const { holdfast, faults } = await actor();
    faults.loseReplies = true;
    const waiting = holdfast.acquire('k', { wait: '100ms' });
    const outcome = expect(waiting).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await clock.advance(1_100);
    await outcome;
    faults.loseReplies = false;
    await clock.advance(30_000);
    expect(await store.leases.read(['lease:k'], { timeoutMs: 1 })).toMatchObject([
      { kind: 'free' },
    ]);
  });

  it('K-10 a wait survives a store that answers again before it ends', async () => {
    const { clock, actor } = world();
    const { take, faults } = await actor();
    faults.refuse = true;
    const waiting = take('k', { wait: '10s' });
    await clock.advance(3_000);
    faults.refuse = false;
    await clock.advance(1_100);
    expect((await waiting).isHeld()).toBe(true);
  });

  it('K-10 a store that is unreachable for the whole wait is the error', async () => {
    const { clock, actor } = world();
    const { take, faults } = await actor();
    faults.refuse = true;
    const outcome = expect(take('k', { wait: '2s' })).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
    });
    await clock.advance(2_000);
    await outcome;
  });

  it('K-10 a wait asks the store at its beginning and at its end, and in between only after a hint', async () => {
    const { clock, store, actor } = world();
    const { take } = await actor();
    await take('k', { ttl: '30s', renewEvery: '10s' });
    let asked = 0;
    const { acquire } = store.leases;
    store.leases.acquire = (requests, call) => {
      asked++;
      return acquire.call(store.leases, requests, call);
    };
    const other = await actor();
    const waiting = other.holdfast.acquire('k', { wait: '25s' });
    await clock.advance(25_000);
    await waiting;
    // To have it, to be noted, and once more when the time was up.
    expect(asked).toBe(3);
  });
});

describe('K-10 acquireAll', () => {
  it('K-10 acquires several keys, and releases them together', async () => {
    const { actor } = world();
    const { holdfast } = await actor();
    const set = await holdfast.acquireAll(['b', 'a']);
    expect(set.leases.map(({ key }) => key)).toEqual(['b', 'a']);
    expect(set.isHeld()).toBe(true);
    expect(set.get('a')?.fence).toBeGreaterThan(0);
    await set.release();
    expect(set.signal.aborted).toBe(true);
    expect(() => set.assertHeld()).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }));
  });

  it('K-10 acquires none if one is held', async () => {
    const { actor } = world();
    const [a, b] = [await actor(), await actor()];
    await a.take('b');
    await expect(b.holdfast.acquireAll(['a', 'b', 'c'])).rejects.toMatchObject({
      code: 'LEASE_HELD',
      key: 'b',
    });
    await a.take('a');
    await a.take('c');
  });

  it('K-10 acquires none if the store fails for one', async () => {
    const { store, actor } = world();
    const { acquire } = store.leases;
    store.leases.acquire = async (requests, call) => {
      const replies = await acquire.call(store.leases, requests, call);
      return replies.map((reply, i) =>
        requests[i]?.key === 'lease:bad' ? { kind: 'failed', error: new Error('bad key') } : reply,
      );
    };
    const { holdfast } = await actor();
    await expect(holdfast.acquireAll(['good', 'bad'])).rejects.toThrow('bad key');
    expect(await holdfast.inspect('good')).toMatchObject({ kind: 'free' });
  });

  it('K-10 calls with overlapping keys wait for each other without a deadlock', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const done: string[] = [];
    const run = async (name: string, who: typeof a, keys: string[]) => {
      for (let round = 0; round < 5; round++) {
        const set = await who.holdfast.acquireAll(keys, { wait: '60s' });
        set.assertHeld();
        await clock.sleep(20);
        await set.release();
        done.push(name);
      }
    };
    const all = Promise.all([run('a', a, ['x', 'y', 'z']), run('b', b, ['z', 'y', 'w'])]);
    await clock.advance(60_000);
    await all;
    expect(done).toHaveLength(10);
  });
});
