import { beforeEach, describe, expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { Store } from '../../src/store/port/store.ts';
import type { Attempt, Dialer, Link } from '../../src/store/redis/client/link.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import { simDialer } from '../support/sim-link.ts';

const CALL = { timeoutMs: 1_000 };

interface Dialed {
  readonly attempt: Attempt;
  readonly words: string[];
  isDestroyed: boolean;
  /** What is sent over it is not answered. */
  isStuck: boolean;
}

let clock: FakeClock;
let server: SimRedis;
let dialed: Dialed[];
let isAway: boolean;
let dials: number;
let drops: string[];

beforeEach(() => {
  clock = new FakeClock();
  server = simulated(1);
  dialed = [];
  isAway = false;
  dials = 0;
  drops = [];
});

function simulated(seed: number): SimRedis {
  const time = { wallMs: () => clock.wallMs(), nowMs: () => clock.monotonicMs() };
  return new SimRedis({ ...time, random: seededRandom(seed), appendOnly: true });
}

const dialer: Dialer = {
  name: 'redis://simulated',
  dial: async (attempt) => {
    dials++;
    if (isAway) throw new Error('connection refused');
    const link = await simDialer(server).dial(attempt);
    const one: Dialed = { attempt, words: [], isDestroyed: false, isStuck: false };
    dialed.push(one);
    return watched(link, one);
  },
};

function watched(link: Link, one: Dialed): Link {
  return {
    ...link,
    send: (args) => {
      one.words.push(args[0] ?? '');
      return one.isStuck ? new Promise(() => {}) : link.send(args);
    },
    destroy: () => {
      one.isDestroyed = true;
      link.destroy();
    },
  };
}

async function opened(): Promise<Store> {
  const events = new Emitter();
  events.on('store.disconnected', ({ why }) => drops.push(why));
  return openRedisStoreOn(dialer, { clock, random: seededRandom(2), events, quarantine: 'off' });
}

async function closed(store: Store): Promise<void> {
  const closing = store.close();
  await clock.advance(1_000);
  await closing;
}

async function acquire(store: Store, key: string) {
  const call = { ...CALL, ttlMs: 6_000, inbox: 'me' };
  const [reply] = await store.leases.acquire([{ key: `lease:${key}`, holder: 'me' }], call);
  return reply?.kind;
}

describe('the connections to one server', () => {
  it('B-03 leases have one of their own; the other is made when it is first needed', async () => {
    const store = await opened();
    expect(await acquire(store, 'a')).toBe('granted');
    await store.leases.renew([{ key: 'lease:a', holder: 'me' }], { ...CALL, ttlMs: 6_000 });
    expect(dialed).toHaveLength(1);
    await store.records.put('things', [{ id: 'x', value: 1 }], CALL);
    await store.log.append(['entry'], CALL);
    await store.members.beat({ id: 'me', attributes: {} }, { ...CALL, ttlMs: 1_000 });
    expect(dialed).toHaveLength(2);
    const before = dialed[0]?.words.length;
    await store.records.get('things', ['x'], CALL);
    expect(dialed[0]?.words).toHaveLength(before ?? 0);
    await closed(store);
    expect(dialed.every(({ isDestroyed }) => isDestroyed)).toBe(true);
  });

  it('B-03 a large reply, or a lost connection, of other traffic holds up no lease', async () => {
    const store = await opened();
    await store.records.put('things', [{ id: 'x', value: 1 }], CALL);
    const data = dialed[1] as Dialed;
    data.isStuck = true;
    const reading = store.records.get('things', ['x'], CALL).catch((error) => error.code);
    expect(await acquire(store, 'a')).toBe('granted');
    await clock.advance(1_001);
    expect(await reading).toBe('OUTCOME_UNKNOWN');
    expect(data.isDestroyed).toBe(true);
    expect(dialed[0]?.isDestroyed).toBe(false);
    expect(drops).toEqual([]);
    await clock.advance(100);
    expect(await store.records.get('things', ['x'], CALL)).toMatchObject([{ value: 1 }]);
    await closed(store);
  });

  it('B-03 other traffic goes on at once when the connection for leases is back', async () => {
    const store = await opened();
    await store.records.put('things', [{ id: 'x', value: 1 }], CALL);
    isAway = true;
    for (const { attempt } of dialed) attempt.onEnd('cut');
    const before = dials;
    await clock.advance(30_000);
    // Pauses grow to a second at most, and are shortened by chance; two connections would have made twice as many attempts.
    expect(dials - before).toBeLessThan(55);
    const reading = store.records.get('things', ['x'], { timeoutMs: 900 }).catch((error) => error);
    await clock.advance(1_000);
    expect(await reading).toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: expect.stringContaining('connection refused'),
    });
    isAway = false;
    while (dialed.length < 3) await clock.advance(10);
    await clock.advance(10);
    expect(await store.records.get('things', ['x'], CALL)).toMatchObject([{ value: 1 }]);
    await closed(store);
  });

  it('B-03 both lead to one server: an address that leads elsewhere by now ends the first as well', async () => {
    const store = await opened();
    expect(await acquire(store, 'a')).toBe('granted');
    server = simulated(7);
    const writing = store.records.put('things', [{ id: 'x', value: 1 }], CALL);
    await clock.advance(500);
    expect(await writing).toMatchObject([{ kind: 'written' }]);
    expect(drops).toEqual([
      'another server answers at redis://simulated now, or it has another role',
    ]);
    expect(dialed[0]?.isDestroyed).toBe(true);
    await closed(store);
  });

  it('B-03 when leases are kept by another server, other traffic follows', async () => {
    const store = await opened();
    await store.records.put('things', [{ id: 'x', value: 1 }], CALL);
    server = simulated(7);
    dialed[0]?.attempt.onEnd('cut');
    await clock.advance(500);
    expect(dialed[1]?.isDestroyed).toBe(true);
    expect(await store.records.get('things', ['x'], CALL)).toMatchObject([{ kind: 'absent' }]);
    await closed(store);
  });

  it('B-03 a server that has become a replica is left by both', async () => {
    const store = await opened();
    await store.records.put('things', [{ id: 'x', value: 1 }], CALL);
    server.isReadOnly = true;
    const leaving = store.members.leave('me', CALL);
    expect(await leaving.catch((error) => error.code)).toBe('STORE_REFUSED');
    await clock.advance(500);
    expect(dialed.slice(0, 2).every(({ isDestroyed }) => isDestroyed)).toBe(true);
    expect(drops).toHaveLength(1);
    await closed(store);
  });
});
