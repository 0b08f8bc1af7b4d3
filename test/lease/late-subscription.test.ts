import { expect, it } from 'vitest';
import { fleetWorld } from '../support/fleet-world.ts';

it('K-10 a subscription that opens only after its instance was closed is cancelled', async () => {
  const world = fleetWorld();
  await world.add(2);
  let stand = () => {};
  const standing = new Promise<void>((resolve) => (stand = resolve));
  let listeners = 0;
  world.store.signals.subscribe = async () => {
    await standing;
    listeners++;
    return () => void listeners--;
  };
  const { holdfast, poller } = await world.start();
  await world.clock.advance(1_000);
  const held = await holdfast.acquire('k');
  expect(held.ok).toBe(true);
  const refused = { code: 'CLOSED' };
  const waiting = expect(holdfast.acquire('k', { wait: '1m' })).rejects.toMatchObject(refused);
  await world.clock.advance(1_000);
  const stopped = poller.stop().then(() => holdfast.close());
  await world.clock.advance(20_000);
  await waiting;
  await stopped;
  stand();
  await world.clock.advance(1_000);
  expect(listeners).toBe(0);
});
