import { describe, expect, it } from 'vitest';
import type { Lease } from '../../src/lease/lease.ts';
import { type Actor, world } from '../support/world.ts';

type World = ReturnType<typeof world>;

/** Actors that wait for a key, in the order of their coming. */
async function inLine({ clock, actor }: World, count: number) {
  const waiting: { actor: Actor; lease: Promise<Lease>; takenMs: number }[] = [];
  for (let i = 0; i < count; i++) {
    const one = await actor();
    const lease = one.take('k', { wait: '1m' });
    const entry = { actor: one, lease, takenMs: Number.NaN };
    void lease.then(
      () => (entry.takenMs = clock.monotonicMs()),
      () => {},
    );
    waiting.push(entry);
    await clock.advance(10);
  }
  return waiting;
}

describe('B-02 a freed key goes to a waiter that runs', () => {
  it.each([1, 2, 5, 20])(
    'B-02 within a second, if the first %i waiters are frozen',
    async (frozen) => {
      const w = world();
      const held = await (await w.actor()).take('k');
      const waiting = await inLine(w, frozen + 1);
      for (const { actor } of waiting.slice(0, frozen)) actor.faults.hang = true;
      const freedMs = w.clock.monotonicMs();
      await held.release();
      await w.clock.advance(1_000);
      expect(waiting.at(-1)?.takenMs).toBeLessThanOrEqual(freedMs + 1_000);
    },
  );

  it('B-02 in the order of their arrival, if others before them are frozen', async () => {
    const w = world();
    const held = await (await w.actor()).take('k');
    const waiting = await inLine(w, 6);
    for (const { actor } of waiting.slice(0, 2)) actor.faults.hang = true;
    const running = waiting.slice(2);
    const order: number[] = [];
    const done = running.map(async ({ lease }, i) => {
      const mine = await lease;
      order.push(i);
      await w.clock.sleep(5);
      await mine.release();
    });
    await held.release();
    await w.clock.advance(3_000);
    await Promise.all(done);
    expect(order).toEqual([0, 1, 2, 3]);
  });

  it('B-02 B-10 within a second of the end of keepFor, though it saw a later expiry', async () => {
    const w = world();
    const held = await (await w.actor()).take('k', { ttl: '30s' });
    const [waiting] = await inLine(w, 1);
    await held.release({ keepFor: '2s' });
    await w.clock.advance(1_900);
    expect(waiting?.takenMs).toBeNaN();
    await w.clock.advance(1_100);
    expect(waiting?.takenMs).toBeGreaterThan(0);
  });

  it('B-02 after a forced revocation', async () => {
    const w = world();
    const operator = await w.actor();
    await (await w.actor()).take('k');
    const waiting = await inLine(w, 2);
    if (waiting[0] !== undefined) waiting[0].actor.faults.hang = true;
    await operator.holdfast.revoke('k', { reason: 'stuck', force: true });
    await w.clock.advance(1_000);
    expect(waiting[1]?.takenMs).toBeGreaterThan(0);
  });

  it('B-02 even if the process that freed it ends at once', async () => {
    const w = world();
    const holder = await w.actor();
    const held = await holder.take('k');
    const waiting = await inLine(w, 3);
    for (const { actor } of waiting.slice(0, 2)) actor.faults.hang = true;
    await held.release();
    await holder.holdfast.close();
    await w.clock.advance(1_000);
    expect(waiting[2]?.takenMs).toBeGreaterThan(0);
  });

  it('B-02 a waiter that was passed over keeps its place', async () => {
    const w = world();
    const held = await (await w.actor()).take('k');
    const [first, second, third] = await inLine(w, 3);
    if (first === undefined || second === undefined || third === undefined) throw new Error();
    first.actor.faults.hang = true;
    await held.release();
    await w.clock.advance(500);
    expect(second.takenMs).toBeGreaterThan(0);
    first.actor.faults.hang = false;
    await w.clock.advance(2_000);
    await (await second.lease).release();
    await w.clock.advance(100);
    expect(first.takenMs).toBeGreaterThan(0);
    expect(third.takenMs).toBeNaN();
  });

  it('B-02 and a freed slot of a pool goes to a waiter that runs, too', async () => {
    const w = world();
    const pools = await Promise.all([0, 1, 2].map(() => w.actor()));
    const [holder, frozen, running] = pools.map((actor) => ({
      ...actor,
      pool: actor.holdfast.pool('p', { slots: 1 }),
    }));
    if (!holder || !frozen || !running) throw new Error();
    const taken = await holder.pool.acquire();
    if (!taken.ok) throw new Error('not granted');
    void frozen.pool.acquire({ wait: '1m' }).catch(() => {});
    await w.clock.advance(10);
    let takenMs = Number.NaN;
    void running.pool.acquire({ wait: '1m' }).then(() => (takenMs = w.clock.monotonicMs()));
    await w.clock.advance(10);
    frozen.faults.hang = true;
    await taken.lease.release();
    await w.clock.advance(1_000);
    expect(takenMs).toBeGreaterThan(0);
  });

  it('K-10 a key that was taken is asked for once, and then no longer', async () => {
    const w = world();
    const calls: string[] = [];
    const { wakeNext } = w.store.leases;
    w.store.leases.wakeNext = (keys, call) => {
      calls.push(...keys);
      return wakeNext.call(w.store.leases, keys, call);
    };
    const held = await (await w.actor()).take('k', { ttl: '30s' });
    const [waiter] = await inLine(w, 2);
    await held.release();
    await w.clock.advance(50_000);
    expect(waiter?.takenMs).toBeGreaterThan(0);
    expect(calls).toEqual(['lease:k']);
  });
});
