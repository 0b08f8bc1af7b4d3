import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Holdfast } from '../../src/index.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { Kit } from '../../testing/conformance/kit.ts';
import { begun } from '../../testing/conformance/orchestrator.ts';
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { codeOf, leaveNothingBehind, nextEvent, openAt, take } from './support/holdfasts.ts';
import { expectRising, hostMs, LeaseWatch } from './support/lease-watch.ts';
import { startLessee } from './support/lessee.ts';

leaveNothingBehind();

/** Long enough for a busy machine, short enough that a renewal that fails shows. */
const OPTIONS = { ttl: 5_000, renewEvery: 400, operationTimeout: 1_200 } as const;

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster({ replicas: 0, spares: 1 });
  await until(
    async () => {
      await using holdfast = await openAt(cluster);
      await (await take(holdfast, 'warm-up')).release();
      return true;
    },
    { what: 'the Cluster to take writes', deadlineMs: 20_000 },
  );
}, 60_000);
afterAll(() => cluster.stop());

interface Move {
  readonly from: RedisServer;
  readonly to: RedisServer;
  readonly key: string;
  readonly slot: number;
}

/** A key on one primary whose slot is about to go to the next one. */
async function moveOf(name: string, at: number): Promise<Move> {
  const from = cluster.primaries[at % 3];
  const to = cluster.primaries[(at + 1) % 3];
  if (from === undefined || to === undefined) throw new Error('three primaries are needed');
  const key = (await cluster.keyOn(from, `lease:${name}`)).slice('lease:'.length);
  return { from, to, key, slot: await cluster.slotOf(`lease:${key}`) };
}

/** Until a lease has been renewed twice: the second of them was sent from now on. */
async function renewals(holdfast: Holdfast): Promise<void> {
  await nextEvent(holdfast, 'lease.renewed');
  await nextEvent(holdfast, 'lease.renewed');
}

describe.concurrent('a slot that moves to another primary', () => {
  it('K-02 K-05 renewals go on while it is announced, half gone and gone; release works at each of them', async () => {
    await using holdfast = await openAt(cluster);
    await using other = await openAt(cluster);
    for (const [i, stopAt] of (['migrating', 'half', 'done'] as const).entries()) {
      const { to, key, slot } = await moveOf(`held-${stopAt}`, i);
      const lease = await take(holdfast, key, OPTIONS);
      using watch = new LeaseWatch(lease);
      await cluster.migrateSlot(slot, to, { stopAt });
      await renewals(holdfast);
      expect(await other.acquire(key, OPTIONS).catch(({ code }) => code)).toSatisfy(
        (answer: unknown) =>
          answer === 'STORE_UNREACHABLE' || (answer as { reason: string }).reason === 'held',
      );
      expect([lease.isHeld(), watch.states]).toEqual([true, ['held']]);
      const releasing = lease.release();
      // A lease and its record that are apart are released once they are together again.
      if (stopAt === 'half') await cluster.migrateSlot(slot, to);
      expect(await releasing).toEqual({ released: true });
      await cluster.migrateSlot(slot, to);
      const next = await take(other, key, { ...OPTIONS, wait: '10s' });
      expectRising([lease.fence, next.fence]);
    }
  });

  it('K-02 K-05 renewals and other requests follow keys to a primary that has no slots yet', async () => {
    await using holdfast = await openAt(cluster);
    await using other = await openAt(cluster);
    const [spare] = cluster.spares;
    if (spare === undefined) throw new Error('a primary without slots is needed');
    const { key, slot } = await moveOf('to-a-spare', 0);
    const lease = await take(holdfast, key, OPTIONS);
    using watch = new LeaseWatch(lease);
    await cluster.migrateSlot(slot, spare, { stopAt: 'keys' });
    await renewals(holdfast);
    expect(await other.acquire(key, OPTIONS)).toMatchObject({ ok: false, reason: 'held' });
    expect([lease.isHeld(), watch.states]).toEqual([true, ['held']]);
    expect(await lease.release()).toEqual({ released: true });
    await cluster.migrateSlot(slot, spare);
    const next = await take(other, key, { ...OPTIONS, wait: '10s' });
    expectRising([lease.fence, next.fence]);
    // The first slot of a server puts it on the map, and it stays in touch.
    await renewals(other);
    expect(next.isHeld()).toBe(true);
  });

  it('K-03 K-07 no grant is lost or doubled on the way: one of two gets the key, once it has arrived', async () => {
    await using one = await openAt(cluster);
    await using two = await openAt(cluster);
    const { to, key, slot } = await moveOf('free', 1);
    const before = await take(one, key, OPTIONS);
    await before.release();
    await cluster.migrateSlot(slot, to, { stopAt: 'migrating' });
    const refused = await Promise.all([one, two].map((each) => codeOf(each.acquire(key, OPTIONS))));
    // The fence record is here and the lease nowhere: nobody can be sure of the fence yet.
    expect(refused).toEqual(['STORE_UNREACHABLE', 'STORE_UNREACHABLE']);
    const error = await one.acquire(key, OPTIONS).catch((thrown: Error) => thrown);
    expect(String((error as Error).message)).toContain('moving to another server');
    expect(String((error as Error).message)).not.toMatch(/TRYAGAIN|ASK|MOVED/);
    const both = [one, two].map((each) => each.acquire(key, { ...OPTIONS, wait: '1s' }));
    await cluster.migrateSlot(slot, to);
    const results = await Promise.all(both);
    expect(results.filter(({ ok }) => ok)).toHaveLength(1);
    const granted = results.flatMap((result) => (result.ok ? [result.lease] : []));
    expectRising([before.fence, granted[0]?.fence ?? 0]);
    await granted[0]?.release();
  });

  it('K-10 wakes who waits in another process, although it queued before the move', async () => {
    await using holdfast = await openAt(cluster);
    await using waiter = await startLessee(cluster.url);
    const { from, to, key, slot } = await moveOf('line', 2);
    const lease = await take(holdfast, key, { ttl: '30s' });
    const waiting = waiter.tell('acquire', { key, options: { ttl: '30s', wait: '25s' } }, 28_000);
    const inLine = async () => (await from.cli('ZCARD', `line:{lease:${key}}`)) === 1;
    await until(inLine, { what: 'the line' });
    await cluster.migrateSlot(slot, to);
    const releasedMs = hostMs();
    expect(await lease.release()).toEqual({ released: true });
    const next = await waiting;
    expect(next).toMatchObject({ ok: true });
    expect(Number(next.gotMs) - releasedMs).toBeLessThan(5_000);
    expectRising([lease.fence, Number(next.fence)]);
    expect(await waiter.end()).toBe(0);
  });

  it('K-15 K-16 takes the marker along: leases are still granted, and another client still opens', async () => {
    const options = { prefix: 'marked:', quarantine: 'on', maxTtl: '2500ms' } as const;
    await using holdfast = await openAt(cluster, options);
    const slot = await cluster.slotOf('marked:holdfast:marker');
    const from = await cluster.ownerOf(slot);
    const to = cluster.primaries.find((node) => node !== from);
    if (to === undefined) throw new Error('two primaries are needed');
    for (const [i, stopAt] of (['half', 'done'] as const).entries()) {
      await cluster.migrateSlot(slot, to, { stopAt });
      const ttl = 2_000 + i * 500;
      const lease = await take(holdfast, `ttl-${i}`, { ttl, wait: '15s' });
      expect(lease.isHeld()).toBe(true);
      await using other = await openAt(cluster, options);
      expect(await other.acquire(`ttl-${i}`, { ttl })).toMatchObject({ ok: false });
    }
    expect(await to.cli('HGET', 'marked:holdfast:marker', 'maxttl:lease')).toBe('2500');
  });

  it('W-02 no step of a workflow is taken by half: they wait until it has arrived', async () => {
    const store = await openRedisStore(cluster.url, { prefix: 'flow:', quarantine: 'off' });
    const kit = new Kit({ store, elapse: async () => {}, dispose: () => store.close() });
    const flow = await begun(kit);
    await flow.emit('x', 'y');
    const slot = await cluster.slotOf('{flow:holdfast}:holdfast:bus');
    const from = await cluster.ownerOf(slot);
    const to = cluster.primaries.find((node) => node !== from);
    if (to === undefined) throw new Error('two primaries are needed');
    for (const stopAt of ['migrating', 'half'] as const) {
      await cluster.migrateSlot(slot, to, { stopAt });
      const steps = [flow.tryEmit([flow.action('z')]), flow.update('z'), flow.take(), flow.begin()];
      const codes = await Promise.all(steps.map((each) => codeOf(each)));
      expect(new Set(codes)).toEqual(new Set(['STORE_UNREACHABLE']));
    }
    const waiting = flow.takeOne();
    await cluster.migrateSlot(slot, to);
    const taken = await waiting;
    expect([taken.action.id, await flow.settle(taken)]).toEqual(['x', 'done']);
    await flow.emit('z');
    expect(await flow.read()).toMatchObject({ epoch: 3, unresolved: 2, unread: 1 });
    await store.close();
  });

  it('K-07 closing while a request waits for it to arrive ends the request, and nothing else', async () => {
    const { to, key, slot } = await moveOf('close', 0);
    const holdfast = await openAt(cluster);
    const before = await take(holdfast, key, OPTIONS);
    await before.release();
    await cluster.migrateSlot(slot, to, { stopAt: 'migrating' });
    const codes = [1, 2, 3].map(() => codeOf(holdfast.acquire(key, { ...OPTIONS, wait: '20s' })));
    const inspecting = codeOf(holdfast.inspect(key));
    await holdfast.close({ within: 0 });
    for (const code of await Promise.all(codes)) expect(code).toBe('CLOSED');
    await inspecting;
    await cluster.migrateSlot(slot, to);
  });
});
