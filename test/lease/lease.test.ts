import { describe, expect, it } from 'vitest';
import { type Actor, world } from '../support/world.ts';

describe('a lease', () => {
  it('K-14 says when it was acquired and renewed', async () => {
    const { clock, actor } = world();
    const startMs = clock.wallMs();
    const lease = await (await actor()).take('k', { ttl: '3s' });
    await clock.advance(1_500);
    expect(lease.acquiredAt).toEqual(new Date(startMs));
    expect(lease.lastRenewedAt.getTime()).toBeGreaterThan(startMs + 900);
  });

  it('K-08 can be disposed of, and a release that is repeated is the same one', async () => {
    const { clock, actor } = world();
    const { take } = await actor();
    const lease = await take('k');
    const disposing = lease[Symbol.asyncDispose]();
    await clock.advance(10);
    await disposing;
    expect(lease.state).toBe('released');
    expect(await lease.release()).toEqual({ released: true });
    expect(await lease.transfer('b')).toEqual({ transferred: false, reason: 'released' });
  });

  it('K-10 one that was conceded to a successor is over here, and the store is not told', async () => {
    const { clock, actor } = world();
    const { holdfast, take, happened } = await actor();
    const lease = await take('k', { holder: 'a' });
    lease.concede('b');
    expect(lease.state).toBe('released');
    expect(await lease.release()).toEqual({ released: false, reason: 'released' });
    expect(happened).toContainEqual(
      expect.objectContaining({ name: 'lease.transferred', key: 'k', successor: 'b' }),
    );
    lease.concede('c');
    expect(happened.filter(({ name }) => name === 'lease.transferred')).toHaveLength(1);
    // The store still has it: only its answer would have freed the key.
    await clock.advance(10);
    expect(await holdfast.acquire('k')).toMatchObject({ ok: false, reason: 'held' });
  });

  it('K-10 one that is lost is not conceded', async () => {
    const { clock, actor } = world();
    const { take, happened } = await actor();
    const lease = await take('k', { ttl: '3s' });
    clock.block(5_000);
    lease.concede('b');
    expect(lease.lossReason).toBe('expired');
    expect(happened.map(({ name }) => name)).not.toContain('lease.transferred');
  });
});

describe('a set of leases', () => {
  async function pair({ holdfast }: Actor) {
    return holdfast.acquireAll(['x', 'y'], { ttl: '3s' });
  }

  it('K-08 lasts as long as its first lease, and is disposed of as a whole', async () => {
    const { clock, actor } = world();
    const a = await actor();
    const set = await pair(a);
    expect([set.get('x')?.key, set.get('z')]).toEqual(['x', undefined]);
    expect(set.isHeld()).toBe(true);
    expect(set.remainingMs()).toBeCloseTo(2_850, 0);
    await set.get('x')?.renew();
    const { signal } = set;
    expect(set.signal).toBe(signal);
    await a.holdfast.revoke('y', { reason: 'a test', force: true });
    await clock.advance(10);
    expect([set.isHeld(), set.remainingMs(), signal.aborted]).toEqual([false, 0, true]);
    expect(() => set.assertHeld()).toThrow(expect.objectContaining({ key: 'y' }));
    const disposing = set[Symbol.asyncDispose]();
    await clock.advance(10);
    await disposing;
    expect(set.leases.map(({ state }) => state)).toEqual(['released', 'lost']);
  });

  it('K-11 guards a transaction with each of its leases', async () => {
    const { actor } = world();
    const set = await pair(await actor());
    await expect(set.guard(async () => {})).rejects.toMatchObject({ code: 'GUARD_NOT_OFFERED' });
  });

  it('K-01 the fence of one lease continues no set', async () => {
    const { actor } = world();
    const { holdfast } = await actor();
    await expect(holdfast.acquireAll(['x', 'y'], { holder: 'a', fence: 7 })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      field: 'fence',
      value: 7,
    });
  });
});
