import { describe, expect, it } from 'vitest';
import { fleetWorld } from '../../support/fleet-world.ts';

const CALL = { timeoutMs: 1_000 };

describe('the nine methods, and leaseInfo', () => {
  it('FR-005 instanceId is a name, the moment of the start in nanoseconds, and chance', async () => {
    const world = fleetWorld();
    const { poller, id } = await world.instance();
    expect(poller.manager.instanceId).toBe(id);
    expect(id).toMatch(/^api1-\d{19}-[0-9a-f]{8}$/);
  });

  it('FR-006 FR-008 start beats, with a TTL, and stop takes the heartbeat away', async () => {
    const world = fleetWorld();
    const a = await world.start();
    await world.clock.advance(10_000);
    const [member] = await world.store.members.list(CALL);
    expect(member).toMatchObject({
      id: a.id,
      attributes: { weight: 1, draining: false, owned: 0 },
    });
    expect(member?.expiresInMs).toBeGreaterThan(1_900);
    expect(member?.expiresInMs).toBeLessThanOrEqual(3_000);
    await a.poller.manager.stop(1_000);
    expect(await world.store.members.list(CALL)).toEqual([]);
  });

  it('FR-007 getLiveNodes names all instances with a heartbeat', async () => {
    const world = fleetWorld();
    const [a, b] = [await world.start(), await world.start()];
    expect((await a.poller.manager.getLiveNodes()).sort()).toEqual([a.id, b.id].sort());
    b.faults.refuse = true;
    await world.clock.advance(3_100);
    expect(await a.poller.manager.getLiveNodes()).toEqual([a.id]);
  });

  it('US3.2 tryAcquire is true for what is owned, false for what another holds', async () => {
    const world = fleetWorld();
    await world.add(2);
    const [a, b] = [await world.start(), await world.start()];
    await world.clock.advance(2_000);
    const [mine = ''] = a.owned();
    const [theirs = ''] = b.owned();
    expect(await a.poller.manager.tryAcquire(mine)).toBe(true);
    expect(await a.poller.manager.tryAcquire(theirs)).toBe(false);
    expect(await a.poller.manager.tryAcquire('no-such-target')).toBe(false);
    expect([a.owned(), b.owned()]).toEqual([[mine], [theirs]]);
    expect(world.overlaps()).toEqual([]);
  });

  it('FR-003 release hands the target to another instance at once, and does not ask for it back for a while', async () => {
    const world = fleetWorld();
    await world.add(10);
    const [a, b] = [await world.start(), await world.start()];
    await world.clock.advance(5_000);
    expect(world.loads([a, b])).toEqual([5, 5]);
    for (const id of a.owned()) {
      const released = a.poller.manager.release(id);
      await world.clock.advance(100);
      await released;
      expect([id, b.owned().includes(id)]).toEqual([id, true]);
      // Another of the two may come in exchange, but not this one.
      for (let i = 0; i < 9; i++) {
        await world.clock.advance(100);
        expect([id, b.owned().includes(id)]).toEqual([id, true]);
      }
    }
    await world.clock.advance(5_000);
    expect(world.loads([a, b])).toEqual([5, 5]);
    expect(world.overlaps()).toEqual([]);
  });

  it('FR-003 a target that is released where no other instance may take it is free, and this instance leaves it alone for a while', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    const { members } = world.store;
    const list = members.list.bind(members);
    const foreign = { id: 'stranger', attributes: null, expiresInMs: 3_000 };
    members.list = async (call) => [...(await list(call)), foreign];
    await members.beat(
      { id: 'drainer', attributes: { draining: true } },
      { ttlMs: 60_000, ...CALL },
    );
    await world.clock.advance(2_000);
    await a.poller.manager.release(id);
    expect(a.poller.manager.isOwned(id)).toBe(false);
    const key = `poll:lease:${id}`;
    expect(await world.store.leases.read([key], CALL)).toMatchObject([{ kind: 'free' }]);
    await world.clock.advance(500);
    expect(a.owned()).toEqual([]);
    await world.clock.advance(1_000);
    expect(a.owned()).toEqual([id]);
    await world.clock.advance(50);
    const released = a.poller.manager.release(id);
    await world.clock.advance(50);
    await released;
    expect(await a.poller.manager.tryAcquire(id)).toBe(true);
  });

  it('FR-003 a release after the lease was lost leaves the new owner alone', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    a.faults.hang = true;
    const b = await world.start();
    await world.clock.advance(5_000);
    a.faults.hang = false;
    await a.poller.manager.release(id);
    await world.clock.advance(500);
    expect(b.owned()).toEqual([id]);
  });

  it('FR-003 a lease that is granted while the instance stops is released, and its target never polled', async () => {
    const world = fleetWorld();
    const ids = await world.add(3);
    const { acquire } = world.store.leases;
    world.store.leases.acquire = async (requests, call) => {
      await world.clock.sleep(300);
      return acquire.call(world.store.leases, requests, call);
    };
    const a = await world.instance();
    void a.poller.start();
    await world.clock.advance(100);
    const stopped = a.poller.stop();
    await world.clock.advance(1_000);
    await stopped;
    expect(a.count('lease.acquired')).toBe(3);
    expect(world.polls).toEqual([]);
    const keys = ids.map((id) => `poll:lease:${id}`);
    const leases = await world.store.leases.read(keys, CALL);
    expect(leases.map(({ kind }) => kind)).toEqual(['free', 'free', 'free']);
  });

  it('FR-013 preferredOwner is the planned owner, the same in every instance', async () => {
    const world = fleetWorld();
    const ids = await world.add(9);
    const all = [await world.start(), await world.start(), await world.start()];
    await world.clock.advance(3_000);
    for (const id of ids) {
      const owners = new Set(all.map(({ poller }) => poller.manager.preferredOwner(id)));
      expect(owners.size).toBe(1);
      const [owner] = owners;
      expect(all.find((one) => one.id === owner)?.owned()).toContain(id);
    }
    // One nobody knows: whom it would like best.
    const unknown = new Set(all.map(({ poller }) => poller.manager.preferredOwner('unknown')));
    expect(unknown.size).toBe(1);
  });

  it('FR-016 leaseInfo tells unknown, owned, other and uncertain apart', async () => {
    const world = fleetWorld();
    await world.add(2);
    const [a, b] = [await world.start(), await world.start()];
    await world.clock.advance(2_000);
    const [mine = ''] = a.owned();
    const [theirs = ''] = b.owned();
    const info = a.poller.manager.leaseInfo(mine);
    expect(info).toMatchObject({ sessionId: mine, ownerId: a.id, state: 'owned' });
    expect(info.acquiredAt?.getTime()).toBeLessThan(info.lastRenewedAt?.getTime() ?? 0);
    expect(a.poller.manager.leaseInfo(theirs)).toMatchObject({
      ...{ ownerId: b.id, state: 'other', acquiredAt: null },
    });
    expect(a.poller.manager.leaseInfo('never-heard-of')).toMatchObject({ state: 'unknown' });
    a.faults.refuse = true;
    await world.clock.advance(1_200);
    expect(a.poller.manager.leaseInfo(mine).state).toBe('uncertain');
    expect(a.poller.manager.isOwned(mine)).toBe(false);
    expect(a.owned()).toEqual([]);
  });

  it('P-01 explain says in words why a target is where it is', async () => {
    const world = fleetWorld();
    await world.add(4);
    const [a, b] = [await world.start(), await world.start()];
    await world.clock.advance(3_000);
    const [mine = ''] = a.owned();
    expect(a.poller.explain(mine)).toMatchObject({ reason: 'kept', owner: a.id, planned: a.id });
    expect(a.poller.explain(mine)?.text).toContain('it owns 2 of its share of 2');
    expect(a.poller.explain('no-such-target')).toBeNull();
    const [theirs = ''] = b.owned();
    b.faults.hang = true;
    await world.clock.advance(2_900);
    const waiting = await a.holdfast.fleet.view();
    const view = waiting.targets.find(({ target }) => target === theirs);
    // Moving: the lease has expired before the heartbeat, and this instance has taken the target.
    expect(['kept', 'expiring', 'free', 'moving']).toContain(view?.reason);
    await world.clock.advance(500);
    expect(a.poller.explain(theirs)).toMatchObject({ reason: 'kept', owner: a.id });
  });

  it('US3.3 FR-002 renewal succeeds only for the owner the store names', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    const key = `poll:lease:${id}`;
    const renew = (holder: string) =>
      world.store.leases.renew([{ key, holder }], { ttlMs: 60_000, ...CALL });
    expect(await renew('another')).toMatchObject([{ kind: 'other', holder: a.id }]);
    expect(await renew(a.id)).toEqual([{ kind: 'renewed' }]);
  });

  it('FR-001 the lease is the instance’s id under poll:lease:<target>, for the TTL', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    const [lease] = await world.store.leases.read([`poll:lease:${id}`], CALL);
    expect(lease).toMatchObject({ kind: 'held', holder: a.id });
  });

  it('FR-004 unless told otherwise a lease lasts 30 s and is renewed every 10 s', async () => {
    const world = fleetWorld();
    const { holdfast, poller } = await world.instance();
    await poller.stop();
    const usual = holdfast.poller({ targets: [{ id: 'usual' }], poll: () => {}, results: 'off' });
    const renewed: number[] = [];
    holdfast.on('lease.renewed', () => renewed.push(world.clock.monotonicMs()));
    void usual.start();
    await world.clock.advance(35_000);
    const gaps = renewed.slice(1).map((atMs, i) => atMs - (renewed[i] ?? 0));
    for (const gapMs of gaps) expect(Math.abs(gapMs - 9_500)).toBeLessThanOrEqual(501);
    const [lease] = await world.store.leases.read(['poll:lease:usual'], CALL);
    expect(lease?.kind === 'held' && lease.expiresInMs).toBeGreaterThan(20_000);
  });
});
