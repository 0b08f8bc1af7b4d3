import { expect, it } from 'vitest';
import { DRAIN_COLLECTION } from '../../src/cluster/presence.ts';
import { fleetWorld } from '../support/fleet-world.ts';

it('P-06 an order to drain, and its undoing, are heard at once and not at the next tick', async () => {
  const world = fleetWorld();
  await world.add(8);
  const a = await world.start();
  const b = await world.start();
  await world.clock.advance(5_000);
  expect(world.loads([a, b])).toEqual([4, 4]);
  const ordering = b.holdfast.fleet.drain(a.id);
  await world.clock.advance(200);
  await ordering;
  expect(world.loads([a, b])).toEqual([0, 8]);
  const undoing = b.holdfast.fleet.undrain(a.id);
  await world.clock.advance(300);
  await undoing;
  expect(world.loads([a, b])).toEqual([4, 4]);
});

it('P-06 an order that nobody told of is found within a TTL, though not asked for at every heartbeat', async () => {
  const world = fleetWorld();
  await world.add(8);
  const [a, b] = [await world.start(), await world.start()];
  const { records } = world.store;
  const { get } = records;
  let looks = 0;
  records.get = (collection, ids, call) => {
    if (collection === DRAIN_COLLECTION && ids.includes(a.id)) looks++;
    return get.call(records, collection, ids, call);
  };
  await world.clock.advance(30_000);
  expect(looks).toBeGreaterThanOrEqual(8);
  expect(looks).toBeLessThanOrEqual(11);
  await records.put(DRAIN_COLLECTION, [{ id: a.id, value: {} }], { timeoutMs: 1_000 });
  await world.clock.advance(4_500);
  expect(world.loads([a, b])).toEqual([0, 8]);
});
