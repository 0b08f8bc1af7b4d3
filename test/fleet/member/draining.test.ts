import { expect, it } from 'vitest';
import { askTopic } from '../../../src/fleet/member/handover.ts';
import { DRAIN_COLLECTION } from '../../../src/fleet/member/heartbeat.ts';
import { fleetWorld } from '../../support/fleet-world.ts';

it('P-06 an order to drain, and its removal, take effect at once and not at the next tick', async () => {
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

it('P-06 an order without a signal is found within a TTL, and is not read at every heartbeat', async () => {
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

const CALL = { timeoutMs: 1_000 };

/** One instance that is ordered to drain, and so hands over whatever it is asked for. */
async function drained() {
  const world = fleetWorld();
  const ids = await world.add(4);
  const a = await world.start();
  await world.store.records.put(DRAIN_COLLECTION, [{ id: a.id, value: {} }], CALL);
  await world.clock.advance(5_000);
  expect(a.owned()).toEqual(ids);
  return { world, ids, a };
}

it('P-06 a draining instance gives nothing to another draining member that asks', async () => {
  const { world, ids, a } = await drained();
  const attributes = { draining: true, asks: { [a.id]: ids } };
  await world.store.members.beat({ id: 'drainer', attributes }, { ttlMs: 60_000, ...CALL });
  await world.clock.advance(5_000);
  expect(a.owned()).toEqual(ids);
  expect(a.count('lease.transferred')).toBe(0);
});

it('P-06 a draining instance gives nothing to a foreign member that asks', async () => {
  const { world, ids, a } = await drained();
  const { members, signals } = world.store;
  const list = members.list.bind(members);
  const stranger = { id: 'stranger', attributes: null, expiresInMs: 3_000 };
  members.list = async (call) => [...(await list(call)), stranger];
  await world.clock.advance(2_000);
  await signals.publish(askTopic(a.id), JSON.stringify({ from: 'stranger', ids }));
  await world.clock.advance(5_000);
  expect(a.owned()).toEqual(ids);
  expect(a.count('lease.transferred')).toBe(0);
});

it('P-06 an instance that leaves removes its order to drain', async () => {
  const { world, a } = await drained();
  const stopping = a.poller.stop();
  await world.clock.advance(1_000);
  await stopping;
  const [order] = await world.store.records.get(DRAIN_COLLECTION, [a.id], CALL);
  expect(order).toEqual({ kind: 'absent' });
});

it('P-06 an order removes all orders of members that are gone, however many there are', async () => {
  const world = fleetWorld();
  const a = await world.start();
  const { records } = world.store;
  const gone = Array.from({ length: 2_500 }, (_, i) => ({ id: `gone-${i}`, value: {} }));
  for (let at = 0; at < gone.length; at += 500)
    await records.put(DRAIN_COLLECTION, gone.slice(at, at + 500), CALL);
  const ordering = a.holdfast.fleet.drain(a.id);
  await world.clock.advance(1_000);
  expect(await ordering).toEqual({ changed: true });
  const ids = [a.id, ...gone.map(({ id }) => id)];
  const orders = await records.get(DRAIN_COLLECTION, ids, CALL);
  expect(orders.findLastIndex(({ kind }) => kind === 'found')).toBe(0);
});
