import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/core/errors.ts';
import { world } from '../support/world.ts';

describe('release({ keepFor })', () => {
  it('B-10 no holder is granted the key until the time is over, not even the same one; then any', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const lease = await a.take('k', { holder: 'me' });
    expect(await lease.release({ keepFor: '5s' })).toEqual({ released: true });
    await clock.advance(4_999);
    expect(await b.holdfast.acquire('k')).toMatchObject({ ok: false, holder: 'me (kept)' });
    expect(await a.holdfast.acquire('k', { holder: 'me' })).toMatchObject({ ok: false });
    await clock.advance(1);
    expect((await b.take('k')).fence).toBeGreaterThan(lease.fence);
  });

  it('B-10 the time may be longer than the TTL, and the lease is not renewed meanwhile', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const lease = await a.take('k', { ttl: '3s' });
    await lease.release({ keepFor: '20s' });
    expect(lease.state).toBe('released');
    expect(a.holdfast.held).toBe(0);
    await clock.advance(19_999);
    expect((await b.holdfast.acquire('k')).ok).toBe(false);
    expect(a.happened.filter(({ name }) => name === 'lease.renewed')).toEqual([]);
    await clock.advance(1);
    expect((await b.holdfast.acquire('k')).ok).toBe(true);
  });

  it('B-10 the lease is over in this process at once: its signal fires and assertHeld throws', async () => {
    const { actor } = world();
    const { take, happened } = await actor();
    const lease = await take('k');
    const { signal } = lease;
    await lease.release({ keepFor: '5s' });
    expect(signal.aborted).toBe(true);
    expect(lease.isHeld()).toBe(false);
    expect(() => lease.assertHeld()).toThrow(/released/);
    expect(happened.at(-1)).toMatchObject({ name: 'lease.released', keptForMs: 5_000 });
  });

  it('B-10 a time longer than maxTtl is refused, and the lease stays held', async () => {
    const { actor } = world();
    const { take } = await actor({ maxTtl: '10s' });
    const lease = await take('k', { ttl: '5s' });
    const refused = lease.release({ keepFor: '11s' });
    await expect(refused).rejects.toThrow(ConfigError);
    await expect(refused).rejects.toThrow(/keepFor is "11s": .*at most 10000 ms, the maxTtl/);
    expect(lease.isHeld()).toBe(true);
    expect(await lease.release({ keepFor: '10s' })).toEqual({ released: true });
  });

  it('B-10 a key whose release got no answer is left to expire, and is not released early', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const lease = await a.take('k', { ttl: '6s' });
    a.faults.hang = true;
    const releasing = lease.release({ keepFor: '5s' });
    await clock.advance(1_000);
    expect(await releasing).toEqual({ released: false, reason: 'unknown' });
    a.faults.hang = false;
    await clock.advance(4_900);
    expect((await b.holdfast.acquire('k')).ok).toBe(false);
    await clock.advance(100);
    expect((await b.holdfast.acquire('k')).ok).toBe(true);
  });

  it('B-10 a waiting caller is granted the key after the time', async () => {
    const { clock, actor } = world();
    const [a, b] = [await actor(), await actor()];
    const lease = await a.take('k', { ttl: '3s' });
    const waiting = b.take('k', { wait: '20s', ttl: '3s' });
    await clock.advance(10);
    await lease.release({ keepFor: '8s' });
    await clock.advance(7_900);
    expect((await b.holdfast.inspect('k')).kind).toBe('held');
    await clock.advance(200);
    expect((await waiting).fence).toBeGreaterThan(lease.fence);
  });

  it('B-10 with 0 it is a plain release', async () => {
    const { actor } = world();
    const { take, holdfast } = await actor();
    await (await take('k')).release({ keepFor: 0 });
    expect((await holdfast.inspect('k')).kind).toBe('free');
  });
});
