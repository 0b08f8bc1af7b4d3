import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../../src/core/random.ts';
import { fleetWorld, type Instance } from '../../support/fleet-world.ts';

type World = ReturnType<typeof fleetWorld>;

/** TTL and guard of the instances here: 3 s, renewed every second; the lease ends locally 150 ms before. */
const TTL_MS = 3_000;

async function three(world: World, targets: number): Promise<[Instance, Instance, Instance]> {
  await world.add(targets);
  const [a, b, c] = [await world.start(), await world.start(), await world.start()];
  await world.clock.advance(2_000);
  return [a, b, c];
}

/** Stops it while time passes; says how long that took. */
async function stop(world: World, { poller }: Instance): Promise<number> {
  const startMs = world.clock.monotonicMs();
  let endMs = 0;
  void poller.stop().then(() => {
    endMs = world.clock.monotonicMs();
  });
  while (endMs === 0) await world.clock.advance(10);
  return endMs - startMs;
}

/** The longest time each target was not polled, between two moments. */
function longestGapMs(world: World, fromMs: number, toMs: number): number {
  let longestMs = 0;
  for (const id of new Set(world.polls.map(({ target }) => target))) {
    let lastMs = fromMs;
    const polls = world.polls.filter(({ target, startMs }) => target === id && startMs >= fromMs);
    for (const { startMs, endMs } of polls) {
      longestMs = Math.max(longestMs, startMs - lastMs);
      lastMs = Math.min(endMs, toMs);
    }
    longestMs = Math.max(longestMs, toMs - lastMs);
  }
  return longestMs;
}

describe('sharing targets out', () => {
  it('US1.1 one instance starts: it owns and polls every target at once', async () => {
    const world = fleetWorld();
    await world.add(10);
    const a = await world.start();
    expect(a.owned()).toHaveLength(10);
    await world.clock.advance(1);
    expect(new Set(world.polls.map(({ target }) => target)).size).toBe(10);
  });

  it('US1.2 a third joins two: everything is shared out over three', async () => {
    const world = fleetWorld();
    await world.add(10);
    const a = await world.start();
    const b = await world.start();
    await world.clock.advance(1_000);
    expect(world.loads([a, b])).toEqual([5, 5]);
    const c = await world.start();
    await world.clock.advance(1_000);
    expect(world.loads([a, b, c]).sort()).toEqual([3, 3, 4]);
    expect(world.overlaps()).toEqual([]);
  });

  it('US3.1 five start at once on ten targets: each has one owner, and each owner two', async () => {
    const world = fleetWorld();
    const ids = await world.add(10);
    const five = await Promise.all(Array.from({ length: 5 }, () => world.instance()));
    for (const { poller } of five) void poller.start();
    await world.clock.advance(3_000);
    expect(five.flatMap((one) => one.owned()).sort()).toEqual(ids);
    expect(world.loads(five)).toEqual([2, 2, 2, 2, 2]);
    expect(world.overlaps()).toEqual([]);
  });

  it('US4.2 a newcomer to two instances and ten targets gets its third, and nothing else moves', async () => {
    const world = fleetWorld();
    await world.add(10);
    const [a, b] = [await world.start(), await world.start()];
    await world.clock.advance(2_000);
    const moves = () => a.count('lease.transferred') + b.count('lease.transferred');
    const before = moves();
    const c = await world.start();
    await world.clock.advance(2_000);
    expect(c.owned()).toHaveLength(3);
    expect(moves() - before).toBe(3);
  });

  it('US4.3 an owner above its quota hands over what is asked for, a moment after its poll has settled', async () => {
    const world = fleetWorld();
    await world.add(6);
    const a = await world.start();
    const b = await world.start();
    await world.clock.advance(2_000);
    expect(world.loads([a, b])).toEqual([3, 3]);
    for (const id of b.owned()) {
      const mine = world.polls.filter(({ target, by }) => target === id && by === b.id);
      const before = world.polls.filter(({ target, by }) => target === id && by === a.id);
      const [first] = mine;
      const last = before.at(-1);
      expect((first?.startMs ?? 0) - (last?.startMs ?? 0)).toBeLessThan(300);
    }
  });

  it('P-07 an instance of weight 2 owns twice as much', async () => {
    const world = fleetWorld();
    await world.add(12);
    const a = await world.start({ weight: 2 });
    const b = await world.start();
    const c = await world.start();
    await world.clock.advance(3_000);
    expect(world.loads([a, b, c])).toEqual([6, 3, 3]);
  });

  it('SC-003 ten instances share sixty targets evenly, without being configured with each other', async () => {
    const world = fleetWorld();
    await world.add(60);
    const ten: Instance[] = [];
    for (let i = 0; i < 10; i++) {
      ten.push(await world.start());
      await world.clock.advance(50);
    }
    await world.clock.advance(3_000);
    expect(world.loads(ten)).toEqual(Array(10).fill(6));
    expect(world.overlaps()).toEqual([]);
  });
});

describe('instances that stop, crash or lose the store', () => {
  it('US1.3 one of three is stopped: its targets are polled by the others within a second', async () => {
    const world = fleetWorld();
    const [a, b, c] = await three(world, 12);
    const stoppedMs = world.clock.monotonicMs();
    expect(await stop(world, b)).toBeLessThan(1_000);
    await world.clock.advance(1_500);
    expect(world.loads([a, c])).toEqual([6, 6]);
    expect(longestGapMs(world, stoppedMs, world.clock.monotonicMs())).toBeLessThan(1_000);
    expect(b.count('lease.transferred')).toBe(4);
    expect(await a.poller.manager.getLiveNodes()).not.toContain(b.id);
    expect(world.overlaps()).toEqual([]);
  });

  it('US1.3 the last instance to stop releases everything at once', async () => {
    const world = fleetWorld();
    await world.add(5);
    const a = await world.start();
    await world.clock.advance(1_000);
    expect(await stop(world, a)).toBeLessThan(100);
    expect((await a.holdfast.fleet.view()).targets.map(({ owner }) => owner)).toEqual(
      Array(5).fill(null),
    );
  });

  it('US2.1 one that crashes holding targets is replaced when its leases expire, not a tick later', async () => {
    const world = fleetWorld();
    const [a, b, c] = await three(world, 9);
    const crashMs = world.clock.monotonicMs();
    const lost = b.owned();
    b.faults.hang = true;
    await world.clock.advance(TTL_MS + 500);
    expect(world.loads([a, c]).sort()).toEqual([4, 5]);
    for (const id of lost) {
      const next = world.polls.find(
        ({ target, by, startMs }) => target === id && by !== b.id && startMs > crashMs,
      );
      expect((next?.startMs ?? Number.POSITIVE_INFINITY) - crashMs).toBeLessThan(TTL_MS + 200);
    }
    expect(world.overlaps()).toEqual([]);
  });

  it('SC-002 FR-017 the others have the targets of one that crashed right when its leases end, not when its heartbeat does', async () => {
    const world = fleetWorld();
    const [a, b, c] = await three(world, 12);
    const lost = b.owned();
    // Its last heartbeat is later than its last renewal: while that lasts it looks alive.
    await world.store.members.beat(
      { id: b.id, attributes: { weight: 1, draining: false } },
      { ttlMs: 4_000, timeoutMs: 1_000 },
    );
    b.faults.hang = true;
    const keys = lost.map((id) => `poll:lease:${id}`);
    const leases = await world.store.leases.read(keys, { timeoutMs: 1_000 });
    const nowMs = world.clock.monotonicMs();
    await world.clock.advance(3_500);
    for (const [i, id] of lost.entries()) {
      const lease = leases[i];
      const endMs = nowMs + (lease?.kind === 'held' ? lease.expiresInMs : 0);
      const next = world.polls.find(
        ({ target, by, startMs }) => target === id && by !== b.id && startMs > nowMs,
      );
      expect((next?.startMs ?? Number.POSITIVE_INFINITY) - endMs).toBeLessThan(100);
    }
    expect(world.loads([a, c])).toEqual([6, 6]);
  });

  it('US2.2 E4 one that loses the store stops polling before another can have its targets, and takes part again later', async () => {
    const world = fleetWorld();
    const [a, b, c] = await three(world, 9);
    b.pollMs = 400;
    const mine = b.owned();
    b.faults.hang = true;
    await world.clock.advance(TTL_MS + 1_000);
    expect(b.owned()).toEqual([]);
    const last = world.polls.filter(({ by }) => by === b.id).at(-1);
    const first = world.polls.find(
      ({ target, by, startMs }) => mine.includes(target) && by !== b.id && startMs > TTL_MS,
    );
    expect(last?.endMs).toBeLessThan(first?.startMs ?? 0);
    b.faults.hang = false;
    await world.clock.advance(6_000);
    expect(world.loads([a, b, c])).toEqual([3, 3, 3]);
    expect(world.overlaps()).toEqual([]);
  });

  it('E1 SC-005 with the store down for everybody polling pauses, and resumes by itself', async () => {
    const world = fleetWorld();
    const all = await three(world, 9);
    for (const { faults } of all) faults.refuse = true;
    await world.clock.advance(20_000);
    expect(world.loads(all)).toEqual([0, 0, 0]);
    const polled = world.polls.length;
    await world.clock.advance(1_000);
    expect(world.polls).toHaveLength(polled);
    for (const { faults } of all) faults.refuse = false;
    await world.clock.advance(5_000);
    expect(world.loads(all)).toEqual([3, 3, 3]);
    expect(world.overlaps()).toEqual([]);
    for (const one of all)
      expect([one.count('fleet.stalled'), one.count('fleet.resumed')]).toEqual([1, 1]);
  });

  it('E5 all restart at once: every target is owned again as soon as the old leases have expired', async () => {
    const world = fleetWorld();
    const old = await three(world, 9);
    for (const { faults } of old) faults.hang = true;
    const fresh = [await world.start(), await world.start(), await world.start()];
    await world.clock.advance(TTL_MS + 1_000);
    expect(world.loads(fresh)).toEqual([3, 3, 3]);
    expect(world.overlaps()).toEqual([]);
  });

  it('US2.3 a restarted process has another id: the leases of its predecessor have to expire', async () => {
    const world = fleetWorld();
    await world.add(3);
    const before = await world.start();
    await world.clock.advance(500);
    before.faults.hang = true;
    const after = await world.start();
    expect(after.id).not.toBe(before.id);
    await world.clock.advance(1_500);
    expect(after.owned()).toEqual([]);
    await world.clock.advance(TTL_MS);
    expect(after.owned()).toHaveLength(3);
  });

  it('E4 has a target again only when its own earlier poll has stopped', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    a.isDeaf = true;
    a.pollMs = 10_000;
    await world.clock.advance(300);
    a.faults.refuse = true;
    await world.clock.advance(4_000);
    a.faults.refuse = false;
    a.pollMs = 20;
    await world.clock.advance(3_000);
    expect(a.owned()).toEqual([]);
    await world.clock.advance(6_000);
    expect(a.owned()).toEqual([id]);
    const own = world.polls.toSorted((x, y) => x.startMs - y.startMs);
    for (const [i, { startMs }] of own.entries())
      expect(startMs).toBeGreaterThanOrEqual(own[i - 1]?.endMs ?? 0);
  });

  it('P-05 with the store down from the start an instance keeps trying, and polls when the store is up', async () => {
    const world = fleetWorld();
    await world.add(4);
    const a = await world.instance();
    a.faults.refuse = true;
    void a.poller.start();
    await world.clock.advance(30_000);
    expect(a.owned()).toEqual([]);
    a.faults.refuse = false;
    await world.clock.advance(2_000);
    expect(a.owned()).toHaveLength(4);
  });
});

describe('targets that are added, paused and removed', () => {
  it('P-02 pausing or removing a target releases its lease; resuming or adding one takes effect by a signal', async () => {
    const world = fleetWorld();
    const ids = await world.add(4);
    const [first = '', second = ''] = ids;
    const [a, b] = [await world.start(), await world.start()];
    await world.clock.advance(2_000);
    const { targets: sessions } = a.holdfast;
    await sessions.pause(first);
    await sessions.remove(second);
    await world.clock.advance(100);
    expect([...a.owned(), ...b.owned()].sort()).toEqual(ids.slice(2));
    const { targets } = await a.holdfast.fleet.view();
    expect(targets.map(({ target }) => target)).toEqual(ids.slice(2));
    await sessions.resume(first);
    await sessions.add({ id: 'new' });
    await world.clock.advance(100);
    expect([...a.owned(), ...b.owned()].sort()).toEqual([first, ...ids.slice(2), 'new']);
    expect(world.loads([a, b])).toEqual([2, 2]);
  });

  it('P-04 an invalid target is skipped and reported; one that was polled before is still polled', async () => {
    const world = fleetWorld();
    const [first = ''] = await world.add(3);
    const a = await world.start();
    const put = (id: string, value: unknown) =>
      world.store.records.put('session', [{ id, value }], { timeoutMs: 1_000 });
    await put('nonsense', 'not an object');
    await put(first, { everyMs: 'soon' });
    await world.clock.advance(2_000);
    expect(a.owned()).toHaveLength(3);
    expect(a.count('session.unreadable')).toBe(2);
  });

  it('FR-011 targets are found in the store, without a list of them anywhere', async () => {
    const world = fleetWorld();
    const a = await world.start();
    expect(a.owned()).toEqual([]);
    const ids = await world.add(3);
    await world.clock.advance(100);
    expect(a.owned()).toEqual(ids);
  });
});

describe('without flapping', () => {
  it('P-03 with one half of the fleet not knowing a member, every target stays owned, and the moves end', async () => {
    const world = fleetWorld();
    const ids = await world.add(24);
    const all: Instance[] = [];
    for (let i = 0; i < 4; i++) all.push(await world.start());
    await world.clock.advance(3_000);
    const [hidden, blindA, blindB, seeing] = all as [Instance, Instance, Instance, Instance];
    for (const one of [blindA, blindB]) one.blindTo.add(hidden.id);
    await world.clock.advance(10_000);
    const moves = () => all.reduce((sum, one) => sum + one.count('lease.transferred'), 0);
    const settled = moves();
    await world.clock.advance(60_000);
    expect(moves()).toBe(settled);
    expect(all.flatMap((one) => one.owned()).sort()).toEqual(ids);
    // Those who do not see it think that they lack something, but who has no more than its share does not give.
    expect(hidden.owned().length).toBeGreaterThan(0);
    expect(seeing.owned().length).toBeGreaterThan(0);
    for (const one of [blindA, blindB]) one.blindTo.clear();
    await world.clock.advance(5_000);
    expect(world.loads(all)).toEqual([6, 6, 6, 6]);
    expect(world.overlaps()).toEqual([]);
  });

  it('P-03 different tick phases settle with bounded moves', async () => {
    const world = fleetWorld();
    await world.add(30);
    const all: Instance[] = [];
    for (const phaseMs of [0, 333, 777, 10, 500]) {
      await world.clock.advance(phaseMs);
      all.push(await world.start());
    }
    await world.clock.advance(5_000);
    expect(world.loads(all)).toEqual([6, 6, 6, 6, 6]);
    const moves = () => all.reduce((sum, one) => sum + one.count('lease.transferred'), 0);
    const settled = moves();
    await world.clock.advance(60_000);
    expect(moves()).toBe(settled);
    expect(settled).toBeLessThan(60);
  });

  it('P-03 one that flaps every two seconds costs what it owned, and the others keep theirs', async () => {
    const world = fleetWorld();
    const [a, b] = await three(world, 30);
    const kept = new Set([...a.owned(), ...b.owned()]);
    const before = world.polls.length;
    for (let round = 0; round < 5; round++) {
      const flapping = await world.start();
      await world.clock.advance(2_000);
      await stop(world, flapping);
    }
    await world.clock.advance(2_000);
    expect(world.overlaps()).toEqual([]);
    const byTarget = new Map<string, Set<string>>();
    for (const { target, by } of world.polls.slice(before))
      byTarget.set(target, (byTarget.get(target) ?? new Set()).add(by));
    // 7 or 8 of 30 go to the one that flaps, each time; nothing else has reason to move.
    const moved = [...byTarget].filter(([id, by]) => kept.has(id) && by.size > 2).length;
    expect(moved).toBeLessThan(kept.size);
    expect(longestGapMs(world, 10_000, world.clock.monotonicMs())).toBeLessThan(1_000);
  });

  it('P-03 a ghost that beats and never asks costs nothing: everything stays owned by the others', async () => {
    const world = fleetWorld();
    const ids = await world.add(9);
    const beat = () =>
      world.store.members.beat(
        { id: 'ghost-1-00000000', attributes: { weight: 1, draining: false } },
        { ttlMs: 60_000, timeoutMs: 1_000 },
      );
    await beat();
    const [a, b] = [await world.start(), await world.start()];
    await world.clock.advance(5_000);
    await beat();
    expect([...a.owned(), ...b.owned()].sort()).toEqual(ids);
    const moves = a.count('lease.transferred') + b.count('lease.transferred');
    const fromMs = world.clock.monotonicMs();
    await world.clock.advance(30_000);
    expect(a.count('lease.transferred') + b.count('lease.transferred')).toBe(moves);
    expect(longestGapMs(world, fromMs, world.clock.monotonicMs())).toBeLessThan(300);
  });

  it('FR-014 an instance that is not planned for a free target waits for those of a better rank', async () => {
    const world = fleetWorld();
    await world.store.members.beat(
      { id: 'ghost-1-00000000', attributes: { weight: 1, draining: false } },
      { ttlMs: 600_000, timeoutMs: 1_000 },
    );
    await world.add(40);
    const a = await world.start();
    const early = a.owned().length;
    expect(early).toBe(20);
    await world.clock.advance(140);
    expect(a.owned()).toHaveLength(early);
    await world.clock.advance(60);
    expect(a.owned()).toHaveLength(40);
  });

  it('P-01 a foreign member keeps the targets that it holds, and is given nothing', async () => {
    const world = fleetWorld();
    const ids = await world.add(6);
    const held = ids.slice(0, 2);
    const hold = () =>
      world.store.leases.acquire(
        held.map((id) => ({ key: `poll:lease:${id}`, holder: 'stranger' })),
        { ttlMs: 60_000, inbox: 'stranger', timeoutMs: 1_000 },
      );
    await hold();
    const { list } = world.store.members;
    world.store.members.list = async (call) => [
      ...(await list.call(world.store.members, call)),
      { id: 'stranger', attributes: null, expiresInMs: 30_000 },
    ];
    const [a, b] = [await world.start(), await world.start()];
    await world.clock.advance(5_000);
    expect(world.loads([a, b])).toEqual([2, 2]);
    expect(a.poller.explain(held[0] ?? '')?.reason).toBe('foreign');
    // It dies: its targets are taken over when they run out.
    world.store.members.list = list;
    await world.clock.advance(60_000);
    expect(world.loads([a, b])).toEqual([3, 3]);
  });
});

describe('asking', () => {
  it('US4.3 an ask that is lost is repeated by the heartbeat', async () => {
    const world = fleetWorld();
    await world.add(8);
    const { publish } = world.store.signals;
    world.store.signals.publish = async (topic, message) => {
      if (!topic.startsWith('ask:')) await publish.call(world.store.signals, topic, message);
    };
    const [a, b] = [await world.start(), await world.start()];
    await world.clock.advance(3_000);
    expect(b.count('fleet.asked')).toBeGreaterThan(0);
    expect(world.loads([a, b])).toEqual([4, 4]);
  });

  it('P-03 without any signal everything still settles, at the pace of the rounds', async () => {
    const world = fleetWorld();
    const ids = await world.add(9);
    world.store.signals.publish = async () => {};
    const all = [await world.start(), await world.start(), await world.start()];
    await world.clock.advance(15_000);
    expect(all.flatMap((one) => one.owned()).sort()).toEqual(ids);
    expect(world.loads(all)).toEqual([3, 3, 3]);
  });

  it('P-03 an owner within its share gives nothing to any member that asks', async () => {
    const world = fleetWorld();
    const ids = await world.add(6);
    const [a, b] = [await world.start(), await world.start()];
    await world.clock.advance(3_000);
    const moves = () => a.count('lease.transferred') + b.count('lease.transferred');
    const before = moves();
    const ask = { from: b.id, ids };
    await world.store.signals.publish(`ask:${a.id}`, JSON.stringify(ask));
    await world.store.signals.publish(`ask:${a.id}`, 'no ask at all');
    await world.store.signals.publish(`ask:${a.id}`, JSON.stringify({ from: 'nobody', ids }));
    await world.clock.advance(3_000);
    expect(world.loads([a, b])).toEqual([3, 3]);
    expect(moves()).toBe(before);
  });

  it('P-03 moves wait for instances that join one after the other: each target moves once or twice, not each time', async () => {
    const world = fleetWorld();
    await world.add(100);
    const all = [await world.start()];
    await world.clock.advance(1_000);
    for (let i = 0; i < 9; i++) {
      all.push(await world.start());
      await world.clock.advance(30);
    }
    await world.clock.advance(5_000);
    expect(world.loads(all)).toEqual(Array(10).fill(10));
    const moves = all.reduce((sum, one) => sum + one.count('lease.transferred'), 0);
    // The nine newcomers need 90; without waiting for each other they would have passed on far more.
    expect(moves).toBeLessThan(110);
  });

  it('US4.3 a newcomer to very many targets asks for them in portions, one after the other', async () => {
    const world = fleetWorld();
    await world.add(1_400);
    const a = await world.start({ every: '10s', concurrency: 2_000 });
    await world.clock.advance(500);
    const b = await world.start({ every: '10s', concurrency: 2_000 });
    await world.clock.advance(900);
    expect(world.loads([a, b])).toEqual([700, 700]);
    expect(b.count('fleet.asked')).toBe(2);
  });
});

describe('whatever happens', () => {
  const seeds = Array.from({ length: 12 }, (_, i) => [i + 1] as const);
  it.each(seeds)(
    'SC-001 SC-006 no target is polled by two at once, and all is even again afterwards (seed %i)',
    async (seed) => {
      const world = fleetWorld();
      const random = seededRandom(seed);
      const ids = await world.add(20);
      const live: Instance[] = [await world.start(), await world.start()];
      const cut: Instance[] = [];
      const any = <T>(list: T[]): T => list[Math.floor(random.next() * list.length)] as T;
      const acts: (() => Promise<void> | void)[] = [
        async () => {
          if (live.length < 6) live.push(await world.start());
        },
        async () => {
          if (live.length > 1)
            await stop(world, live.splice(live.indexOf(any(live)), 1)[0] as Instance);
        },
        () => {
          if (live.length < 2) return;
          const [one] = live.splice(live.indexOf(any(live)), 1) as [Instance];
          one.faults[any(['hang', 'refuse', 'loseReplies'] as const)] = true;
          cut.push(one);
        },
        () => {
          const one = cut.pop();
          if (one === undefined) return;
          Object.assign(one.faults, { hang: false, refuse: false, loseReplies: false });
          live.push(one);
        },
        () => world.clock.block(random.next() * 4_000),
        () => {
          any(live).pollMs = any([0, 5, 50, 500, 2_500]);
        },
      ];
      for (let i = 0; i < 25; i++) {
        await any(acts)();
        await world.clock.advance(random.next() * 2_000);
      }
      for (const one of cut)
        Object.assign(one.faults, { hang: false, refuse: false, loseReplies: false });
      live.push(...cut);
      for (const one of live) one.pollMs = 20;
      await world.clock.advance(15_000);
      expect(world.overlaps()).toEqual([]);
      expect(live.flatMap((one) => one.owned()).sort()).toEqual(ids);
      const loads = world.loads(live);
      expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1);
    },
  );
});

describe('draining', () => {
  it('P-06 an instance marked draining hands everything over, owns nothing new, and comes back when that is undone', async () => {
    const world = fleetWorld();
    const [a, b, c] = await three(world, 9);
    expect(await a.holdfast.fleet.drain(b.id)).toEqual({ changed: true });
    await world.clock.advance(1_000);
    expect(b.owned()).toEqual([]);
    expect(world.loads([a, c]).sort()).toEqual([4, 5]);
    await world.add(3, (i) => `more-${i}`);
    await world.clock.advance(1_000);
    expect(b.owned()).toEqual([]);
    expect(await a.holdfast.fleet.undrain(b.id)).toEqual({ changed: true });
    await world.clock.advance(2_000);
    expect(world.loads([a, b, c])).toEqual([4, 4, 4]);
    expect(world.overlaps()).toEqual([]);
  });

  it('P-06 a target on its way to an instance when all are ordered to drain arrives, and is kept', async () => {
    const world = fleetWorld();
    const a = await world.start();
    const ids = await world.add(4);
    a.pollMs = 800;
    await world.clock.advance(1_000);
    expect(a.owned()).toEqual(ids);
    const b = await world.start();
    // It has asked; what it asked for is being polled, and is handed over after that.
    await world.clock.advance(150);
    expect([b.count('fleet.asked'), b.owned().length]).toEqual([1, 0]);
    for (const { id } of [a, b]) await a.holdfast.fleet.drain(id);
    await world.clock.advance(1_000);
    expect(b.owned()).toHaveLength(2);
    await world.clock.advance(10_000);
    expect([...a.owned(), ...b.owned()].sort()).toEqual(ids);
    expect(world.overlaps()).toEqual([]);
  });

  it('P-06 if all are draining, holders keep what they have until they stop', async () => {
    const world = fleetWorld();
    const all = await three(world, 9);
    const [a] = all;
    for (const { id } of all) await a.holdfast.fleet.drain(id);
    await world.clock.advance(10_000);
    expect(all.reduce((sum, one) => sum + one.owned().length, 0)).toBe(9);
    await expect(a.holdfast.fleet.drain('nobody')).rejects.toMatchObject({
      code: 'MEMBER_NOT_FOUND',
    });
  });
});
