import { describe, expect, it } from 'vitest';
import { TransferRefusedError } from '../../../src/fleet/errors.ts';
import { PINS_COLLECTION, PinSet } from '../../../src/fleet/view/pin-set.ts';
import { fleetWorld, type Instance } from '../../support/fleet-world.ts';

type World = ReturnType<typeof fleetWorld>;

const CALL = { timeoutMs: 1_000 };

async function three(world: World, targets: number): Promise<[Instance, Instance, Instance]> {
  await world.add(targets);
  const [a, b, c] = [await world.start(), await world.start(), await world.start()];
  await world.clock.advance(3_000);
  return [a, b, c];
}

/** Gives the order while time passes. */
async function transfer(world: World, target: string, from: Instance, to: Instance, ms = 300) {
  const ordering = from.holdfast.fleet.transfer(target, to.id, { reason: 'nearer to it' });
  await world.clock.advance(ms);
  return ordering;
}

async function pinned(world: World): Promise<string[]> {
  const { written } = await world.store.records.changes(PINS_COLLECTION, { ...CALL, since: 0 });
  return [...written];
}

function ownerOf(of: readonly Instance[], target: string): string | undefined {
  return of.find((one) => one.owned().includes(target))?.id;
}

describe('a target that an operator moves', () => {
  it('P-06 is handed over at once, another target goes the other way, and it does not move back', async () => {
    const world = fleetWorld();
    const all = await three(world, 9);
    const [a, b] = all;
    const [target = ''] = a.owned();
    const before = new Map(all.flatMap((one) => one.owned().map((id) => [id, one.id])));
    expect(await transfer(world, target, a, b)).toEqual({ from: a.id, to: b.id });
    expect(ownerOf(all, target)).toBe(b.id);
    await world.clock.advance(1_000);
    expect(world.loads(all)).toEqual([3, 3, 3]);
    const moved = all.flatMap((one) => one.owned().filter((id) => before.get(id) !== one.id));
    expect(moved).toHaveLength(2);
    await world.clock.advance(60_000);
    expect(ownerOf(all, target)).toBe(b.id);
    expect(all.flatMap((one) => one.owned()).filter((id) => before.get(id) === undefined)).toEqual(
      [],
    );
    expect(all.map((one) => one.count('lease.transferred')).reduce((x, y) => x + y)).toBeLessThan(
      12,
    );
    expect(world.overlaps()).toEqual([]);
  });

  it('P-06 waits for the poll in flight, and is polled by one instance at a time', async () => {
    const world = fleetWorld();
    const [a, b] = await three(world, 3);
    const [target = ''] = a.owned();
    a.pollMs = 1_000;
    await world.clock.advance(400);
    await transfer(world, target, a, b, 100);
    expect(b.owned()).not.toContain(target);
    await world.clock.advance(1_500);
    expect(b.owned()).toContain(target);
    expect(world.overlaps()).toEqual([]);
  });

  it('P-06 stays with an instance over a join, a leave and a rolling restart of the others', async () => {
    const world = fleetWorld();
    const [a, b, c] = await three(world, 12);
    const [target = ''] = a.owned();
    await transfer(world, target, a, b, 1_000);
    const d = await world.start();
    await world.clock.advance(3_000);
    expect(world.loads([a, b, c, d])).toEqual([3, 3, 3, 3]);
    for (const one of [a, c]) {
      const stopped = one.poller.stop();
      await world.clock.advance(2_000);
      await stopped;
      expect(b.owned()).toContain(target);
    }
    expect(world.loads([b, d])).toEqual([6, 6]);
  });

  it('P-06 moves to another instance when its own dies, and the pin is removed', async () => {
    const world = fleetWorld();
    const [a, b, c] = await three(world, 6);
    const [target = ''] = a.owned();
    await transfer(world, target, a, b, 1_000);
    b.faults.refuse = true;
    await world.clock.advance(5_000);
    expect(ownerOf([a, c], target)).toBeDefined();
    expect(world.loads([a, c])).toEqual([3, 3]);
    await world.clock.advance(5_000);
    expect(await pinned(world)).toEqual([]);
  });

  it('P-06 leaves its instance while that drains, and returns when that takes part again', async () => {
    const world = fleetWorld();
    const all = await three(world, 9);
    const [a, b] = all;
    const [target = ''] = a.owned();
    await transfer(world, target, a, b, 1_000);
    const draining = a.holdfast.fleet.drain(b.id);
    await world.clock.advance(2_000);
    await draining;
    expect(b.owned()).toEqual([]);
    const explained = (await a.holdfast.fleet.view()).targets.find((one) => one.target === target);
    expect(explained).toMatchObject({ pinned: b.id, reason: 'kept' });
    expect(explained?.text).toMatch(/An operator has moved it to api2-\S+, which is draining\.$/);
    const undoing = a.holdfast.fleet.undrain(b.id);
    await world.clock.advance(2_000);
    await undoing;
    expect(b.owned()).toContain(target);
    expect(world.loads(all)).toEqual([3, 3, 3]);
  });

  it('P-06 is not forced from a frozen owner: it moves when the lease has expired', async () => {
    const world = fleetWorld();
    const all = await three(world, 6);
    const [a, b, c] = all;
    const [target = ''] = a.owned();
    a.faults.hang = true;
    const ordering = c.holdfast.fleet.transfer(target, b.id);
    await world.clock.advance(1_000);
    await ordering;
    expect(ownerOf([b, c], target)).toBeUndefined();
    await world.clock.advance(4_000);
    expect(ownerOf([b, c], target)).toBe(b.id);
    expect(world.overlaps()).toEqual([]);
  });

  it('P-06 is taken by the pinned instance if it is free, even beyond its share', async () => {
    const world = fleetWorld();
    const ids = await world.add(4);
    const a = await world.start();
    const b = await world.start();
    await world.clock.advance(3_000);
    const [target = ''] = a.owned();
    await a.holdfast.targets.pause(target);
    await world.clock.advance(500);
    expect(await transfer(world, target, a, b)).toEqual({ from: null, to: b.id });
    await a.holdfast.targets.resume(target);
    await world.clock.advance(1_000);
    expect(b.owned()).toContain(target);
    for (const id of ids) await transfer(world, id, a, b, 500);
    expect(world.loads([a, b])).toEqual([0, 4]);
    await world.clock.advance(20_000);
    expect(world.loads([a, b])).toEqual([0, 4]);
  });

  it('P-06 may move again after it is unpinned, and does so only when needed', async () => {
    const world = fleetWorld();
    const ids = await world.add(4);
    const [a, b] = [await world.start(), await world.start()];
    await world.clock.advance(3_000);
    for (const id of ids) await transfer(world, id, a, b, 500);
    expect(world.loads([a, b])).toEqual([0, 4]);
    for (const id of ids) {
      const undoing = a.holdfast.fleet.unpin(id);
      await world.clock.advance(500);
      expect(await undoing).toEqual({ changed: true });
    }
    await world.clock.advance(1_000);
    expect(world.loads([a, b])).toEqual([2, 2]);
    const again = a.holdfast.fleet.unpin(ids[0] ?? '');
    await world.clock.advance(10);
    expect(await again).toEqual({ changed: false });
  });

  it('P-06 is found within a TTL without a signal, and costs a steady fleet one read per TTL', async () => {
    const world = fleetWorld();
    const [a, b] = await three(world, 6);
    const { records } = world.store;
    const { changes } = records;
    let looks = 0;
    records.changes = (collection, call) => {
      if (collection === PINS_COLLECTION) looks++;
      return changes.call(records, collection, call);
    };
    await world.clock.advance(30_000);
    expect(looks).toBeLessThanOrEqual(3 * 11);
    const [target = ''] = a.owned();
    const value = { member: b.id, sinceMs: 0 };
    await records.put(PINS_COLLECTION, [{ id: target, value }], CALL);
    await world.clock.advance(5_000);
    expect(b.owned()).toContain(target);
  });

  it('P-06 that is pinned to a member that only beats stays: a member that does not ask gets nothing', async () => {
    const world = fleetWorld();
    const [a, b, c] = await three(world, 6);
    const [target = ''] = a.owned();
    const beat = () =>
      world.store.members.beat(
        { id: 'ghost-1', attributes: { weight: 1 } },
        { ttlMs: 3_000, timeoutMs: 1_000 },
      );
    await beat();
    await a.holdfast.fleet.transfer(target, 'ghost-1');
    const before = world.polls.length;
    for (let i = 0; i < 20; i++) {
      await world.clock.advance(1_000);
      await beat();
    }
    expect(ownerOf([a, b, c], target)).toBe(a.id);
    expect(world.polls.slice(before).filter((one) => one.target === target).length).toBeGreaterThan(
      80,
    );
  });

  it('P-06 an invalid pin does no harm', async () => {
    const world = fleetWorld();
    const all = await three(world, 3);
    const ids = all.flatMap((one) => one.owned());
    const values = ['x', { member: 7 }, null];
    const writes = ids.map((id, i) => ({ id, value: values[i] }));
    await world.store.records.put(PINS_COLLECTION, writes, CALL);
    await world.clock.advance(10_000);
    expect(world.loads(all)).toEqual([1, 1, 1]);
    const { targets } = await all[0].holdfast.fleet.view();
    expect(targets.map(({ pinned: pin }) => pin)).toEqual([null, null, null]);
  });

  it('P-06 that was unpinned without a signal may move within a TTL', async () => {
    const world = fleetWorld();
    const [a, b] = await three(world, 6);
    const [target = ''] = a.owned();
    await transfer(world, target, a, b, 1_000);
    await world.store.records.remove(PINS_COLLECTION, [{ id: target }], CALL);
    await world.clock.advance(5_000);
    expect(a.poller.explain(target)).toMatchObject({ pinned: null, owner: b.id });
  });

  it('P-06 is no longer pinned after the store has lost the pin', async () => {
    const { store } = fleetWorld();
    const pins = new PinSet(store);
    await store.records.put(PINS_COLLECTION, [{ id: 't', value: { member: 'a' } }], CALL);
    expect(await pins.refresh(1_000)).toBe(true);
    expect(await pins.refresh(1_000)).toBe(false);
    expect(pins.memberOf('t')).toBe('a');
    const { changes } = store.records;
    // Versions go on growing over a loss: nothing else tells that it is gone.
    store.records.changes = async (_, { since }) => {
      return { written: [], removed: [], version: since + 1, more: false, reset: false };
    };
    expect(await pins.refresh(1_000)).toBe(false);
    pins.reset();
    expect(pins.memberOf('t')).toBe('a');
    expect(await pins.refresh(1_000)).toBe(true);
    expect(pins.memberOf('t')).toBeNull();
    // Too much was removed since to tell: all are listed anew.
    store.records.changes = async (collection, call) => {
      const page = await changes.call(store.records, collection, call);
      return { ...page, reset: call.since > 0 };
    };
    expect(await pins.refresh(1_000)).toBe(true);
    expect(pins.memberOf('t')).toBe('a');
  });
});

describe('an invalid transfer', () => {
  it('is refused: an unknown target or member, a draining member, a non-Holdfast program', async () => {
    const world = fleetWorld();
    const [a, b] = await three(world, 3);
    const [target = ''] = a.owned();
    const { fleet } = a.holdfast;
    await expect(fleet.transfer('nothing', b.id)).rejects.toMatchObject({
      code: 'SESSION_NOT_FOUND',
    });
    await expect(fleet.transfer('{}', b.id)).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
    await expect(fleet.transfer(target, 'nobody')).rejects.toMatchObject({
      code: 'MEMBER_NOT_FOUND',
    });
    await expect(fleet.unpin('nothing')).rejects.toMatchObject({ code: 'SESSION_NOT_FOUND' });
    const bad = { reason: '' };
    await expect(fleet.transfer(target, b.id, bad)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
    });
    const draining = fleet.drain(b.id);
    await world.clock.advance(1_000);
    await draining;
    await expect(fleet.transfer(target, b.id)).rejects.toThrow(TransferRefusedError);
    const { list } = world.store.members;
    world.store.members.list = async (call) => [
      ...(await list.call(world.store.members, call)),
      { id: 'stranger', attributes: null, expiresInMs: 1_000 },
    ];
    await expect(fleet.transfer(target, 'stranger')).rejects.toMatchObject({ why: 'foreign' });
    expect(await pinned(world)).toEqual([]);
  });
});

describe('what operators see of a pin', () => {
  it('the explanation says that the target is pinned, on its way and after it has arrived', async () => {
    const world = fleetWorld();
    const [a, b] = await three(world, 3);
    const [target = ''] = a.owned();
    a.pollMs = 500;
    await world.clock.advance(250);
    await transfer(world, target, a, b, 20);
    const { targets } = await b.holdfast.fleet.view();
    expect(targets.find((one) => one.target === target)).toMatchObject({
      ...{ pinned: b.id, planned: b.id, owner: a.id, reason: 'moving' },
      text: `${a.id} owns this target and hands it to ${b.id}, because an operator moved it there.`,
    });
    await world.clock.advance(1_500);
    expect(b.poller.explain(target)).toMatchObject({
      ...{ pinned: b.id, planned: b.id, owner: b.id, reason: 'kept' },
      text: `${b.id} keeps this target, because an operator moved it there.`,
    });
  });

  it('the picture shows it, and watchers see it within moments', async () => {
    const world = fleetWorld();
    const [a, b] = await three(world, 3);
    const [target = ''] = a.owned();
    const ending = new AbortController();
    const seen: (string | null | undefined)[] = [];
    const watching = (async () => {
      for await (const sighting of b.holdfast.fleet.watch({ signal: ending.signal })) {
        const { targets } =
          sighting.kind === 'picture'
            ? sighting.picture
            : sighting.kind === 'change'
              ? sighting.change
              : {};
        const found = targets?.find(({ id }) => id === target);
        if (found !== undefined && seen.at(-1) !== found.pinned) seen.push(found.pinned);
      }
    })();
    await world.clock.advance(500);
    await transfer(world, target, a, b, 200);
    expect(seen).toEqual([null, b.id]);
    const { targets } = await a.holdfast.fleet.picture();
    expect(targets.find(({ id }) => id === target)).toMatchObject({ pinned: b.id, owner: b.id });
    const undoing = a.holdfast.fleet.unpin(target);
    await world.clock.advance(200);
    await undoing;
    expect(seen).toEqual([null, b.id, null]);
    ending.abort();
    await world.clock.advance(100);
    await watching;
  });
});
