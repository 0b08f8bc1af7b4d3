import { describe, expect, it } from 'vitest';
import type { SlotOptions, SlotResult } from '../../src/lease/pool.ts';
import { type Actor, world } from '../support/world.ts';

const SLOTS = { slots: 3 };

function poolOf({ holdfast }: Actor, options: Parameters<typeof holdfast.pool>[1] = SLOTS) {
  const pool = holdfast.pool('gpu', options);
  /** The slot, or an error if there was none. */
  const take = async (options?: SlotOptions) => {
    const result = await pool.acquire(options);
    if (!result.ok) throw new Error(`no slot: ${JSON.stringify(result)}`);
    return result;
  };
  return { pool, take };
}

const slotOf = (result: SlotResult) => (result.ok ? result.slot : null);

describe('who does not wait', () => {
  it('I-08 gets the first slot of the pool that is free, in the order of the slots', async () => {
    const { actor } = world();
    const [a, b] = [poolOf(await actor()), poolOf(await actor())];
    const first = await a.take();
    const second = await b.take();
    expect([first.slot, second.slot]).toEqual(['1', '2']);
    await first.lease.release();
    expect([(await b.take()).slot, (await a.take()).slot]).toEqual(['1', '3']);
    expect(await a.pool.acquire()).toMatchObject({
      ...{ ok: false, pool: 'gpu', slots: 3, reason: 'held', expiresInMs: 30_000, waitedMs: 0 },
    });
  });

  it('I-08 each of many who ask at once gets a slot of its own, while there are some', async () => {
    const { actor } = world();
    const { pool } = poolOf(await actor(), { slots: ['left', 'middle', 'right'] });
    const results = await Promise.all(Array.from({ length: 6 }, () => pool.acquire()));
    expect(results.map(slotOf)).toEqual(['left', 'middle', 'right', null, null, null]);
  });
});

describe('who waits', () => {
  it('has the slot that is freed first, at once', async () => {
    const { clock, actor } = world();
    const [a, b] = [poolOf(await actor()), poolOf(await actor())];
    const held = await Promise.all([a.take(), a.take(), a.take()]);
    const waiting = b.take({ wait: '20s' });
    await clock.advance(5_000);
    await held[1].lease.release();
    await clock.advance(0);
    expect((await waiting).slot).toBe('2');
    expect((await waiting).lease.fence).toBeGreaterThan(held[1].lease.fence);
  });
});
