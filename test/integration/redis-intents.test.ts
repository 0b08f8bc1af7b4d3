import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  CLIENTS_MOST,
  type StartRequest,
  type StoredSession,
  startStream,
} from '../../src/store/port/intent-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { scriptCalls } from './support/script-calls.ts';

const START_STREAM = startStream('live');

const CALL = { timeoutMs: 5_000 };
const HUB = '{app:holdfast}:';
const INTENT = `${HUB}intent:`;

let redis: RedisServer;
let store: Store;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());
beforeEach(async () => {
  await redis.cli('FLUSHALL');
  store = await openRedisStore(redis.url, { prefix: 'app:', quarantine: 'off' });
  return () => store.close();
});

const request = (id: string, more: Partial<StartRequest> = {}): StartRequest => ({
  ...{ id, tenant: 't', kind: 'live', label: 'l', keys: ['k'], client: 'c' },
  ...{ body: '{"b":1}', status: '{"s":1}', priority: 5 },
  ...more,
});
const start = (id: string, more?: Partial<StartRequest>) =>
  store.intents.start(request(id, more), CALL);
const end = (id: string, ifRevision = 1) =>
  store.intents.advance(id, { ifRevision, state: 'ENDED', status: '{}' }, CALL);
const listed = async (more: { isOpen?: boolean; tenant?: string } = {}) =>
  (await store.intents.list({ ...CALL, ...more })).sessions.map(({ id }) => id);
const consume = (claimMs = 60_000) =>
  store.streams.consume(START_STREAM, { ...CALL, consumer: 'w', most: 10, claimMs });
const failure = (doing: Promise<unknown>) =>
  doing.then(
    () => null,
    (error: Error) => error,
  );

describe('a start', () => {
  it('I-01 takes one request and one script, made or replayed, however many keys there are', async () => {
    await start('warm', { keys: ['warm'] });
    const [scripts, commands] = [await scriptCalls(redis), await processed()];
    await start('a', { keys: ['new', 'old'] });
    await start('b', { keys: ['new', 'old'] });
    await start('c', { keys: ['newest', 'new'], client: 'd' });
    expect((await scriptCalls(redis)) - scripts).toBe(3);
    // Three by us; the two that ask are counted, too.
    expect((await processed()) - commands).toBe(3 + 2);
  });

  it('I-01 keeps everything under one hash tag, so on a Cluster in one slot, and without a TTL', async () => {
    await start('a', { keys: ['k', 'l'] });
    await start('a2', { client: 'd' });
    await start('b', { keys: ['m'], tenant: '{u}' });
    await consume();
    await end('b');
    const names = (await redis.cli('KEYS', '*')) as string[];
    const own = names.filter((name) => !name.startsWith('app:holdfast:'));
    expect(own.length).toBeGreaterThan(10);
    for (const name of own) {
      expect(name).toMatch(/^\{app:holdfast\}:(intent|stream|holdfast):/);
      expect(await redis.cli('PTTL', name)).toBe(-1);
    }
  });

  it('I-13 is later than all that were made before it, also when the clock has been set back', async () => {
    await start('a');
    const ahead = -(Date.now() + 3_600_000) * 1_000;
    for (const index of ['all', 'open', 'all:t', 'open:t'])
      await redis.cli('ZADD', INTENT + index, String(ahead), 'a');
    for (const id of ['b', 'c']) await start(id, { keys: [id] });
    for (const more of [{}, { isOpen: true }, { tenant: 't' }, { tenant: 't', isOpen: true }])
      expect(await listed(more)).toEqual(['c', 'b', 'a']);
    const [session] = await store.intents.read(['c'], CALL);
    expect(Math.abs((session?.createdAtMs ?? 0) - Date.now())).toBeLessThan(60_000);
  });
});

/** How many commands clients have sent so far. */
async function processed(): Promise<number> {
  const stats = await redis.info('commandstats');
  const counts = Object.entries(stats).filter(([name]) =>
    /^cmdstat_(evalsha|eval|info)$/.test(name),
  );
  return counts.reduce((sum, [, text]) => sum + Number(/calls=(\d+)/.exec(text)?.[1] ?? 0), 0);
}

describe('after a loss in part', () => {
  it('I-06 a key that leads to a session which is gone leads nowhere, and the next start makes one', async () => {
    await start('a', { keys: ['new', 'old'] });
    await redis.cli('DEL', `${INTENT}session:a`);
    expect(await start('b', { keys: ['new', 'old'] })).toMatchObject({ kind: 'created' });
    const found = await start('c', { keys: ['old'] });
    expect(found).toMatchObject({ kind: 'replayed', session: { id: 'b', clients: 1 } });
  });

  it('I-09 a revision that is given out again after a loss is another one', async () => {
    await start('a');
    const advance = (change: object) =>
      store.intents.advance('a', { state: 'RUNNING', status: '{}', ...change } as never, CALL);
    const seen = await advance({ ifRevision: 1 });
    if (seen.kind !== 'advanced') throw new Error(seen.kind);
    // The store loses that change, and a client stops the session.
    const [lost, other] = [seen.session, String(seen.session.changedAtMs + 1)];
    await redis.cli('HSET', `${INTENT}session:a`, 'state', 'STOPPING', 'changed', other);
    const again = { ifRevision: lost.revision, ifChangedAtMs: lost.changedAtMs };
    expect(await advance(again)).toMatchObject({
      kind: 'conflict',
      session: { state: 'STOPPING' },
    });
    const known = { ...again, ifChangedAtMs: Number(other), state: 'ENDED' };
    expect(await advance(known)).toMatchObject({ kind: 'advanced' });
  });

  it('I-13 a session that no index names is listed again when a client asks for it', async () => {
    await start('a');
    const names = ['all', 'open', 'all:t', 'open:t', 'of:all:live', 'of:open:live', 'label:live:l'];
    expect(await redis.cli('DEL', ...names.map((index) => INTENT + index))).toBe(names.length);
    expect(await listed({ isOpen: true })).toEqual([]);
    expect(await start('b')).toMatchObject({ kind: 'replayed', session: { id: 'a' } });
    for (const more of [{}, { isOpen: true }, { tenant: 't' }, { kind: 'live' }])
      expect(await listed(more)).toEqual(['a']);
  });

  it('I-06 the first key leads nowhere, the second does: the session is found, and all keys lead to it', async () => {
    await start('a', { keys: ['old'] });
    await start('gone', { keys: ['new'] });
    await redis.cli('DEL', `${INTENT}session:gone`);
    const found = await start('b', { keys: ['new', 'old'] });
    expect(found).toMatchObject({ kind: 'replayed', session: { id: 'a' } });
    expect(await start('b', { keys: ['new'] })).toMatchObject({ session: { id: 'a' } });
    await end('a');
    expect(await redis.cli('HGETALL', `${INTENT}keys`)).toEqual([]);
  });

  it('I-06 the keys of a session that has lost its own are not taken from who has them now', async () => {
    await start('a');
    await redis.cli('DEL', `${INTENT}keys`);
    expect(await start('b')).toMatchObject({ kind: 'created' });
    expect(await end('a')).toMatchObject({ kind: 'advanced' });
    expect(await start('c')).toMatchObject({ kind: 'replayed', session: { id: 'b' } });
    await end('b');
    expect(await start('c')).toMatchObject({ kind: 'created' });
  });

  it('what is in an index and nowhere else is dropped when it is met, and pages stay full', async () => {
    for (const id of ['a', 'b', 'c', 'd']) await start(id, { keys: [id] });
    for (const id of ['b', 'c']) await redis.cli('DEL', `${INTENT}session:${id}`);
    const page = await store.intents.list({ ...CALL, most: 2 });
    expect([page.sessions.map(({ id }) => id), page.cursor]).toEqual([['d', 'a'], undefined]);
    for (const more of [{ isOpen: true }, { tenant: 't' }]) await listed(more);
    for (const index of ['all', 'open', 'all:t'])
      expect(await redis.cli('ZRANGE', INTENT + index, 0, -1)).toEqual(['d', 'a']);
  });

  it('prune passes over what is gone, and forgets as many as there are', async () => {
    for (const id of ['a', 'b', 'c']) await start(id, { keys: [id] });
    for (const id of ['a', 'b', 'c']) await end(id);
    await redis.cli('DEL', `${INTENT}session:a`);
    const call = { ...CALL, endedBeforeMs: Date.now() + 60_000, most: 2 };
    expect(await store.intents.prune(call)).toBe(2);
    // Each reader of an index drops the sessions that are gone from it.
    for (const more of [{}, { tenant: 't' }, { kind: 'live' }, { kind: 'live', label: 'l' }])
      expect(await listed(more)).toEqual([]);
    expect(await redis.cli('KEYS', `${INTENT}*`)).toEqual([]);
  });

  it.each([
    ['the bus', `${HUB}stream:bus:5:${START_STREAM}`],
    ['a lane', `${HUB}stream:lane:{${START_STREAM}}:a`],
  ])('I-13 a start that waits and has lost %s is published again, once', async (_, key) => {
    await start('a');
    expect(await store.intents.republish(['a'], CALL)).toEqual([]);
    expect(await redis.cli('DEL', key)).toBe(1);
    expect(await store.intents.republish(['a', 'none'], CALL)).toEqual(['a']);
    expect(await store.intents.republish(['a'], CALL)).toEqual([]);
    expect(await consume()).toMatchObject([{ lane: 'a', tries: 1, value: { session: 'a' } }]);
    expect(await consume()).toEqual([]);
  });

  it('I-13 a start of which the stream has lost where it is may be given out twice, and counts once', async () => {
    await start('a');
    await redis.cli('DEL', `${HUB}stream:lanes:${START_STREAM}`);
    expect(await store.intents.republish(['a'], CALL)).toEqual(['a']);
    const given = await consume();
    expect(given.map(({ lane }) => lane)).toEqual(['a', 'a']);
    expect(await store.streams.ack(START_STREAM, given, CALL)).toEqual(['gone', 'done']);
    expect(await consume()).toEqual([]);
  });

  it('I-13 a start in hands that the stream will never ask back is published again', async () => {
    await start('a');
    await consume();
    expect(await store.intents.republish(['a'], CALL)).toEqual([]);
    await redis.cli('DEL', `${HUB}stream:due:${START_STREAM}`);
    expect(await store.intents.republish(['a'], CALL)).toEqual(['a']);
    expect(await consume()).toMatchObject([{ lane: 'a', value: { session: 'a' } }]);
  });
});

describe('what another program has put there', () => {
  const verbs: Record<string, () => Promise<unknown>> = {
    start: () => start('b'),
    stop: () => {
      const whose = { id: 'a', tenant: null, client: 'c', force: false, ending: '{}' };
      return store.intents.stop(whose, CALL);
    },
    advance: () => end('a'),
    read: () => store.intents.read(['a'], CALL),
  };

  it.each([
    ['a text', ['SET', `${INTENT}session:a`, 'x']],
    ['a revision that is no number', ['HSET', `${INTENT}session:a`, 'revision', 'x']],
    ['a time that is none', ['HSET', `${INTENT}session:a`, 'created', 'x']],
    ['no status', ['HDEL', `${INTENT}session:a`, 'status']],
  ])(
    'in the place of a session, %s, is KEY_FOREIGN with its name, and lists leave it out',
    async (_, command) => {
      await start('a');
      await start('other', { keys: ['o'] });
      await redis.cli(...command);
      for (const [verb, use] of Object.entries(verbs).reverse()) {
        const error = await failure(use());
        const facts = { code: 'KEY_FOREIGN', key: `${INTENT}session:a` };
        expect(error, verb).toMatchObject(facts);
        expect(error?.message).not.toMatch(/user_script|WRONGTYPE|ERR/);
      }
      expect(await listed()).toEqual(['other']);
      expect(await store.intents.republish(['other', 'a'], CALL)).toEqual([]);
      await redis.cli('DEL', `${INTENT}session:a`);
      expect(await start('b')).toMatchObject({ kind: 'created', session: { id: 'b' } });
    },
  );

  it('I-13 a start is published again also where its priority is none', async () => {
    await start('a');
    await redis.cli('HSET', `${INTENT}session:a`, 'priority', 'x');
    await redis.cli('DEL', `${HUB}stream:lane:{${START_STREAM}}:a`);
    expect(await store.intents.republish(['a'], CALL)).toEqual(['a']);
    expect(await consume()).toMatchObject([{ lane: 'a' }]);
  });

  it('a state that is none is KEY_FOREIGN until it is changed into one', async () => {
    await start('a');
    await redis.cli('HSET', `${INTENT}session:a`, 'state', 'BUSY');
    for (const use of [start('b'), store.intents.read(['a'], CALL)])
      expect(await failure(use)).toMatchObject({ code: 'KEY_FOREIGN' });
    expect(await listed()).toEqual([]);
    expect(await end('a')).toMatchObject({ kind: 'advanced', session: { state: 'ENDED' } });
  });

  it.each([
    ...['intent:keys', 'intent:all', 'intent:open', 'intent:open:t', 'intent:session:b'],
    ...[`stream:lanes:${START_STREAM}`, `stream:bus:5:${START_STREAM}`],
    `stream:lane:{${START_STREAM}}:b`,
  ])('under %s is KEY_FOREIGN, and a start has made nothing that anybody finds', async (name) => {
    await redis.cli('SET', HUB + name, 'x');
    const error = await failure(start('b'));
    expect(error).toMatchObject({ code: 'KEY_FOREIGN' });
    expect(error?.message).not.toMatch(/user_script|WRONGTYPE|ERR/);
    await redis.cli('DEL', HUB + name);
    expect(await store.intents.read(['b'], CALL)).toEqual([null]);
    expect([await listed(), await listed({ isOpen: true })]).toEqual([[], []]);
    const made = await start('c');
    expect(made).toMatchObject({ kind: 'created', session: { id: 'c' } });
    const lanes = (await consume()).map(({ lane }) => lane);
    expect(lanes).toContain('c');
  });
});

describe('a session of many clients', () => {
  async function crowd(count: number): Promise<StoredSession> {
    await start('a');
    const fields = Array.from({ length: count - 1 }, (_, n) => [`c:more-${n}`, '']).flat();
    await redis.cli('HSET', `${INTENT}session:a`, 'clients', String(count), ...fields);
    const [session] = await store.intents.read(['a'], CALL);
    if (session === null || session === undefined) throw new Error('it is gone');
    return session;
  }

  it('I-14 lets nobody in beyond the most there may be, but whoever is in', async () => {
    expect((await crowd(CLIENTS_MOST)).clients).toBe(CLIENTS_MOST);
    const late = await start('b', { client: 'late', keys: ['new', 'k'] });
    expect(late).toMatchObject({ kind: 'crowded', session: { id: 'a', clients: CLIENTS_MOST } });
    expect(await start('b')).toMatchObject({ kind: 'replayed', session: { id: 'a' } });
    // Who was not let in has left nothing behind.
    expect(await start('b', { keys: ['new'] })).toMatchObject({ kind: 'created' });
  });

  it('I-14 is rid of all of them by force, in one step', async () => {
    await crowd(CLIENTS_MOST);
    const whose = { id: 'a', tenant: 't', client: 'x', force: true, ending: '{}' };
    const stopped = await store.intents.stop(whose, CALL);
    expect(stopped).toMatchObject({ changed: true, session: { state: 'ENDED', clients: 0 } });
    const fields = (await redis.cli('HKEYS', `${INTENT}session:a`)) as string[];
    expect(fields.filter((field) => field.startsWith('c:'))).toEqual([]);
  });

  it('I-14 is found by all of its keys after a stop by force, until it has ended', async () => {
    await start('a', { keys: ['k', 'l'] });
    const change = { ifRevision: 1, state: 'RUNNING', status: '{"s":2}' } as const;
    await store.intents.advance('a', change, CALL);
    const [before] = await store.intents.read(['a'], CALL);
    const whose = { id: 'a', tenant: 't', client: 'x', force: true, ending: '{}' };
    expect(await store.intents.stop(whose, CALL)).toMatchObject({
      session: {
        ...before,
        state: 'STOPPING',
        revision: 3,
        clients: 0,
        changedAtMs: expect.any(Number),
      },
    });
    const again = { kind: 'replayed', session: { id: 'a', clients: 1 } };
    for (const key of ['k', 'l']) expect(await start('b', { keys: [key] })).toMatchObject(again);
    await end('a', 3);
    for (const key of ['k', 'l'])
      expect(await start(`of-${key}`, { keys: [key] })).toMatchObject({ kind: 'created' });
  });
});
