import { describe, expect, it, onTestFinished } from 'vitest';
import { Emitter, type EventName } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { open } from '../../src/holdfast.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import { simDialer } from '../support/sim-link.ts';

describe('reasserting a lease after the store lost it', () => {
  it('K-15 restores it with its fence', async () => {
    const { clock, redis, take, happened } = await holder();
    const lease = await take();
    redis.flush();
    await clock.advance(11_000);
    expect(lease.state).toBe('held');
    expect(happened).toContain('lease.reasserted');
  });

  it('K-15 is refused if the wall clock jumped past the deadline, because the key may have been granted meanwhile', async () => {
    const { clock, redis, take, happened } = await holder();
    const lease = await take();
    // The monotonic clock stood still; only the wall clock shows that the time is up.
    clock.jumpWall(40_000);
    redis.flush();
    await clock.advance(11_000);
    expect(lease.state).toBe('lost');
    expect(happened).not.toContain('lease.reasserted');
  });

  it('K-15 is refused after such a jump even if the store still has the fence record, because it may have lost a later grant', async () => {
    const { clock, redis, take, happened } = await holder();
    const lease = await take();
    clock.jumpWall(40_000);
    redis.lose((key) => key === 'lease:k');
    await clock.advance(11_000);
    expect(lease.state).toBe('lost');
    expect(happened).not.toContain('lease.reasserted');
  });
});

/** A Holdfast on a Redis that has been up for long: no quarantine keeps it from its first lease. */
async function holder() {
  const clock = new FakeClock();
  const startMs = clock.wallMs();
  const random = seededRandom(1);
  // The server's own clock, which nobody touches.
  const server = { wallMs: () => startMs + clock.monotonicMs(), nowMs: () => clock.monotonicMs() };
  const redis = new SimRedis({ ...server, random });
  await clock.advance(600_000);
  const events = new Emitter();
  events.on('store.warned', () => {});
  const store = await openRedisStoreOn(simDialer(redis), { clock, random, events });
  const holdfast = await open(store, { clock, random });
  const happened: EventName[] = [];
  for (const name of ['lease.reasserted', 'lease.lost'] as const)
    holdfast.on(name, () => happened.push(name));
  onTestFinished(async () => {
    const closing = holdfast.close({ within: 0 }).then(() => store.close());
    await clock.advance(10_000);
    await closing;
  });
  const take = async () => {
    const result = await holdfast.acquire('k', { ttl: '30s' });
    if (!result.ok) throw new Error(`not granted: ${result.reason}`);
    return result.lease;
  };
  return { clock, redis, take, happened };
}
