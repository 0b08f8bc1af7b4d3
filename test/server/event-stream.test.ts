import { describe, expect, it } from 'vitest';
import type { Caller } from '../../src/server/http/route.ts';
import type { StreamOptions } from '../../src/server/streams/client-set.ts';
import { eventFilter } from '../../src/server/streams/event-filter.ts';
import { EventStream } from '../../src/server/streams/event-stream.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { EventLog } from '../../src/telemetry/event-log.ts';
import { LOG_TOPIC } from '../../src/telemetry/history.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';
import { SseReader } from './support/sse-reader.ts';

const ADMIN: Caller = {
  tokenId: 'ops',
  scope: 'v3:admin',
  tenant: null,
  expiresAtMs: Number.POSITIVE_INFINITY,
};
const CALL = { timeoutMs: 1_000 };

function setUp(options?: StreamOptions) {
  const clock = new FakeClock();
  const memory = createMemoryStore({ clock });
  const { store, faults } = faultyStore(memory, clock);
  const log = new EventLog({ store, clock });
  const reads: string[] = [];
  const counted: Pick<EventLog, 'pages' | 'read'> = {
    pages: (from) => log.pages(from),
    read: (from) => {
      reads.push(from?.after ?? 'oldest');
      return log.read(from);
    },
  };
  const hub = new EventStream(counted, clock, options);
  let count = 0;
  const append = async (many = 1, facts: object = {}) => {
    const events = Array.from({ length: many }, () => {
      return { at: 1, instance: 'api-1', event: 'session.added', session: `s${count++}`, ...facts };
    });
    await memory.log.append(events, CALL);
    await memory.signals.publish(LOG_TOPIC, '');
  };
  const watch = (
    position: string | null = null,
    { caller = ADMIN, wish = {}, signal = new AbortController().signal } = {},
  ) => {
    const filter = eventFilter(wish, caller);
    const reader = new SseReader(hub.watch({ filter, caller, position, signal }));
    return reader;
  };
  /** A client that reads whatever it is given. */
  const reading = (...args: Parameters<typeof watch>) => {
    const reader = watch(...args);
    void reader.readAll();
    return reader;
  };
  return { clock, memory, faults, hub, append, watch, reading, reads };
}

function sessions({ told }: SseReader): unknown[] {
  return told.map(({ event, data }) => (data as { session?: string }).session ?? event);
}

describe('the event hub', () => {
  it('tells everybody what comes from now on, from one read of the store', async () => {
    const { clock, append, reading, reads } = setUp();
    await append(3);
    const clients = Array.from({ length: 20 }, () => reading());
    await clock.advance(0);
    await append(2);
    await clock.advance(10);
    for (const client of clients) expect(sessions(client)).toEqual(['s3', 's4']);
    expect(reads).toEqual([]);
  });

  it('resolves when it knows its position in the log, or cannot know it now', async () => {
    const { clock, append, faults, hub, reading } = setUp();
    faults.hang = true;
    const client = reading();
    let isPlaced = false;
    const placed = hub.untilPositioned().then(() => {
      isPlaced = true;
    });
    await append();
    await clock.advance(1_000);
    expect(isPlaced).toBe(false);
    await clock.advance(9_000);
    await placed;
    faults.hang = false;
    await clock.advance(10_000);
    await hub.untilPositioned();
    await append();
    await clock.advance(10);
    expect(sessions(client)).toEqual(['s1']);
  });

  it('gives its clients ids that they can come back with, also before anything has happened', async () => {
    const { clock, append, reading } = setUp();
    const first = reading();
    await clock.advance(0);
    expect(first.lastEventId).toBe('oldest');
    await first.leave();
    await append(2);
    await clock.advance(60_000);
    const again = reading(first.lastEventId);
    await clock.advance(10);
    expect(sessions(again)).toEqual(['s0', 's1']);
    expect(again.lastEventId).toMatch(/^\d+$/);
  });

  it('tells one who comes back soon what it has missed without asking the store', async () => {
    const { clock, append, reading, reads } = setUp();
    const client = reading();
    const other = reading();
    await clock.advance(0);
    await append();
    await clock.advance(10);
    await client.leave();
    await append(1_200);
    await clock.advance(10);
    const again = reading(client.lastEventId);
    await clock.advance(0);
    await append();
    await clock.advance(200);
    expect(sessions(again)).toEqual(sessions(other).slice(1));
    expect(again.told).toHaveLength(1_201);
    expect(reads).toEqual([]);
  });

  it('reads the store for a client that was away for longer, which then continues with the others', async () => {
    const { clock, append, reading, reads } = setUp();
    await append(1_700);
    const other = reading();
    await clock.advance(0);
    const client = reading('oldest');
    await clock.advance(0);
    await append(3);
    await clock.advance(2_100);
    expect(sessions(client)).toEqual(Array.from({ length: 1_703 }, (_, i) => `s${i}`));
    expect(sessions(other)).toEqual(['s1700', 's1701', 's1702']);
    expect(reads).toHaveLength(4);
    await append();
    await clock.advance(2_100);
    expect(client.told).toHaveLength(1_704);
    expect(reads).toHaveLength(4);
  });

  it('reads once for all who come back to the same place', async () => {
    const { clock, append, reading, reads } = setUp();
    await append(300);
    const clients = Array.from({ length: 50 }, () => reading('oldest'));
    await clock.advance(2_100);
    for (const client of clients) expect(client.told).toHaveLength(300);
    expect(reads).toEqual(['oldest']);
  });

  it.each(['-', 'garbage', '99999999', '../../etc/passwd'])(
    'says that something is missing where it is asked to go on behind %j',
    async (position) => {
      const { clock, append, reading } = setUp();
      await append(2);
      const client = reading(position);
      await clock.advance(10);
      expect(sessions(client)).toEqual(['gap', 's0', 's1']);
    },
  );

  it('tells only what was asked for, and moves on all the same', async () => {
    const { clock, append, reading } = setUp();
    const one = reading(null, { wish: { about: 's1' } });
    const none = reading(null, { wish: { events: ['lease'] } });
    const some = reading(null, { wish: { events: ['lease.lost', 'session'], member: 'api' } });
    await clock.advance(0);
    await append(3);
    await clock.advance(30_000);
    expect(sessions(one)).toEqual(['s1']);
    expect(sessions(none)).toEqual([]);
    expect(sessions(some)).toEqual(['s0', 's1', 's2']);
    expect(none.lastEventId).toBe(some.lastEventId);
  });

  it('shows a tenant its own events only, and those of no tenant nobody of one', async () => {
    const { clock, append, reading } = setUp();
    const as = (facts: Partial<Caller>) => reading(null, { caller: { ...ADMIN, ...facts } });
    const ofA = as({ tenant: 'a' });
    const plain = as({ scope: 'v3:read' });
    const admin = as({});
    await clock.advance(0);
    for (const tenant of ['a', 'b', 'default']) await append(1, { tenant, session: tenant });
    await append(1, { session: 'of-none' });
    await clock.advance(10);
    expect(sessions(ofA)).toEqual(['a']);
    expect(sessions(plain)).toEqual(['default', 'of-none']);
    expect(sessions(admin)).toEqual(['a', 'b', 'default', 'of-none']);
  });

  it('pings those who would hear nothing for long', async () => {
    const { clock, reading } = setUp();
    const client = reading();
    await clock.advance(14_999);
    expect(client.comments).toEqual([]);
    await clock.advance(15_001);
    expect(client.comments).toEqual(['ping']);
    await clock.advance(15_000);
    expect(client.comments).toEqual(['ping', 'ping']);
  });

  it('says when the store does not answer, and when it does again, and loses nothing', async () => {
    const { clock, append, reading, faults } = setUp();
    const client = reading();
    await clock.advance(0);
    faults.refuse = true;
    await clock.advance(5_000);
    const late = reading();
    const behind = reading('oldest');
    await append(2);
    await clock.advance(1_000);
    faults.refuse = false;
    await clock.advance(4_000);
    const words = [expect.stringMatching(/^stalled/), expect.stringMatching(/^resumed/)];
    for (const one of [client, late, behind]) {
      expect(one.comments).toEqual(words);
      expect(sessions(one)).toEqual(['s0', 's1']);
    }
  });

  it('reports a gap once when the log was lost, and continues with new events', async () => {
    const { clock, append, memory, reading } = setUp();
    await append(2);
    const client = reading();
    await clock.advance(0);
    const read = memory.log.read.bind(memory.log);
    memory.log.read = async ({ after }) => ({
      entries: [],
      more: false,
      gap: after !== undefined,
    });
    await append();
    await clock.advance(2_000);
    memory.log.read = read;
    await clock.advance(6_000);
    expect(sessions(client)).toEqual(['gap', 's0', 's1', 's2']);
  });

  it('ends a stream when its token is over, with a word, not before', async () => {
    const { clock, append, hub, reading } = setUp();
    const client = reading(null, { caller: { ...ADMIN, expiresAtMs: clock.wallMs() + 20_000 } });
    await clock.advance(19_999);
    expect(client.isOver).toBe(false);
    await clock.advance(1);
    expect(client.isOver).toBe(true);
    expect(client.told).toEqual([{ event: 'bye', data: { reason: 'token-expired' } }]);
    expect(hub.size).toBe(0);
    const asleep = reading(null, { caller: { ...ADMIN, expiresAtMs: clock.wallMs() + 20_000 } });
    await clock.advance(0);
    clock.jumpWall(30_000);
    await append();
    await clock.advance(10);
    expect(asleep.names()).toEqual(['bye']);
  });

  it('drops one who does not read, keeps it from harming the others, and holds no more than allowed', async () => {
    const { clock, append, hub, watch, reading } = setUp({ queuedBytes: 10_000 });
    const slow = watch();
    const quick = reading();
    await clock.advance(0);
    for (let i = 0; i < 20; i++) {
      await append(10);
      await clock.advance(10);
    }
    expect(hub.size).toBe(1);
    expect(quick.told).toHaveLength(200);
    await slow.readAll();
    expect(slow.told.at(-1)).toEqual({ event: 'bye', data: { reason: 'too-slow' } });
    expect(slow.told.length).toBeLessThan(110);
    await slow.leave();
    const again = reading(slow.lastEventId);
    await clock.advance(100);
    expect(sessions(again)).toEqual(sessions(quick).slice(slow.told.length - 1));
  });

  it('gives one who is far behind no more than it reads, and drops it if it reads nothing', async () => {
    const { clock, append, hub, watch, reads } = setUp({ queuedBytes: 100_000 });
    await append(5_000);
    const stuck = watch('oldest');
    const steady = watch('oldest');
    await clock.advance(1_000);
    expect(reads.length).toBeLessThan(3);
    for (let beat = 0; beat < 4; beat++) {
      for (let i = 0; i < 3; i++) await steady.readSome();
      await clock.advance(15_000);
    }
    expect(hub.size).toBe(1);
    void steady.readAll();
    await clock.advance(2_100);
    expect(sessions(steady)).toEqual(Array.from({ length: 5_000 }, (_, i) => `s${i}`));
    // Its bye was not read in time, either: nothing of it is kept.
    await stuck.readAll();
    expect(stuck.error).toMatchObject({ message: expect.stringContaining('too-slow') });
  });

  it('takes no more clients than it may, with one token and in all', async () => {
    const { hub, watch } = setUp({ clients: 3, clientsPerToken: 2 });
    const first = watch();
    watch();
    const facts = expect.objectContaining({ retryAfterMs: 5_000 });
    const refusal = { kind: 'too-many-requests', facts };
    expect(() => watch()).toThrow(expect.objectContaining(refusal));
    watch(null, { caller: { ...ADMIN, tokenId: 'other' } });
    const third = { ...ADMIN, tokenId: 'third' };
    expect(() => watch(null, { caller: third })).toThrow(expect.objectContaining(refusal));
    await first.leave();
    watch(null, { caller: third });
    expect(hub.size).toBe(3);
  });

  it('forgets clients that have gone, and follows the log only while a client watches', async () => {
    const { clock, hub, reading, watch } = setUp();
    const left = reading();
    const gone = new AbortController();
    const aborted = watch(null, { signal: gone.signal });
    const behind = watch('garbage', { signal: gone.signal });
    await clock.advance(100);
    expect([hub.size, hub.isFollowing]).toEqual([3, true]);
    await left.leave();
    gone.abort();
    expect(hub.size).toBe(0);
    await aborted.readAll();
    await behind.readAll();
    expect(aborted.names()).toEqual(['bye']);
    await clock.advance(10_000);
    expect(hub.isFollowing).toBe(false);
    expect(clock.pendingTimers).toBe(0);
  });

  it('keeps nobody who came and went while the store was away', async () => {
    const { clock, hub, faults, reading } = setUp();
    faults.hang = true;
    for (let i = 0; i < 50; i++) {
      const client = reading(i % 2 === 0 ? null : 'oldest');
      await clock.advance(100);
      await client.leave();
    }
    expect(hub.size).toBe(0);
    await clock.advance(60_000);
    expect(clock.pendingTimers).toBe(0);
  });

  it('says good-bye to all when it closes, and takes nobody after that', async () => {
    const { clock, hub, reading, watch } = setUp();
    const clients = [reading(), reading('oldest')];
    await clock.advance(10);
    hub.close();
    await clock.advance(0);
    for (const client of clients)
      expect(client.told).toEqual([{ event: 'bye', data: { reason: 'closing' } }]);
    expect(() => watch()).toThrow(expect.objectContaining({ kind: 'not-ready' }));
    await clock.advance(5_000);
    expect(clock.pendingTimers).toBe(0);
  });

  it('lets nobody write frames of their own into the stream', async () => {
    const { clock, memory, reading } = setUp();
    const client = reading();
    await clock.advance(0);
    const frame = 'x\n\nevent: bye\ndata: {"reason":"closing"}\n\n';
    const real = { at: 1, instance: 'a', event: 'session.added', session: frame };
    const others = [
      { ...real, event: frame },
      { ...real, instance: 'a\n\nid: 7\n\n' },
    ];
    await memory.log.append([...others, real], CALL);
    await clock.advance(2_100);
    expect(client.told).toHaveLength(1);
    expect(client.told[0]?.data).toMatchObject(real);
  });
});
