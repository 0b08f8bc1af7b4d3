import { describe, expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { EventLog, type Followed } from '../../src/telemetry/event-log.ts';
import { History } from '../../src/telemetry/history.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';
import { fleetWorld } from '../support/fleet-world.ts';
import { world } from '../support/world.ts';

const LEASE = { leaseClass: 'poll', key: 'device-1', holder: 'api-1', fence: 1794735731926001 };

function setUp() {
  const clock = new FakeClock();
  const memory = createMemoryStore({ clock });
  const { store, faults } = faultyStore(memory, clock);
  const events = new Emitter();
  const appended: number[] = [];
  const counted = {
    ...store,
    log: {
      append: (values: readonly unknown[], call: { timeoutMs: number }) => {
        appended.push(values.length);
        return store.log.append(values, call);
      },
      read: store.log.read,
      recall: store.log.recall,
      trim: store.log.trim,
    },
  };
  const random = seededRandom(1);
  const history = new History({ store: counted, clock, random, events, instanceId: 'api-1' });
  const log = new EventLog({ store: memory, clock });
  const written = async () => {
    const found = [];
    for (let after: string | undefined; ; ) {
      const page = await log.read(after === undefined ? {} : { after });
      found.push(...page.entries);
      if (!page.more) return found;
      after = page.position;
    }
  };
  return { clock, memory, events, faults, history, log, appended, written };
}

describe('the history of an instance', () => {
  it('has transitions with their time, instance and facts, fences as text, and no secrets', async () => {
    const { clock, events, written } = setUp();
    events.emit('lease.acquired', {
      ...LEASE,
      ttlMs: 30_000,
      remainingMs: 28_499.6,
      waitedMs: 0.4,
      tookMs: 1.2,
    });
    events.emit('result.refused', { target: 'device-1', fence: 1, seen: 1794735731926002 });
    const error = new Error('redis://user:canary@host:6379 is unreachable');
    events.emit('fleet.stalled', { error });
    await clock.advance(250);
    const at = clock.wallMs() - 250;
    expect(await written()).toEqual([
      {
        position: expect.any(String),
        at,
        instance: 'api-1',
        event: 'lease.acquired',
        leaseClass: 'poll',
        key: 'device-1',
        holder: 'api-1',
        fence: '1794735731926001',
        ttlMs: 30_000,
        remainingMs: 28_500,
        waitedMs: 0,
        tookMs: 1,
      },
      {
        position: expect.any(String),
        at,
        instance: 'api-1',
        event: 'result.refused',
        target: 'device-1',
        fence: '1',
        seen: '1794735731926002',
      },
      {
        position: expect.any(String),
        at,
        instance: 'api-1',
        event: 'fleet.stalled',
        error: 'redis://***@host:6379 is unreachable',
      },
    ]);
  });

  it('leaves out what happens all the time', async () => {
    const { clock, events, written } = setUp();
    events.emit('lease.renewed', { leaseClass: 'poll', count: 7, tookMs: 1 });
    events.emit('lease.refused', { ...LEASE, by: 'x', reason: 'held', expiresInMs: 1 });
    events.emit('poll.done', { target: 'device-1', fence: 1, tookMs: 1 });
    await clock.advance(10_000);
    expect(await written()).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });

  it('tells once of a member that comes or leaves: by itself, or by others where it can not', async () => {
    const { clock, events, written } = setUp();
    events.emit('member.joined', { member: 'api-1', isForeign: false });
    events.emit('member.joined', { member: 'api-2', isForeign: false });
    events.emit('member.joined', { member: 'other', isForeign: true });
    events.emit('member.left', { member: 'api-2', reason: 'left' });
    events.emit('member.left', { member: 'api-3', reason: 'expired' });
    await clock.advance(250);
    expect((await written()).map(({ event, member }) => [event, member])).toEqual([
      ['member.joined', 'api-1'],
      ['member.joined', 'other'],
      ['member.left', 'api-3'],
    ]);
  });

  it('goes to the store in few requests, each as soon as it is worth one', async () => {
    const { clock, events, appended } = setUp();
    const take = (count: number) => {
      for (let i = 0; i < count; i++)
        events.emit('lease.acquired', {
          ...LEASE,
          ttlMs: 1,
          remainingMs: 1,
          waitedMs: 0,
          tookMs: 0,
        });
    };
    take(20);
    await clock.advance(249);
    expect(appended).toEqual([]);
    await clock.advance(1);
    expect(appended).toEqual([20]);
    take(2_500);
    await clock.advance(0);
    expect(appended).toEqual([20, 1_000, 1_000, 500]);
  });

  it('keeps a hundred doubts of an outage, so that it does not push out everything else', async () => {
    const { clock, events, written } = setUp();
    const outage = () => {
      for (let i = 0; i < 250; i++) {
        const about = { ...LEASE, key: `k${i}` };
        events.emit('lease.uncertain', { ...about, reason: 'renewal_failed', remainingMs: 1 });
      }
      for (let i = 0; i < 250; i++) events.emit('lease.confirmed', { ...LEASE, key: `k${i}` });
    };
    outage();
    await clock.advance(250);
    outage();
    await clock.advance(250);
    const names = (await written()).map(({ event }) => event);
    expect(names.filter((name) => name === 'lease.uncertain')).toHaveLength(200);
    expect(names.filter((name) => name === 'lease.confirmed')).toHaveLength(200);
  });

  it('waits for a store that is away, and loses nothing that it can keep', async () => {
    const { clock, events, faults, written, appended } = setUp();
    faults.refuse = true;
    events.emit('session.added', { session: 'a' });
    await clock.advance(60_000);
    expect(appended.length).toBeLessThan(20);
    events.emit('session.added', { session: 'b' });
    faults.refuse = false;
    await clock.advance(5_000);
    expect((await written()).map(({ session }) => session)).toEqual(['a', 'b']);
  });

  it('drops the oldest where it can keep no more, and says how many', async () => {
    const { clock, events, faults, written } = setUp();
    const told: number[] = [];
    events.on('log.dropped', ({ count }) => told.push(count));
    faults.refuse = true;
    for (let i = 0; i < 10_300; i++) events.emit('session.added', { session: `s${i}` });
    await clock.advance(1_000);
    expect(told).toEqual([300]);
    faults.refuse = false;
    await clock.advance(5_000);
    const found = await written();
    expect(found).toHaveLength(10_001);
    expect(found[0]).toMatchObject({ session: 's300' });
    expect(found.at(-1)).toMatchObject({ event: 'log.dropped', count: 300 });
    expect(told).toEqual([300]);
  });

  it('counts as written what was dropped on its way, if it arrives', async () => {
    const { clock, events, memory, written } = setUp();
    const told: number[] = [];
    events.on('log.dropped', ({ count }) => told.push(count));
    const append = memory.log.append.bind(memory.log);
    memory.log.append = async (values, call) => {
      const isFirst = values.length === 1 && (await written()).length === 0;
      if (isFirst)
        for (let i = 0; i < 10_000; i++) events.emit('session.added', { session: `s${i}` });
      await append(values, call);
    };
    events.emit('session.added', { session: 'first' });
    await clock.advance(1_000);
    expect(await written()).toHaveLength(10_001);
    expect(told).toEqual([]);
  });

  it('is written to the end on close, but does not wait for a store that hangs', async () => {
    const { clock, events, faults, history, written } = setUp();
    events.emit('session.added', { session: 'a' });
    await history.close();
    expect(await written()).toHaveLength(1);

    const other = setUp();
    other.faults.hang = true;
    other.events.emit('session.added', { session: 'a' });
    await other.clock.advance(300);
    const closing = other.history.close();
    await other.clock.advance(1_000);
    await closing;
    faults.hang = false;
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a Holdfast', () => {
  it('writes its history where it has a poller, or is told to, and plain leases do not pay for it', async () => {
    const { actor, clock, store } = world();
    const plain = await actor();
    const told = await actor({ history: 'on' });
    await (await plain.take('a')).release();
    await (await told.take('b')).release();
    await clock.advance(1_000);
    const log = new EventLog({ store, clock });
    expect((await log.read()).entries.map(({ key, event }) => [key, event])).toEqual([
      ['b', 'lease.acquired'],
      ['b', 'lease.released'],
    ]);

    const fleet = fleetWorld();
    await fleet.add(2);
    const first = await fleet.start();
    const closing = first.holdfast.close();
    await fleet.clock.advance(1_000);
    await closing;
    const { entries } = await first.holdfast.log.read();
    expect(entries.map(({ event }) => event)).toEqual([
      'member.joined',
      'lease.acquired',
      'lease.acquired',
      'lease.released',
      'lease.released',
      'member.left',
    ]);
  });

  it('refuses a history that is neither on nor off', async () => {
    const { actor } = world();
    await expect(actor({ history: 'yes' as 'on' })).rejects.toThrow(/history is "yes"/);
  });
});

describe('following the log', () => {
  async function follow(log: EventLog, after?: string) {
    const seen: Followed[] = [];
    const end = new AbortController();
    const { signal } = end;
    const following = (async () => {
      for await (const one of log.follow({ ...(after !== undefined && { after }), signal }))
        seen.push(one);
    })();
    const names = () =>
      seen.map((one) => (one.kind === 'event' ? `${one.event.session}` : one.kind));
    const stop = async () => {
      end.abort();
      await following;
    };
    return { seen, names, stop };
  }

  it('shows what comes from now on, as soon as it is there', async () => {
    const { clock, events, log } = setUp();
    events.emit('session.added', { session: 'before' });
    await clock.advance(1_000);
    const { names, stop } = await follow(log);
    await clock.advance(0);
    events.emit('session.added', { session: 'a' });
    await clock.advance(250);
    expect(names()).toEqual(['a']);
    events.emit('session.removed', { session: 'b' });
    await clock.advance(250);
    expect(names()).toEqual(['a', 'b']);
    await stop();
    expect(clock.pendingTimers).toBe(0);
  });

  it('begins with the first entry of a log that was empty, and goes on from a position', async () => {
    const { clock, events, log } = setUp();
    const { names, stop } = await follow(log);
    await clock.advance(0);
    for (const session of ['a', 'b', 'c']) events.emit('session.added', { session });
    await clock.advance(250);
    expect(names()).toEqual(['a', 'b', 'c']);
    await stop();
    const [first] = (await log.read()).entries;
    const later = await follow(log, first?.position);
    await clock.advance(0);
    expect(later.names()).toEqual(['b', 'c']);
    await later.stop();
  });

  it('finds what it was not told of, a little later', async () => {
    const { clock, memory, log } = setUp();
    const { names, stop } = await follow(log);
    await clock.advance(0);
    const entry = { at: 1, instance: 'x', event: 'session.added', session: 'quiet' };
    await memory.log.append(['garbage', null, { event: 7 }, entry], { timeoutMs: 1 });
    await clock.advance(1_999);
    expect(names()).toEqual([]);
    await clock.advance(1);
    expect(names()).toEqual(['quiet']);
    await stop();
  });

  it('says where something is missing, and shows the rest', async () => {
    const { clock, events, log } = setUp();
    for (const session of ['a', 'b']) events.emit('session.added', { session });
    await clock.advance(250);
    const { names, stop } = await follow(log, 'no position of this log');
    await clock.advance(0);
    expect(names()).toEqual(['gap', 'a', 'b']);
    await stop();
  });

  it('says once that the store can not be asked, goes on trying, and misses nothing', async () => {
    const { clock, memory, events } = setUp();
    const { store, faults } = faultyStore(memory, clock);
    const log = new EventLog({ store, clock });
    const { names, stop } = await follow(log);
    await clock.advance(0);
    faults.refuse = true;
    await clock.advance(10_000);
    events.emit('session.added', { session: 'meanwhile' });
    await clock.advance(1_000);
    faults.refuse = false;
    await clock.advance(2_000);
    expect(names()).toEqual(['stalled', 'resumed', 'meanwhile']);
    await stop();
  });

  it('pages through much, one after the other', async () => {
    const { clock, events, log } = setUp();
    const { seen, stop } = await follow(log);
    await clock.advance(0);
    for (let i = 0; i < 3_500; i++) events.emit('session.added', { session: `s${i}` });
    await clock.advance(2_000);
    expect(seen).toHaveLength(3_500);
    await stop();
    expect((await log.recall({ most: 2 })).entries.map(({ session }) => session)).toEqual([
      's3499',
      's3498',
    ]);
  });
});
