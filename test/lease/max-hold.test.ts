import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/core/errors.ts';
import { seededRandom } from '../../src/core/random.ts';
import { open } from '../../src/holdfast.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

async function twoProcesses() {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const one = await open(store, { clock, random: seededRandom(1) });
  const two = await open(store, { clock, random: seededRandom(2) });
  return { clock, one, two };
}

async function held(holdfast: Awaited<ReturnType<typeof open>>, options: object) {
  const result = await holdfast.acquire('job', { ttl: '3s', ...options });
  if (!result.ok) throw new Error('the key is held');
  return result.lease;
}

describe('maxHold', () => {
  it('B-05 ends a lease that is renewed all the time, with its own reason', async () => {
    const { clock, one } = await twoProcesses();
    const lost: unknown[] = [];
    one.on('lease.lost', ({ reason, lateMs }) => lost.push({ reason, lateMs }));
    const lease = await held(one, { maxHold: '10s' });
    const { signal } = lease;
    await clock.advance(9_990);
    expect(lease.isHeld()).toBe(true);
    expect(lease.remainingMs()).toBeCloseTo(10, 3);
    expect(lease.deadline.validMs).toBeLessThan(3_000);
    await clock.advance(10);
    expect(signal.aborted).toBe(true);
    expect(lease.isHeld()).toBe(false);
    expect(() => lease.assertHeld()).toThrow(/its maxHold has passed/);
    expect(lost).toEqual([{ reason: 'max_hold', lateMs: 0 }]);
  });

  it('B-05 frees the key within one TTL, even if its work never stops', async () => {
    const { clock, one, two } = await twoProcesses();
    await held(one, { maxHold: '10s' });
    const taking = two.acquire('job', { ttl: '3s', wait: '1m' });
    await clock.advance(13_100);
    const result = await taking;
    expect(result.ok && result.lease.fence).toBeGreaterThan(1);
  });

  it('B-05 frees the key at once when the work of withLease stops', async () => {
    const { clock, one, two } = await twoProcesses();
    const working = one.withLease(
      'job',
      ({ signal }) => clock.sleep(60_000, signal).catch(() => 'stopped'),
      { ttl: '3s', maxHold: '5s' },
    );
    await clock.advance(5_000);
    expect(await working).toBe('stopped');
    await clock.advance(300);
    const again = await two.acquire('job', { ttl: '3s' });
    expect(again.ok).toBe(true);
  });

  it('B-05 counts from the request that was granted, also if it is shorter than the TTL', async () => {
    const { clock, one } = await twoProcesses();
    const lease = await held(one, { maxHold: 500 });
    await clock.advance(499);
    expect(lease.isHeld()).toBe(true);
    await clock.advance(1);
    expect(lease.isHeld()).toBe(false);
  });

  it.each([0, -1, 'soon', Number.NaN])('B-05 of %s is refused with its field', async (maxHold) => {
    const { one } = await twoProcesses();
    const acquiring = one.acquire('job', { maxHold });
    await expect(acquiring).rejects.toThrow(ConfigError);
    await expect(acquiring).rejects.toMatchObject({ field: 'maxHold', value: maxHold });
  });
});
