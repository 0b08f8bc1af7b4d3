import { describe, expect, it } from 'vitest';
import { open } from '../../src/holdfast.ts';
import type { Lease } from '../../src/lease/lease.ts';
import { coordinationOnly } from '../../src/store/coordination-only.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { countedStore } from '../support/counted-store.ts';
import fc from '../support/fast-check.ts';
import { around, holdersOf, poolOf } from '../support/pools.ts';
import { world } from '../support/world.ts';

/** A process has stored a larger number, and every process may use it. */
const SETTLE_MS = 2_500;

/** A process with four slots and one with two, which comes later, of one pool. */
async function loweredPool() {
  const { clock, store, actor } = world();
  const [old, lowered] = [await actor(), await actor()];
  const [four, two] = [poolOf(old, { slots: 4 }), poolOf(lowered, { slots: 2 })];
  return { clock, store, actor, four, two };
}

describe('a pool whose number of slots was lowered', () => {
  it('K-10 grants nothing while as many slots are held as the new number, whichever they are', async () => {
    const { four, two } = await loweredPool();
    const [first, second, third, fourth] = await four.fill();
    await first?.lease.release();
    await second?.lease.release();
    expect(await two.pool.acquire()).toMatchObject({ ok: false, reason: 'held', slots: 2 });
    await third?.lease.release();
    expect((await two.take()).slot).toBe('1');
    expect(await two.pool.acquire()).toMatchObject({ ok: false, reason: 'held' });
    await fourth?.lease.release();
    expect((await two.take()).slot).toBe('2');
    expect(await two.pool.acquire()).toMatchObject({ ok: false, reason: 'held' });
  });

  it('K-10 grants one slot to two processes that are granted different slots at a time', async () => {
    const { store, actor, four, two } = await loweredPool();
    const held = await four.fill();
    for (const { slot, lease } of held) if (slot !== '4') await lease.release();
    const other = poolOf(await actor(), { slots: 2 });
    await other.pool.inspect();
    // Between the count of one process and its request, the other is granted the other slot.
    let isFirst = true;
    around(store, 'acquire', (acquire) => async (requests, call) => {
      if (isFirst && requests[0]?.key === 'lease:gpu:1') {
        isFirst = false;
        await store.leases.acquire([{ key: 'lease:gpu:2', holder: 'another' }], {
          ...{ ttlMs: 30_000, inbox: '', timeoutMs: 1_000 },
        });
      }
      return acquire(requests, call);
    });
    expect(await two.pool.acquire()).toMatchObject({ ok: false, reason: 'held' });
    expect(await holdersOf(two.pool)).toEqual([null, 'another']);
  });

  it('K-10 has a waiter granted a slot when the holders are few enough', async () => {
    const { clock, four, two } = await loweredPool();
    const held = await four.fill();
    const waiting = two.take({ wait: '20s', holder: 'w' });
    for (const { slot, lease } of held) if (slot !== '3' && slot !== '4') await lease.release();
    await clock.advance(5_000);
    expect(await holdersOf(two.pool)).toEqual([null, null]);
    await held[3]?.lease.release();
    await clock.advance(150);
    expect((await waiting).slot).toBe('1');
  });

  it('K-10 has a waiter that stood in line before a process with more slots came ask again', async () => {
    const { clock, actor } = world();
    const two = poolOf(await actor(), { slots: 2 });
    const own = await two.fill();
    const waiting = two.take({ wait: '50s', holder: 'w' });
    await clock.advance(100);
    const more = poolOf(await actor(), { slots: 4 });
    const others = [more.take(), more.take()];
    await clock.advance(SETTLE_MS + 100);
    const beyond = await Promise.all(others);
    expect(beyond.map(({ slot }) => slot)).toEqual(['3', '4']);
    await own[0]?.lease.release();
    await clock.advance(1_000);
    expect(await holdersOf(two.pool)).not.toContain('w');
    for (const { lease } of beyond) await lease.release();
    await clock.advance(200);
    expect((await waiting).lease.isHeld()).toBe(true);
  });

  it('a process with more slots uses them when every process has had time to read of it', async () => {
    const { clock, actor } = world();
    const [a, b] = [poolOf(await actor(), { slots: 1 }), poolOf(await actor(), { slots: 2 })];
    await a.take();
    const taking = b.take();
    await clock.advance(SETTLE_MS - 1);
    expect(await holdersOf(b.pool)).toEqual([expect.any(String), null]);
    await clock.advance(1);
    expect((await taking).slot).toBe('2');
  });

  it('costs one request again when the slots beyond have not been used for a minute', async () => {
    const { clock, actor } = world();
    const { store, calls } = countedStore(createMemoryStore({ clock }));
    const holdfast = await open(store, { clock });
    await holdfast.pool('gpu', { slots: 4 }).acquire();
    const two = poolOf({ ...(await actor()), holdfast }, { slots: 2 });
    const use = async () => {
      const { lease } = await two.take();
      await lease.release();
    };
    for (let n = 0; n < 13; n++) {
      await clock.advance(10_000);
      await use();
    }
    calls.length = 0;
    await use();
    expect(calls).toEqual(['leases.acquire', 'leases.release']);
    const record = await store.records.get('pool', ['lease:gpu'], { timeoutMs: 1_000 });
    expect(record[0]).toMatchObject({ kind: 'found', value: { largest: 2, usable: 2 } });
  });

  it('a slot that cannot be counted is an error, and nothing stays granted', async () => {
    const { store, four, two } = await loweredPool();
    const [first] = await four.fill();
    await first?.lease.release();
    const error = new Error('WRONGTYPE');
    around(store, 'read', (read) => async (keys, call) => {
      const seen = await read(keys, call);
      return seen.map((reply, i) =>
        keys[i] === 'lease:gpu:4' ? { kind: 'failed', error } : reply,
      );
    });
    await expect(two.pool.acquire()).rejects.toBe(error);
    expect((await holdersOf(two.pool))[0]).toBe(null);
  });

  it('named slots stand for themselves: a removed name does not count', async () => {
    const { actor } = world();
    const old = poolOf(await actor(), { slots: ['front', 'back', 'lab'] });
    await old.take();
    await old.take();
    await old.take();
    const lowered = poolOf(await actor(), { slots: ['attic'] });
    expect((await lowered.take()).slot).toBe('attic');
  });

  it('a store without records grants slots, and counts none of other processes', async () => {
    const store = coordinationOnly(createMemoryStore());
    await using holdfast = await open(store);
    expect(await holdfast.pool('gpu', { slots: 2 }).acquire()).toMatchObject({ slot: '1' });
  });

  it('a number that another program has written is an error', async () => {
    const { store, actor } = world();
    const { pool } = poolOf(await actor());
    const write = { id: 'lease:gpu', value: { largest: 'many' } };
    await store.records.put('pool', [write], { timeoutMs: 1_000 });
    await expect(pool.acquire()).rejects.toMatchObject({ code: 'KEY_FOREIGN' });
  });
});

const NUMBERS = [2, 3, 5];
const MAX_LATENCY_MS = 8;
/** A process counts, and has its answer, within this time. */
const CHECK_MS = 200;

type Step =
  | { do: 'ask'; who: number; wait: number }
  | { do: 'release'; nth: number }
  | { do: 'pass'; ms: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('ask' as const),
      who: fc.nat({ max: NUMBERS.length * 2 - 1 }),
      wait: fc.constantFrom(0, 0, 400, 5_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('release' as const), nth: fc.nat({ max: 9 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('pass' as const),
      ms: fc.constantFrom(0, 2, 7, 30, 300, 3_000, 70_000),
    }),
  },
);

interface Holder {
  readonly number: number;
  readonly sinceMs: number;
  readonly lease: Lease;
}

it('K-10 a process is granted no slot that makes more holders than its own number, whichever numbers the others have', {
  timeout: 120_000,
}, async () => {
  let served = 0;
  let mixed = 0;
  const runs = fc.record({
    steps: fc.array(step, { minLength: 10, maxLength: 60 }),
    seed: fc.nat(),
  });
  const property = fc.asyncProperty(runs, async ({ steps, seed }) => {
    const { clock, store, actor } = world();
    let draw = seed;
    const latency = () => {
      draw = (draw * 48_271 + 11) % 2_147_483_647;
      return clock.sleep(draw % MAX_LATENCY_MS);
    };
    around(store, 'acquire', (acquire) => async (requests, call) => {
      await latency();
      const replies = await acquire(requests, call);
      await latency();
      return replies;
    });
    around(store, 'read', (read) => async (keys, call) => {
      await latency();
      const replies = await read(keys, call);
      await latency();
      return replies;
    });
    const processes = [];
    for (const number of [...NUMBERS, ...NUMBERS])
      processes.push({ number, ...poolOf(await actor(), { slots: number }) });
    const holders = new Set<Holder>();
    const problems: string[] = [];
    const granted = (holder: Holder) => {
      served++;
      const others = [...holders].filter(({ lease }) => lease.isHeld());
      const earlier = others.filter(({ sinceMs }) => sinceMs < holder.sinceMs - CHECK_MS);
      if (earlier.length >= holder.number)
        problems.push(`${holder.number} slots, and ${earlier.length} holders before`);
      if (others.some(({ number }) => number > holder.number)) mixed++;
      holders.add(holder);
      for (const number of NUMBERS) {
        const equal = [...holders].filter((each) => each.lease.isHeld() && each.number <= number);
        if (equal.length > number) problems.push(`${equal.length} holders with ${number} slots`);
      }
    };
    for (const each of steps) {
      if (each.do === 'pass') await clock.advance(each.ms);
      if (each.do === 'release') {
        const holder = [...holders][each.nth];
        if (holder === undefined) continue;
        holders.delete(holder);
        void holder.lease.release();
      }
      if (each.do !== 'ask') continue;
      const { number, pool } = processes[each.who] as (typeof processes)[number];
      void pool.acquire({ wait: each.wait }).then(
        (result) => {
          if (!result.ok) return;
          granted({ number, sinceMs: clock.monotonicMs(), lease: result.lease });
        },
        (error) => problems.push(String(error)),
      );
    }
    await clock.advance(10_000);
    expect(problems).toEqual([]);
  });
  await fc.assert(property, { numRuns: 60 });
  expect([served > 150, mixed > 25]).toEqual([true, true]);
});
