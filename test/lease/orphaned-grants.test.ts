import { expect, it } from 'vitest';
import { world } from '../support/world.ts';

it('K-03 grants whose answers never came are released in few requests', async () => {
  const { clock, store, actor } = world();
  const sizes: number[] = [];
  const { release } = store.leases;
  store.leases.release = (tenures, call) => {
    sizes.push(tenures.length);
    return release.call(store.leases, tenures, call);
  };
  const { holdfast, faults, names } = await actor();
  faults.loseReplies = true;
  const keys = Array.from({ length: 600 }, (_, i) => `k${i}`);
  const lost = keys.map((key) => holdfast.acquire(key, { ttl: '30s' }).catch(() => 'lost'));
  await clock.advance(6_000);
  expect(new Set(await Promise.all(lost))).toEqual(new Set(['lost']));
  faults.loseReplies = false;
  await clock.advance(6_000);
  expect(names().filter((name) => name === 'lease.returned')).toHaveLength(600);
  expect(sizes.reduce((sum, size) => sum + size)).toBe(600);
  expect(sizes.length).toBeLessThanOrEqual(5);
});

it('K-03 more orphaned grants than the limit expire, and an event counts them', async () => {
  const { clock, store, actor } = world();
  const { holdfast, faults } = await actor();
  const told: number[] = [];
  holdfast.on('lease.unreturned', ({ count }) => told.push(count));
  faults.loseReplies = true;
  const keys = Array.from({ length: 10_007 }, (_, i) => `k${i}`);
  const lost = keys.map((key) => holdfast.acquire(key, { ttl: '30s' }).catch(() => 'lost'));
  await clock.advance(6_000);
  await Promise.all(lost);
  faults.loseReplies = false;
  await clock.advance(10_000);
  expect(told).toEqual([7]);
  const read = () => store.leases.list('lease:', { timeoutMs: 1_000 });
  expect((await read()).leases).toHaveLength(7);
  await clock.advance(30_000);
  expect((await read()).leases).toEqual([]);
});

it('K-08 an event counts the grants that an unreachable store was not told of at close', async () => {
  const { clock, actor } = world();
  const { holdfast, faults } = await actor();
  const told: object[] = [];
  holdfast.on('lease.unreturned', (facts) => told.push(facts));
  faults.loseReplies = true;
  const lost = holdfast.acquire('k', { ttl: '3s' }).catch(() => 'lost');
  await clock.advance(600);
  expect(await lost).toBe('lost');
  const closing = holdfast.close();
  await clock.advance(5_000);
  await closing;
  expect(told).toMatchObject([{ count: 1, why: expect.stringContaining('did not answer') }]);
});
