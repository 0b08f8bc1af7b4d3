import { describe, expect, it } from 'vitest';
import { open } from '../../src/holdfast.ts';
import type { PoolOptions, SlotOptions, SlotResult } from '../../src/lease/pool/pool.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { BusyReply } from '../../src/store/port/lease-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { countedStore } from '../support/counted-store.ts';
import { around, holdersOf, poolOf } from '../support/pools.ts';
import { world } from '../support/world.ts';

const slotOf = (result: SlotResult) => (result.ok ? result.slot : null);

/** Does something just after the first to look has looked, so that what was seen is not true any more. */
function afterFirstLook(store: Store, change: () => Promise<unknown>): void {
  let looks = 0;
  around(store, 'read', (read) => async (keys, call) => {
    const seen = await read(keys, call);
    if (++looks === 1) await change();
    return seen;
  });
}

describe('a caller of a pool that does not wait', () => {
  it('I-08 gets the first slot of the pool that is free, in the order of the slots', async () => {
    const { actor } = world();
    const [a, b] = [poolOf(await actor()), poolOf(await actor())];
    const first = await a.take();
    const second = await b.take();
    expect([first.slot, second.slot]).toEqual(['1', '2']);
    await first.lease.release();
    expect([(await b.take()).slot, (await a.take()).slot]).toEqual(['1', '3']);
    expect(await a.pool.acquire()).toEqual({
      ...{ ok: false, pool: 'gpu', slots: 3, reason: 'held', expiresInMs: 30_000, waitedMs: 0 },
    });
  });

  it('I-08 gets a slot of its own when many ask at once, while there are free ones', async () => {
    const { actor } = world();
    const { pool } = poolOf(await actor(), { slots: ['left', 'middle', 'right'] });
    const results = await Promise.all(Array.from({ length: 6 }, () => pool.acquire()));
    expect(results.map(slotOf)).toEqual(['left', 'middle', 'right', null, null, null]);
  });

  it('sends two requests if a slot is free and one if none is, up to 256 slots', async () => {
    const { store, calls } = countedStore(createMemoryStore());
    await using holdfast = await open(store);
    const pool = holdfast.pool('gpu', { slots: 256 });
    await Promise.all(pool.slots.slice(1).map((slot) => holdfast.acquire(pool.keyOf(slot))));
    calls.length = 0;
    expect(slotOf(await pool.acquire())).toBe('1');
    // The first call of a process tells the others how many slots it has.
    expect(calls).toEqual(['records.get', 'records.put', 'leases.read', 'leases.acquire']);
    calls.length = 0;
    expect(slotOf(await pool.acquire())).toBe(null);
    expect(calls).toEqual(['leases.read']);
  });

  it('I-08 asks for the slot that its process has released without a read, and reads if that slot was taken', async () => {
    const { store, calls } = countedStore(createMemoryStore());
    await using holdfast = await open(store);
    const pool = holdfast.pool('gpu', { slots: 3 });
    const first = await pool.acquire();
    const second = await pool.acquire();
    expect([slotOf(first), slotOf(second)]).toEqual(['1', '2']);
    if (second.ok) await second.lease.release();
    calls.length = 0;
    const again = await pool.acquire();
    expect([slotOf(again), calls]).toEqual(['2', ['leases.acquire']]);
    if (again.ok) await again.lease.release();
    await holdfast.acquire(pool.keyOf('2'));
    calls.length = 0;
    expect(slotOf(await pool.acquire())).toBe('3');
    expect(calls).toEqual(['leases.acquire', 'leases.read', 'leases.acquire']);
  });

  it('takes the next slot if another process was faster', async () => {
    const { store, actor } = world();
    const [a, b] = [poolOf(await actor()), poolOf(await actor())];
    afterFirstLook(store, () => b.take());
    expect((await a.take()).slot).toBe('2');
  });

  it('reads the slots again if others took all free ones', async () => {
    const { store, actor } = world();
    const [a, b] = [poolOf(await actor()), poolOf(await actor())];
    afterFirstLook(store, async () => {
      const [, , three] = await b.fill();
      around(store, 'acquire', (acquire) => async (requests, call) => {
        const replies = await acquire(requests, call);
        if (requests[0]?.key === 'lease:gpu:3') await three?.lease.release();
        return replies;
      });
    });
    expect((await a.take()).slot).toBe('3');
  });

  it('stops after a few reads, and reports that all slots are held', async () => {
    const { store, actor } = world();
    const { pool } = poolOf(await actor());
    let looks = 0;
    around(store, 'read', (read) => (keys, call) => {
      looks++;
      return read(keys, call);
    });
    const busy: BusyReply = {
      ...{ kind: 'busy', reason: 'held', holder: 'x', fence: 1, expiresInMs: 70 },
    };
    around(store, 'acquire', () => async (requests) => requests.map(() => busy));
    expect(await pool.acquire()).toMatchObject({ ok: false, reason: 'held', expiresInMs: 70 });
    expect(looks).toBe(8);
  });

  it.each(['quarantine', 'revoked'] as const)('gets the reason %s', async (reason) => {
    const { store, actor } = world();
    const { pool, take } = poolOf(await actor());
    await take();
    const busy: BusyReply = { kind: 'busy', reason, holder: '', fence: 0, expiresInMs: 900 };
    around(store, 'acquire', () => async (requests) => requests.map(() => busy));
    expect(await pool.acquire()).toMatchObject({ ok: false, reason, expiresInMs: 900 });
  });

  it('K-15 gets the end of a quarantine, even if a slot expires sooner', async () => {
    const { store, actor } = world();
    const { holdfast, take } = await actor();
    const pool = holdfast.pool('gpu', { slots: 2, ttl: '5s' });
    await take('gpu:1', { ttl: '5s' });
    const busy: BusyReply = {
      ...{ kind: 'busy', reason: 'quarantine', holder: '', fence: 0, expiresInMs: 20_000 },
    };
    around(store, 'acquire', () => async (requests) => requests.map(() => busy));
    const facts = { reason: 'quarantine', expiresInMs: 20_000 };
    expect(await pool.acquire()).toMatchObject({ ok: false, ...facts });
    await expect(pool.withSlot(() => 1)).rejects.toMatchObject({
      ...{ code: 'STORE_QUARANTINED', key: 'gpu', expiresInMs: 20_000 },
    });
  });

  it('is not given a slot that was revoked while its holder may act', async () => {
    const { clock, actor } = world();
    const one = await actor();
    const { pool, fill } = poolOf(one);
    await fill();
    await one.holdfast.revoke(pool.keyOf('2'), { reason: 'broken' });
    expect(await pool.acquire()).toMatchObject({ ok: false, reason: 'revoked' });
    expect((await pool.inspect())[1]).toMatchObject({ slot: '2', holder: null });
    await clock.advance(31_000);
    expect((await pool.acquire()).ok).toBe(true);
  });

  it('with a holder name may hold several slots, and does not wait for its own', async () => {
    const { actor } = world();
    const { pool, take } = poolOf(await actor());
    await take({ holder: 'me' });
    await take({ holder: 'me' });
    expect(await holdersOf(pool)).toEqual(['me', 'me', null]);
  });
});

describe('a store that fails', () => {
  it('for one slot does not keep a caller from another, nor let it report all as held', async () => {
    const { store, actor } = world();
    const { pool, take } = poolOf(await actor());
    const error = new Error('WRONGTYPE');
    around(store, 'read', (read) => async (keys, call) => {
      const seen = await read(keys, call);
      return seen.map((reply, i) => (i === 0 ? { kind: 'failed', error } : reply));
    });
    expect((await take()).slot).toBe('2');
    await take();
    await expect(pool.acquire()).rejects.toBe(error);
    await expect(pool.inspect()).rejects.toBe(error);
  });

  it('on one shard is asked for one slot there, and the slots of other shards are tried', async () => {
    const { clock, store } = world();
    // As on a Cluster: two slots where nothing answers, and two elsewhere.
    const lane = (key: string) => (/[12]$/.test(key) ? 'dead' : 'alive');
    store.leases.lane = lane;
    const asked: string[] = [];
    const error = new Error('nobody there');
    around(store, 'acquire', (acquire) => async (requests, call) => {
      const keys = requests.map(({ key }) => key);
      asked.push(...keys);
      if (keys.some((key) => lane(key) === 'dead')) throw error;
      return acquire(requests, call);
    });
    const pool = (await open(store, { clock })).pool('gpu', { slots: 4 });
    expect(slotOf(await pool.acquire())).toBe('3');
    expect(asked).toEqual(['lease:gpu:1', 'lease:gpu:3']);
    expect(slotOf(await pool.acquire())).toBe('4');
    await expect(pool.acquire()).rejects.toBe(error);
  });

  it('is the error of acquire', async () => {
    const { clock, actor } = world();
    const one = await actor();
    const { pool } = poolOf(one);
    one.faults.refuse = true;
    await expect(pool.acquire()).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
    one.faults.refuse = false;
    one.faults.hang = true;
    const outcome = expect(pool.acquire()).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    await clock.advance(5_000);
    await outcome;
  });
});

describe('withSlot', () => {
  it('K-13 passes slot, fence and signal to the work, and releases the slot even if the work fails', async () => {
    const { actor } = world();
    const { pool } = poolOf(await actor());
    const told = await pool.withSlot(async ({ slot, fence, lease, signal, isHeld, assertHeld }) => {
      assertHeld();
      expect([lease.fence, lease.signal, lease.key]).toEqual([fence, signal, 'gpu:1']);
      return `${slot} ${isHeld()}`;
    });
    expect(told).toBe('1 true');
    const failing = pool.withSlot(() => Promise.reject(new Error('its own')));
    await expect(failing).rejects.toThrow('its own');
    expect(await holdersOf(pool)).toEqual([null, null, null]);
  });

  it('throws POOL_FULL with its facts if no slot is free', async () => {
    const { clock, actor } = world();
    const { pool, fill } = poolOf(await actor());
    await fill();
    const full = { code: 'POOL_FULL', pool: 'gpu', slots: 3, reason: 'held', waitedMs: 0 };
    await expect(pool.withSlot(() => 1)).rejects.toMatchObject(full);
    await expect(pool.withSlot(() => 1)).rejects.toThrow(
      "pool 'gpu' has none of its 3 slots free: all are held. The first expires in 30 s unless it is renewed. Pass a longer wait",
    );
    const waited = expect(pool.withSlot(() => 1, { wait: '2s' })).rejects.toMatchObject({
      ...{ ...full, waitedMs: 2_000 },
      message: expect.stringContaining('Waited 2 s.'),
    });
    await clock.advance(2_000);
    await waited;
  });
});

it('inspect shows the holder, the fence and the remaining time of each slot', async () => {
  const { clock, actor } = world();
  const { pool, take } = poolOf(await actor(), { slots: ['a', 'b'], key: 'lab', ttl: '9s' });
  const { lease } = await take({ holder: 'me' });
  await clock.advance(1_000);
  expect(lease.key).toBe('lab:a');
  expect(await pool.inspect()).toEqual([
    { slot: 'a', holder: 'me', fence: lease.fence, expiresInMs: 8_000 },
    { slot: 'b', holder: null, fence: 0, expiresInMs: 0 },
  ]);
  await lease.release();
  expect((await pool.inspect())[0]).toEqual({
    ...{ slot: 'a', holder: null, fence: lease.fence, expiresInMs: 0 },
  });
});

it('K-12 the slots of a pool have the timings of its class', async () => {
  const { actor } = world();
  const { take } = poolOf(await actor(), { slots: 1, class: 'resource' });
  expect((await take()).lease.remainingMs()).toBe(23_000);
});

const BAD_POOLS: [string, unknown, object, field: string][] = [
  ['no name', '', { slots: 1 }, 'name'],
  ['no slots', 'p', {}, 'slots'],
  ['0 slots', 'p', { slots: 0 }, 'slots'],
  ['10,001 slots', 'p', { slots: 10_001 }, 'slots'],
  ['half a slot', 'p', { slots: 1.5 }, 'slots'],
  ['slots as text', 'p', { slots: '4' }, 'slots'],
  ['slots of no name', 'p', { slots: [] }, 'slots'],
  ['a slot twice', 'p', { slots: ['a', 'b', 'a'] }, 'slots'],
  ['10,001 names', 'p', { slots: Array.from({ length: 10_001 }, (_, i) => `s${i}`) }, 'slots'],
  ['a slot with a newline', 'p', { slots: ['a\nb'] }, 'slots'],
  ['a slot that is a number', 'p', { slots: [1] }, 'slots'],
  ['a key that is none', 'p', { slots: 1, key: {} }, 'key'],
  ['keys that become too long', 'p'.repeat(255), { slots: 1 }, 'the key of a slot'],
  ['an unknown class', 'p', { slots: 1, class: 'vip' }, 'class'],
  ['timings that do not fit', 'p', { slots: 1, ttl: '10s', guard: '10s' }, 'renewEvery'],
  ['an unknown option', 'p', { slots: 1, wait: '1s' }, 'wait'],
];

const BAD_SLOTS: [string, object, field: string][] = [
  ['a wait that is no duration', { wait: 'soon' }, 'wait'],
  ['a signal that is none', { signal: {} }, 'signal'],
  ['an empty holder', { holder: '' }, 'holder'],
  ['a TTL, which is the pool’s', { ttl: '30s' }, 'ttl'],
  ['a fence', { fence: 1, holder: 'h' }, 'fence'],
];

describe('bad input is refused before any I/O', () => {
  it.each(BAD_POOLS)('refuses a pool with %s', async (_, name, options, field) => {
    const { actor } = world();
    const { holdfast } = await actor();
    const make = () => holdfast.pool(name as string, options as PoolOptions);
    expect(make).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID', field }));
  });

  it.each(BAD_SLOTS)('refuses a slot with %s', async (_, options, field) => {
    const { actor } = world();
    const { pool } = poolOf(await actor());
    const refused = { code: 'CONFIG_INVALID', field };
    await expect(pool.acquire(options as SlotOptions)).rejects.toMatchObject(refused);
    await expect(pool.withSlot(() => {}, options as SlotOptions)).rejects.toMatchObject(refused);
  });

  it('refuses work that is not a function', async () => {
    const { actor } = world();
    const { pool } = poolOf(await actor());
    await expect(pool.withSlot(1 as never)).rejects.toMatchObject({ field: 'work' });
  });
});
