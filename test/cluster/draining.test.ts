import { expect, it } from 'vitest';
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
