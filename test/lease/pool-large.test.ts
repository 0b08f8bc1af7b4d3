import { describe, expect, it } from 'vitest';
import { open } from '../../src/holdfast.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { around, poolOf } from '../support/pools.ts';
import { world } from '../support/world.ts';

const CALL = { ttlMs: 600_000, inbox: '', timeoutMs: 1_000 };

/** Slots that another program of the test holds, without a process of Holdfast that renews them. */
async function hold(store: Store, from: number, to: number): Promise<void> {
  const requests = [];
  for (let n = from; n <= to; n++) requests.push({ key: `lease:gpu:${n}`, holder: 'another' });
  await store.leases.acquire(requests, CALL);
}

async function free(store: Store, slot: number): Promise<void> {
  const key = `lease:gpu:${slot}`;
  const [found] = await store.leases.read([key], CALL);
  const tenancy = { key, holder: 'another', fence: found?.kind === 'held' ? found.fence : 0 };
  await store.leases.release([tenancy], CALL);
}

/** How many keys each request of a verb has. */
function sizesOf(store: Store, verb: 'read' | 'acquire'): number[] {
  const sizes: number[] = [];
  around(store, verb, (original) => (keys: readonly unknown[], call: never) => {
    sizes.push(keys.length);
    return (original as (keys: readonly unknown[], call: never) => never)(keys, call);
  });
  return sizes;
}

describe('a pool of more than 256 slots', () => {
  it.each([0, 2_500])(
    'I-08 with %i of 5,000 slots held, reads a few and asks for one',
    async (held) => {
      const store = createMemoryStore();
      await using holdfast = await open(store);
      const pool = holdfast.pool('gpu', { slots: 5_000 });
      await hold(store, 1, held);
      const [reads, asks] = [sizesOf(store, 'read'), sizesOf(store, 'acquire')];
      const result = await pool.acquire();
      expect(result.ok).toBe(true);
      expect(asks).toEqual([1]);
      expect(Math.max(...reads)).toBeLessThanOrEqual(256);
      if (held === 0) expect(reads).toEqual([16]);
    },
  );

  it('I-08 finds the one slot that is free, and refuses when it has read that none is', async () => {
    const store = createMemoryStore();
    await using holdfast = await open(store);
    const pool = holdfast.pool('gpu', { slots: 2_000 });
    await hold(store, 1, 1_233);
    await hold(store, 1_235, 2_000);
    expect(await pool.acquire()).toMatchObject({ slot: '1234' });
    const reads = sizesOf(store, 'read');
    expect(await pool.acquire()).toMatchObject({ ok: false, reason: 'held', slots: 2_000 });
    expect(reads.reduce((sum, size) => sum + size, 0)).toBe(2_000);
    expect(Math.max(...reads)).toBe(256);
  });

  it('I-08 gives each of many callers a slot of its own', async () => {
    const store = createMemoryStore();
    await using holdfast = await open(store);
    const pool = holdfast.pool('gpu', { slots: 400 });
    const results = await Promise.all(Array.from({ length: 410 }, () => pool.acquire()));
    const slots = results.flatMap((result) => (result.ok ? [result.slot] : []));
    expect([slots.length, new Set(slots).size]).toEqual([400, 400]);
  });

  it('10,000 slots are shown page by page', async () => {
    const store = createMemoryStore();
    await using holdfast = await open(store);
    const pool = holdfast.pool('gpu', { slots: 10_000 });
    await hold(store, 10_000, 10_000);
    const reads = sizesOf(store, 'read');
    const seen = await pool.inspect();
    expect(seen).toHaveLength(10_000);
    expect(seen[9_999]).toMatchObject({ slot: '10000', holder: 'another' });
    expect(Math.max(...reads)).toBe(256);
  });
});

/** A full pool of 600 slots. Three processes want some of it, a fourth one holds slot 7. */
async function fullPool() {
  const { clock, store, actor } = world();
  const actors = [await actor(), await actor(), await actor(), await actor()];
  const pools = actors.map((each) => poolOf(each, { slots: 600 }));
  const served: string[] = [];
  const waits = (who: number, holder: string) => {
    const taking = (pools[who] as (typeof pools)[number]).take({ wait: '60s', holder });
    void taking.then(() => served.push(holder)).catch(() => {});
    return taking;
  };
  /** The slots that the fourth process holds. */
  const held = await Promise.all(Array.from({ length: 5 }, () => pools[3]?.take()));
  const own = new Set(held.map((taken) => Number(taken?.slot)));
  for (let n = 1; n <= 600; n++) if (!own.has(n)) await hold(store, n, n);
  return { clock, store, actors, pools, served, waits, held };
}

describe('a waiter of a pool of more than 256 slots', () => {
  it('K-10 gets a freed slot at once', async () => {
    const { clock, waits, held } = await fullPool();
    const waiting = waits(0, 'w');
    await clock.advance(1_050);
    await held[2]?.lease.release();
    await clock.advance(0);
    expect((await waiting).slot).toBe(held[2]?.slot);
  });

  it('K-10 is served in the order of arrival, in three processes', async () => {
    const { clock, served, waits, held } = await fullPool();
    const names = ['a0', 'b1', 'c2', 'd0', 'e1'];
    for (const name of names) {
      void waits(Number(name[1]), name);
      await clock.advance(20);
    }
    for (const taken of held) {
      await taken?.lease.release();
      await clock.advance(50);
    }
    expect(served).toEqual(names);
  });

  it('K-10 gets each of several slots that are freed at a time', async () => {
    const { clock, served, waits, held } = await fullPool();
    for (const name of ['a0', 'b1', 'c2']) {
      void waits(Number(name[1]), name);
      await clock.advance(20);
    }
    await Promise.all(held.map((taken) => taken?.lease.release()));
    await clock.advance(300);
    expect(served).toEqual(['a0', 'b1', 'c2']);
  });

  it('K-10 finds a slot that was freed without a hint, by looking at the pages in turn', async () => {
    const { clock, store, waits } = await fullPool();
    const waiting = waits(0, 'w');
    await clock.advance(500);
    await free(store, 555);
    await clock.advance(400);
    expect((await waiting).slot).toBe('555');
  });

  it('B-02 is delayed for two seconds at most by a first waiter that hangs', async () => {
    const { clock, actors, served, waits, held } = await fullPool();
    void waits(0, 'first').catch(() => {});
    await clock.advance(50);
    void waits(1, 'second');
    await clock.advance(50);
    if (actors[0]) actors[0].faults.hang = true;
    await clock.advance(50);
    await held[0]?.lease.release();
    await clock.advance(2_100);
    expect(served).toEqual(['second']);
  });

  it('K-10 asks for no slot while none is freed, and reads one page at a time', async () => {
    const { clock, store, waits } = await fullPool();
    for (let n = 0; n < 30; n++) void waits(n % 3, `w${n}`).catch(() => {});
    await clock.advance(500);
    const [reads, asks] = [sizesOf(store, 'read'), sizesOf(store, 'acquire')];
    await clock.advance(10_000);
    // The gate's backstop, now and then.
    expect(asks.length).toBeLessThan(60);
    expect(Math.max(...reads)).toBeLessThanOrEqual(256);
    expect(reads.length).toBeLessThanOrEqual(110);
  });

  it('K-10 gets the reason at the end of its time, also behind the first', async () => {
    const { clock, pools } = await fullPool();
    const both = [0, 1].map((who) => pools[who]?.pool.acquire({ wait: '2s' }));
    await clock.advance(3_500);
    for (const result of await Promise.all(both))
      expect(result).toMatchObject({ ok: false, reason: 'held', slots: 600 });
  });

  it('K-10 leaves by its signal, and the next one is the first', async () => {
    const { clock, pools, served, waits, held } = await fullPool();
    const abort = new AbortController();
    const leaving = pools[0]?.pool.acquire({ wait: '60s', signal: abort.signal });
    const gone = expect(leaving).rejects.toThrow('enough');
    await clock.advance(50);
    void waits(1, 'next');
    await clock.advance(50);
    abort.abort(new Error('enough'));
    await gone;
    await clock.advance(50);
    await held[0]?.lease.release();
    await clock.advance(10);
    expect(served).toEqual(['next']);
  });
});
