import { describe, expect, it } from 'vitest';
import { KeyForeignError } from '../../../src/core/errors.ts';
import { DRAIN_COLLECTION } from '../../../src/fleet/member/heartbeat.ts';
import type { PollContext } from '../../../src/fleet/poll/poll-scheduler.ts';
import { open } from '../../../src/holdfast.ts';
import { createMemoryStore } from '../../../src/store/memory/memory-store.ts';
import { fleetWorld, type Instance } from '../../support/fleet-world.ts';

describe('polling', () => {
  it('FR-009 polls only what it holds a lease for', async () => {
    const world = fleetWorld();
    const [first = '', ...rest] = await world.add(5);
    await world.store.leases.acquire([{ key: `poll:lease:${first}`, holder: 'another' }], {
      ...{ ttlMs: 60_000, inbox: 'another', timeoutMs: 1_000 },
    });
    const a = await world.start();
    await world.clock.advance(5_000);
    expect(a.owned()).toEqual(rest);
    expect(new Set(world.polls.map(({ target }) => target))).toEqual(new Set(rest));
  });

  it('FR-010 asks the lease right before each poll: one that slept past its deadline begins none', async () => {
    const world = fleetWorld();
    await world.add(5);
    const a = await world.start();
    await world.clock.advance(1_000);
    const before = world.polls.length;
    const fences = new Set(world.polls.map(({ fence }) => fence));
    // The event loop is blocked past the deadline; then everything that is overdue runs at once, polls first.
    world.clock.block(10_000);
    await world.clock.advance(1_000);
    expect(a.count('lease.lost')).toBe(5);
    expect(a.owned()).toHaveLength(5);
    expect(world.polls.length).toBeGreaterThan(before);
    // Whatever began after that began under a new tenure.
    for (const { fence } of world.polls.slice(before)) expect(fences).not.toContain(fence);
  });

  it('FR-012 loss of the lease aborts the poll in flight', async () => {
    const world = fleetWorld();
    await world.add(1);
    const a = await world.start();
    a.pollMs = 60_000;
    await world.clock.advance(500);
    const running = world.polls.at(-1);
    expect(running?.endMs).toBe(Number.POSITIVE_INFINITY);
    a.faults.hang = true;
    await world.clock.advance(3_000);
    expect(running?.endMs).toBeLessThan((running?.startMs ?? 0) + 3_500);
    expect(a.count('lease.lost')).toBe(1);
  });

  it('FR-016 a renewal that fails pauses polling until one is confirmed', async () => {
    const world = fleetWorld();
    await world.add(3);
    const a = await world.start();
    await world.clock.advance(900);
    a.faults.refuse = true;
    await world.clock.advance(700);
    const before = world.polls.length;
    await world.clock.advance(800);
    expect(world.polls).toHaveLength(before);
    expect(a.count('lease.lost')).toBe(0);
    a.faults.refuse = false;
    await world.clock.advance(1_500);
    expect(world.polls.length).toBeGreaterThan(before);
    expect(a.count('lease.lost')).toBe(0);
  });

  it('E2 a poll longer than the TTL keeps its lease: it is renewed in the background', async () => {
    const world = fleetWorld();
    await world.add(1);
    const a = await world.start();
    const b = await world.start();
    await world.clock.advance(2_000);
    const owner = a.owned().length > 0 ? a : b;
    owner.pollMs = 20_000;
    await world.clock.advance(15_000);
    expect(owner.owned()).toHaveLength(1);
    expect(world.overlaps()).toEqual([]);
  });

  it('E2 a poll that takes too long is aborted; one that does not stop then is reported stuck, and never doubled', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start({ timeout: '5s' });
    a.pollMs = 10_000;
    await world.clock.advance(6_000);
    expect(a.happened.find(({ name }) => name === 'poll.failed')).toMatchObject({
      target: id,
      why: expect.stringContaining('took longer than 5 s'),
    });
    a.isDeaf = true;
    a.pollMs = 30_000;
    const from = world.polls.length;
    await world.clock.advance(20_000);
    expect(a.count('poll.stuck')).toBe(1);
    // The one before it may still have been under way.
    expect(world.polls.length - from).toBeLessThanOrEqual(1);
    expect(a.owned()).toEqual([id]);
    await world.clock.advance(20_000);
    expect(a.count('poll.settled')).toBe(1);
    expect(world.polls.length - from).toBeGreaterThan(1);
  });

  it('E2 a stuck poll is never handed over, and does not block a stop', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start({ timeout: '1s' });
    a.isDeaf = true;
    a.pollMs = 3_600_000;
    const b = await world.start();
    await world.clock.advance(5_000);
    expect(a.owned()).toEqual([id]);
    const startMs = world.clock.monotonicMs();
    let endMs = 0;
    void a.poller.stop({ within: '2s' }).then(() => {
      endMs = world.clock.monotonicMs();
    });
    await world.clock.advance(2_500);
    expect(endMs - startMs).toBeLessThanOrEqual(2_100);
    expect(a.count('lease.abandoned')).toBe(1);
    expect(a.count('lease.transferred')).toBe(0);
    expect(b.owned()).toEqual([]);
    await world.clock.advance(3_500);
    expect(b.owned()).toEqual([id]);
  });

  it('B-06 a poll that releases its own target before it first awaits keeps it until it has ended', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    let release = () => {};
    const a = await world.start({
      poll: async () => {
        release();
        await world.clock.sleep(500);
      },
    });
    const owner = async () => {
      const [found] = await world.store.leases.read([`poll:lease:${id}`], { timeoutMs: 1_000 });
      return found?.kind === 'held' ? found.holder : null;
    };
    let releasedAtMs = 0;
    release = () => {
      releasedAtMs ||= world.clock.monotonicMs();
      void a.poller.manager.release(id);
    };
    while (releasedAtMs === 0) await world.clock.advance(10);
    await world.clock.advance(400);
    expect(await owner()).toBe(a.id);
    await world.clock.advance(200);
    expect(await owner()).toBeNull();
  });

  it('a poller that is told to stop begins no more polls, however long the store takes to hear of it', async () => {
    const world = fleetWorld();
    await world.add(3);
    const { poller, faults } = await world.start();
    await world.clock.advance(1_000);
    const before = world.polls.length;
    expect(before).toBeGreaterThan(3);
    faults.hang = true;
    const stopping = poller.stop({ within: '5s' });
    await world.clock.advance(10_000);
    await stopping;
    expect(world.polls).toHaveLength(before);
  });

  it('a poller that has stopped leaves no timer behind to keep its process alive', async () => {
    const world = fleetWorld();
    await world.add(3);
    const { poller, holdfast } = await world.start({ every: '1h' });
    await world.clock.advance(1_000);
    const stopping = poller.stop().then(() => holdfast.close());
    await world.clock.advance(1_000);
    await stopping;
    expect(world.clock.pendingTimers).toBe(0);
  });

  /** How long an instance with the usual timings takes to end, when its store answers nothing: a request may take ten times as long. */
  async function endingMs(end: (instance: Instance) => Promise<void>): Promise<number> {
    const world = fleetWorld();
    await world.add(20);
    const a = await world.start({ ttl: '30s', every: 500 });
    await world.clock.advance(1_500);
    a.faults.hang = true;
    // Long enough for results to wait.
    await world.clock.advance(1_000);
    const startMs = world.clock.monotonicMs();
    let endMs = Number.POSITIVE_INFINITY;
    void end(a).then(() => {
      endMs = world.clock.monotonicMs();
    });
    await world.clock.advance(60_000);
    return endMs - startMs;
  }

  it('E1 an instance stops in time even if the store is unreachable', async () => {
    expect(await endingMs(({ poller }) => poller.stop({ within: '1s' }))).toBeLessThanOrEqual(
      1_000,
    );
  });

  it('E1 an instance closes in time even if the store does not answer', async () => {
    const close = ({ holdfast }: Instance) => {
      // What is to be logged waits, too.
      holdfast.audit({ action: 'test.close', subject: 'x', by: 'test', reason: null });
      return holdfast.close({ within: '1s' });
    };
    expect(await endingMs(close)).toBeLessThanOrEqual(1_000);
    const stopAndClose = async (one: Instance) => {
      await one.poller.stop({ within: '1s' });
      await close(one);
    };
    expect(await endingMs(stopAndClose)).toBeLessThanOrEqual(2_000);
  });

  it('E1 an instance that leaves while a round of it hangs does so in time, and that round does not bring it back', async () => {
    const world = fleetWorld();
    const a = await world.start();
    const { members, records } = world.store;
    const get = records.get.bind(records);
    // An order to drain that takes long to read: the round that reads it would beat once more, to say that it drains.
    await records.put(DRAIN_COLLECTION, [{ id: a.id, value: {} }], { timeoutMs: 1_000 });
    records.get = async (collection, ids, call) => {
      if (collection === DRAIN_COLLECTION) await world.clock.sleep(5_000);
      return get(collection, ids, call);
    };
    await world.clock.advance(4_000);
    const startMs = world.clock.monotonicMs();
    let endMs = Number.POSITIVE_INFINITY;
    void a.poller.stop({ within: '1s' }).then(() => {
      endMs = world.clock.monotonicMs();
    });
    await world.clock.advance(2_000);
    expect(endMs - startMs).toBeLessThanOrEqual(1_000);
    expect(await members.list({ timeoutMs: 1_000 })).toEqual([]);
    await world.clock.advance(5_000);
    expect(await members.list({ timeoutMs: 1_000 })).toEqual([]);
    expect(a.count('member.draining')).toBe(1);
  });

  it('E2 a stuck poll frees its place: one that hangs does not delay the others', async () => {
    const world = fleetWorld();
    const [first = '', ...rest] = await world.add(4);
    const polled: string[] = [];
    const a = await world.start({
      ...{ concurrency: 1, timeout: '1s', every: 200 },
      poll: async ({ id }) => {
        polled.push(id);
        if (id === first) await world.clock.sleep(3_600_000);
      },
    });
    await world.clock.advance(10_000);
    expect(a.count('poll.stuck')).toBe(1);
    expect(polled.filter((id) => id === first)).toHaveLength(1);
    for (const id of rest)
      expect(polled.filter((other) => other === id).length).toBeGreaterThan(20);
    // Not its own place twice: there is room for one.
    expect(a.poller.inFlight).toBeLessThanOrEqual(1);
  });

  it('E2 never runs more polls at once than it may, and lets every target have its turn', async () => {
    const world = fleetWorld();
    await world.add(50);
    const a = await world.start({ concurrency: 4 });
    a.pollMs = 100;
    let most = 0;
    for (let i = 0; i < 400; i++) {
      await world.clock.advance(10);
      most = Math.max(most, a.poller.inFlight);
    }
    expect(most).toBe(4);
    const counts = new Map<string, number>();
    for (const { target } of world.polls) counts.set(target, (counts.get(target) ?? 0) + 1);
    expect(counts.size).toBe(50);
    expect(Math.max(...counts.values()) - Math.min(...counts.values())).toBeLessThanOrEqual(1);
  });

  it('P-03 polls each target at its own pace, a little early by chance, never late', async () => {
    const world = fleetWorld();
    const a = await world.instance({ every: '1s' });
    await a.holdfast.targets.add({ id: 'slow' });
    await a.holdfast.targets.add({ id: 'fast', everyMs: 100 });
    void a.poller.start();
    await world.clock.advance(10_000);
    const starts = (id: string) =>
      world.polls.filter(({ target }) => target === id).map(({ startMs }) => startMs);
    const gaps = (id: string) => starts(id).map((atMs, i, all) => atMs - (all[i - 1] ?? atMs));
    for (const gapMs of gaps('slow').slice(1)) {
      expect(gapMs).toBeGreaterThanOrEqual(900);
      expect(gapMs).toBeLessThanOrEqual(1_001);
    }
    expect(new Set(gaps('slow').slice(1)).size).toBeGreaterThan(5);
    expect(starts('fast').length).toBeGreaterThan(90);
  });

  it('P-02 a target that was paused and resumed while no round succeeded is polled again', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    await world.clock.advance(1_000);
    const { members } = world.store;
    const list = members.list.bind(members);
    // The sessions can be read, and the members can not: rounds fail, and leases are renewed.
    members.list = () => Promise.reject(new Error('this shard is down'));
    await world.clock.advance(1_500);
    for (const change of ['pause', 'resume'] as const) {
      const changing = a.holdfast.targets[change](id);
      await world.clock.advance(5_000);
      await changing;
    }
    members.list = list;
    await world.clock.advance(5_000);
    const before = world.polls.length;
    await world.clock.advance(5_000);
    expect(a.owned()).toEqual([id]);
    expect(world.polls.length - before).toBeGreaterThan(20);
  });

  it('P-02 a changed interval takes effect at once, and not when the old one is over', async () => {
    const world = fleetWorld();
    const a = await world.start();
    const adding = a.holdfast.targets.add({ id: 'one', every: '1h' });
    await world.clock.advance(1_000);
    await adding;
    expect(world.polls).toHaveLength(1);
    const changing = a.holdfast.targets.update('one', { every: '500ms' });
    await world.clock.advance(5_000);
    await changing;
    expect(world.polls.length).toBeGreaterThan(9);
    const slower = a.holdfast.targets.update('one', { every: '1h' });
    await world.clock.advance(600);
    await slower;
    const before = world.polls.length;
    await world.clock.advance(60_000);
    expect(world.polls).toHaveLength(before);
  });

  it.each([{ every: '500ms' }, { everyMs: 500 }, { every: 500 }])(
    'P-03 polls a listed target at its own pace: %j',
    async (interval) => {
      const world = fleetWorld();
      const seen: unknown[] = [];
      await world.start({
        ...{ targets: [{ id: 'one', ...interval }], every: '1h' },
        poll: ({ everyMs }) => seen.push(everyMs),
      });
      await world.clock.advance(5_000);
      expect(seen.length).toBeGreaterThan(9);
      expect(new Set(seen)).toEqual(new Set([500]));
    },
  );

  it('FR-010 gives the poll its fence, its signal, and a way to ask again', async () => {
    const clockWorld = fleetWorld();
    const seen: PollContext[] = [];
    const a = await clockWorld.start({
      targets: [{ id: 'one', url: 'http://x', colour: 'green' }],
      poll: (target, context) => {
        expect(target).toEqual({ id: 'one', url: 'http://x', colour: 'green' });
        seen.push(context);
        return { fine: true };
      },
    });
    await clockWorld.clock.advance(500);
    const [context] = seen;
    expect(context?.fence).toBeGreaterThan(0);
    const { isHeld, assertHeld, signal } = context as PollContext;
    expect(isHeld()).toBe(true);
    expect(() => assertHeld()).not.toThrow();
    expect(signal.aborted).toBe(false);
    const [record] = await clockWorld.store.records.get('result', ['one'], { timeoutMs: 1_000 });
    expect(record).toMatchObject({
      kind: 'found',
      fence: context?.fence,
      value: { ok: true, by: a.id, value: { fine: true } },
    });
  });

  it('FR-012 a handler that asks for its signal too late finds it fired', async () => {
    const world = fleetWorld();
    let context: PollContext | undefined;
    const a = await world.start({
      ...{ targets: [{ id: 'one' }], timeout: '1s' },
      poll: async (_, given) => {
        context ??= given;
        await world.clock.sleep(5_000);
      },
    });
    await world.clock.advance(1_500);
    expect(context?.signal.aborted).toBe(true);
    expect(context?.signal.reason).toMatchObject({ code: 'POLL_TIMEOUT', target: 'one' });
    expect(context?.isHeld()).toBe(false);
    expect(a.owned()).toEqual(['one']);
  });

  it('FR-012 a zombie’s late result is refused by the store', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    a.isDeaf = true;
    a.pollMs = 8_000;
    await world.clock.advance(500);
    a.faults.hang = true;
    const b = await world.start();
    await world.clock.advance(4_500);
    expect(b.owned()).toEqual([id]);
    a.faults.hang = false;
    await world.clock.advance(6_000);
    expect(a.count('result.refused') + a.count('poll.failed')).toBeGreaterThan(0);
    const [record] = await world.store.records.get('result', [id], { timeoutMs: 1_000 });
    expect(record).toMatchObject({ value: { by: b.id } });
  });
});

describe('results', () => {
  it('FR-009 an owner whose fence is below the one that the record has seen takes the target again with a higher one', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const seen = 4_000_000_000_000_000;
    await world.store.records.put('result', [{ id, value: {}, fence: seen }], { timeoutMs: 1_000 });
    const a = await world.start();
    await world.clock.advance(2_000);
    expect(a.owned()).toEqual([id]);
    expect(world.polls.at(-1)?.fence).toBeGreaterThan(seen);
    const [record] = await world.store.records.get('result', [id], { timeoutMs: 1_000 });
    expect(record).toMatchObject({ kind: 'found', value: { by: a.id } });
  });

  it('FR-018 a target whose result cannot be written does not delay the others', async () => {
    const world = fleetWorld();
    const [id = '', ...rest] = await world.add(3);
    const seen = Number.MAX_SAFE_INTEGER;
    await world.store.records.put('result', [{ id, value: {}, fence: seen }], { timeoutMs: 1_000 });
    const { acquire } = world.store.leases;
    const [broken = ''] = rest;
    world.store.leases.acquire = async (requests, call) => {
      const replies = await acquire.call(world.store.leases, requests, call);
      return replies.map((reply, i) => {
        if (requests[i]?.key !== `poll:lease:${broken}`) return reply;
        const error = new KeyForeignError({ key: broken, found: 'a hash' });
        return { kind: 'failed', error };
      });
    };
    const a = await world.start();
    await world.clock.advance(3_000);
    expect(a.owned()).toEqual([id, rest[1]].sort());
    expect(a.count('result.refused')).toBeGreaterThan(1);
    expect(a.count('fleet.stalled')).toBe(0);
    expect(a.poller.explain(broken)?.reason).toBe('garbage');
  });

  const resultOf = async (world: ReturnType<typeof fleetWorld>, id: string) =>
    (await world.store.records.get('result', [id], { timeoutMs: 1_000 }))[0];

  it('P-02 a poll under way while its target is removed leaves no result', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.instance();
    a.pollMs = 5_000;
    void a.poller.start();
    await world.clock.advance(2_000);
    expect(a.poller.inFlight).toBe(1);
    expect(await resultOf(world, id)).toEqual({ kind: 'absent' });
    const removed = a.holdfast.targets.remove(id);
    await world.clock.advance(5_000);
    await removed;
    expect(world.polls.at(-1)?.endMs).toBeLessThan(Number.POSITIVE_INFINITY);
    expect(await resultOf(world, id)).toEqual({ kind: 'absent' });
  });

  it('P-02 a result that is written before its owner knows of the removal is removed, too', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    await world.clock.advance(2_000);
    // Removed without a word, as another program would; its owner polls on until it looks.
    for (const collection of ['session', 'result'])
      await world.store.records.remove(collection, [{ id }], { timeoutMs: 1_000 });
    await world.clock.advance(350);
    expect(await resultOf(world, id)).toMatchObject({ kind: 'found', value: { by: a.id } });
    await world.clock.advance(2_000);
    expect(a.owned()).toEqual([]);
    expect(await resultOf(world, id)).toEqual({ kind: 'absent' });
  });

  it('P-02 the result of a later owner is not removed by an earlier one', async () => {
    const world = fleetWorld();
    const [id = ''] = await world.add(1);
    const a = await world.start();
    await world.clock.advance(2_000);
    const session = { id, fence: Number.MAX_SAFE_INTEGER, value: { by: 'a later owner' } };
    await world.store.records.put('result', [session], { timeoutMs: 1_000 });
    await world.store.records.remove('session', [{ id }], { timeoutMs: 1_000 });
    await world.clock.advance(3_000);
    expect(a.owned()).toEqual([]);
    expect(await resultOf(world, id)).toMatchObject({ value: { by: 'a later owner' } });
  });
});

describe('a poller', () => {
  const bad: [string, object, string][] = [
    ['an unknown option', { evry: '5s' }, 'evry'],
    ['an interval that is none', { every: 'soon' }, 'every'],
    ['an interval of nothing', { every: 0 }, 'every'],
    ['a handler that is none', { poll: 'http' }, 'poll'],
    ['targets that are no list', { targets: 'all' }, 'targets'],
    ['a target without an id', { targets: [{}] }, 'targets: id'],
    ['an id with a brace', { targets: [{ id: 'a}b' }] }, 'targets: id'],
    ['the same id twice', { targets: [{ id: 'a' }, { id: 'a' }] }, 'targets'],
    ['a target polled every 0 ms', { targets: [{ id: 'a', everyMs: 0 }] }, 'targets: everyMs'],
    ['a target polled soon', { targets: [{ id: 'a', every: 'soon' }] }, 'targets: every'],
    ['two intervals', { targets: [{ id: 'a', every: '1s', everyMs: 5 }] }, 'targets: everyMs'],
    ['a weight of nothing', { weight: 0 }, 'weight'],
    ['half a weight', { weight: 1.5 }, 'weight'],
    ['no polls at once', { concurrency: 0 }, 'concurrency'],
    ['results that are neither', { results: true }, 'results'],
    ['a TTL that is too short', { ttl: 10 }, 'ttl'],
  ];
  it.each(bad)('FR-011 refuses %s before anything is done', async (_, options, field) => {
    await using holdfast = await open(createMemoryStore());
    expect(() => holdfast.poller(options)).toThrowError(
      expect.objectContaining({ code: 'CONFIG_INVALID', field }),
    );
  });

  it('E3 takes part once per instance', async () => {
    await using holdfast = await open(createMemoryStore());
    const poller = holdfast.poller({ targets: [], poll: () => {} });
    expect(() => holdfast.poller()).toThrowError(/this instance has one already/);
    await poller.start();
    await poller.stop();
    expect(() => poller.manager.start()).toThrowError(/runs once/);
    holdfast.poller();
  });
});
