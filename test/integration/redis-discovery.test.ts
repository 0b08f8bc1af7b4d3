import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { scriptCalls } from './support/script-calls.ts';

const CALL = { timeoutMs: 5_000 };

let redis: RedisServer;
let cluster: RedisCluster;
beforeAll(async () => {
  const patient = { replicas: 0, args: ['--cluster-node-timeout', '15000'] };
  [redis, cluster] = await Promise.all([startRedis(), startCluster(patient)]);
}, 60_000);
afterAll(() => Promise.all([redis.stop(), cluster.stop()]));

/** Another program, which knows the names of sessions and nothing else. */
interface Stranger {
  do(...command: [name: string, key: string | Buffer, ...args: string[]]): Promise<unknown>;
  end(): void;
}

function strangerOn(server: RedisServer): Stranger {
  const client = new Redis(server.url);
  return { do: (name, ...args) => client.call(name, ...args), end: () => client.disconnect() };
}

function strangerOnCluster(): Stranger {
  const { port = 0 } = cluster.primaries[0] ?? {};
  const client = new Redis.Cluster([{ host: '127.0.0.1', port }]);
  return { do: (name, ...args) => client.call(name, ...args), end: () => client.disconnect() };
}

const places: [string, { prefix: string; url(): string; stranger(): Stranger }][] = [
  ['one server', { prefix: '', url: () => redis.url, stranger: () => strangerOn(redis) }],
  ['a prefix', { prefix: 'app:', url: () => redis.url, stranger: () => strangerOn(redis) }],
  ['a hash tag', { prefix: '{t}:', url: () => redis.url, stranger: () => strangerOn(redis) }],
  ['a Cluster', { prefix: '', url: () => cluster.url, stranger: strangerOnCluster }],
  ['a slot', { prefix: '{t}:', url: () => cluster.url, stranger: strangerOnCluster }],
];

describe.each(places)('records of another program (%s)', (_, { prefix, url, stranger }) => {
  let store: Store;
  let other: Stranger;
  let collections = 0;
  beforeAll(async () => {
    store = await openRedisStore(url(), { quarantine: 'off', prefix });
    other = stranger();
  });
  afterAll(async () => {
    other.end();
    await store.close();
  });

  /** A collection of the test's own. */
  function begin() {
    const collection = `session${collections++}`;
    const name = (id: string) => `${prefix}${collection}:${id}`;
    let version = 0;
    return {
      name,
      collection,
      write: (id: string, text: string) => other.do('SET', name(id), text),
      erase: (id: string) => other.do('DEL', name(id)),
      discover: () => store.records.discover(collection, CALL),
      get: async (id: string) => (await store.records.get(collection, [id], CALL))[0],
      put: (id: string, value: unknown) => store.records.put(collection, [{ id, value }], CALL),
      remove: (id: string) => store.records.remove(collection, [{ id }], CALL),
      /** What has changed since it was last asked. */
      news: async () => {
        const page = await store.records.changes(collection, { ...CALL, since: version });
        version = page.version;
        return [[...page.written].sort(), [...page.removed].sort()];
      },
    };
  }

  it('FR-011 are found, once, and count as a first revision', async () => {
    const { write, discover, news, get } = begin();
    await write('a', '{"url":"http://localhost"}');
    await write('b', '2');
    expect(await news()).toEqual([[], []]);
    expect(await discover()).toBe(2);
    expect(await news()).toEqual([['a', 'b'], []]);
    expect(await discover()).toBe(0);
    expect(await news()).toEqual([[], []]);
    expect(await get('a')).toMatchObject({ value: { url: 'http://localhost' }, revision: 1 });
  });

  it('FR-011 are found when they change in place, also over one of ours', async () => {
    const { write, put, discover, news, get } = begin();
    await put('ours', 1);
    await write('theirs', '1');
    await discover();
    await news();
    await write('ours', '2');
    await write('theirs', '2');
    expect(await discover()).toBe(2);
    expect(await news()).toEqual([['ours', 'theirs'], []]);
    expect(await get('ours')).toMatchObject({ value: 2, revision: 2 });
    expect(await discover()).toBe(0);
    await write('ours', '2');
    expect(await discover()).toBe(0);
  });

  it('FR-011 have a revision for each value that somebody has read', async () => {
    const { write, put, get, collection } = begin();
    await put('a', { url: 'http://a/' });
    await write('a', '{"note":"first"}');
    expect(await get('a')).toMatchObject({ value: { note: 'first' }, revision: 2 });
    expect(await get('a')).toMatchObject({ revision: 2 });
    await write('a', '{"isPaused":true}');
    const change = (ifRevision: number) =>
      store.records.put(collection, [{ id: 'a', value: 'over it', ifRevision }], CALL);
    expect(await change(2)).toEqual([{ kind: 'conflict', revision: 3 }]);
    await write('a', '{"isPaused":false}');
    // Nor does a refusal give away a revision that what comes later has too.
    expect(await change(3)).toEqual([{ kind: 'conflict', revision: 4 }]);
    expect(await get('a')).toMatchObject({ value: { isPaused: false }, revision: 4 });
    expect(await change(4)).toEqual([{ kind: 'written', revision: 5 }]);
  });

  it('FR-011 that were read before they were looked for are told of all the same, and so is every later value', async () => {
    const { write, put, get, discover, news } = begin();
    await put('a', 1);
    await news();
    await write('a', '2');
    expect(await get('a')).toMatchObject({ value: 2, revision: 2 });
    expect(await discover()).toBe(1);
    expect(await news()).toEqual([['a'], []]);
    await write('a', '3');
    expect(await get('a')).toMatchObject({ revision: 3 });
    // Back to what the index was told last.
    await write('a', '2');
    expect(await get('a')).toMatchObject({ value: 2, revision: 4 });
    expect(await discover()).toBe(1);
    expect(await news()).toEqual([['a'], []]);
    expect(await discover()).toBe(0);
  });

  it('FR-011 that nobody has found yet leave nothing behind when they go', async () => {
    const { write, get, name } = begin();
    await write('a', '1');
    await get('a');
    expect(await other.do('PTTL', metaOf(name('a')))).toBeGreaterThan(0);
  });

  it('FR-011 P-02 are found to be gone, and to be back', async () => {
    const { write, erase, put, discover, news, get, name } = begin();
    await put('ours', { n: 1 });
    await write('theirs', '1');
    await discover();
    await news();
    await erase('ours');
    await erase('theirs');
    const gone: unknown[] = [];
    // On a Cluster one that was told of just now may be on its way, and is left for the next look.
    const look = async () => {
      await discover();
      gone.push(...((await news())[1] ?? []));
      return gone.length === 2;
    };
    await until(look, { what: 'both to be gone' });
    expect(gone.sort()).toEqual(['ours', 'theirs']);
    expect(await get('ours')).toEqual({ kind: 'absent' });
    expect(await other.do('PTTL', metaOf(name('theirs')))).toBeGreaterThan(0);
    expect(await discover()).toBe(0);
    await write('ours', '{"n":1}');
    await write('theirs', '7');
    expect(await discover()).toBe(2);
    expect(await news()).toEqual([['ours', 'theirs'], []]);
    expect(await discover()).toBe(0);
  });

  it('FR-011 that come back after a removal of ours are found, and kept for good', async () => {
    const { write, put, remove, discover, news, name } = begin();
    await put('a', 1);
    await remove('a');
    await news();
    expect(await discover()).toBe(0);
    await write('a', '1');
    expect(await discover()).toBe(1);
    expect(await news()).toEqual([['a'], []]);
    expect(await other.do('PTTL', metaOf(name('a')))).toBe(-1);
  });

  it('P-04 that are no JSON are told of all the same, and not taken for gone', async () => {
    const { write, put, discover, news, get } = begin();
    await put('ours', 1);
    await news();
    await write('ours', 'no JSON {');
    await write('binary', '\u0000\u0001');
    expect(await discover()).toBe(2);
    expect(await news()).toEqual([['binary', 'ours'], []]);
    expect(await get('ours')).toMatchObject({ kind: 'failed', error: { code: 'KEY_FOREIGN' } });
    expect(await discover()).toBe(0);
  });

  it('FR-011 are not confused with what merely has a similar name, or another type', async () => {
    const { put, discover, news, name, collection } = begin();
    await put('a', 1);
    await news();
    const strange = [
      `${prefix}${collection}`,
      `${prefix}${collection}s:x`,
      `${prefix}index:${collection}:x`,
      `x${name('x')}`,
      name(''),
      name('{brace}'),
      name('line\nbreak'),
      name('x'.repeat(257)),
    ];
    for (const key of strange) await other.do('SET', key, '1');
    await other.do('LPUSH', name('list'), '1');
    await other.do('HSET', name('hash'), 'f', '1');
    expect(await discover()).toBe(0);
    expect(await news()).toEqual([[], []]);
  });

  it('P-04 one of ours under which somebody put another type is not taken for gone', async () => {
    const { put, write, discover, news, name } = begin();
    await put('a', 1);
    await news();
    await other.do('DEL', name('a'));
    await other.do('LPUSH', name('a'), '1');
    await write('b', '1');
    expect(await discover()).toBe(1);
    expect(await news()).toEqual([['b'], []]);
  });

  it('FR-011 ids in any script are found, and bytes that are no text are passed over', async () => {
    const { write, discover, news, name } = begin();
    await write('Zähler-七', '1');
    await write('a*[b]?', '1');
    await other.do('SET', Buffer.concat([Buffer.from(name('x')), Buffer.from([0xff])]), '1');
    expect(await discover()).toBe(2);
    expect(await news()).toEqual([['Zähler-七', 'a*[b]?'].sort(), []]);
  });

  it('FR-011 found by several instances at once are told of by all of them together, and none is lost', async () => {
    const { write, discover, news, erase } = begin();
    const ids = Array.from({ length: 300 }, (_, n) => `id-${String(n).padStart(3, '0')}`);
    await Promise.all(ids.map((id) => write(id, '1')));
    await Promise.all([discover(), discover(), discover()]);
    expect(await news()).toEqual([ids, []]);
    expect(await discover()).toBe(0);
    await Promise.all(ids.map((id) => erase(id)));
    const gone = new Set<unknown>();
    const look = async () => {
      await Promise.all([discover(), discover()]);
      for (const id of (await news())[1] ?? []) gone.add(id);
      return gone.size === ids.length;
    };
    await until(look, { what: 'all of them to be gone' });
  });

  it('FR-011 looking for them never takes for gone what we write meanwhile', async () => {
    const { collection, discover } = begin();
    const ids = Array.from({ length: 50 }, (_, n) => `id-${n}`);
    let isWriting = true;
    const removed: string[] = [];
    const watch = async () => {
      for (let since = 1; isWriting; ) {
        const page = await store.records.changes(collection, { ...CALL, since });
        removed.push(...page.removed);
        since = page.version;
      }
    };
    const search = async () => {
      while (isWriting) await discover();
    };
    const write = async () => {
      for (let round = 0; round < 10; round++) {
        const writes = ids.map((id) => ({ id: `${id}-${round}`, value: round }));
        await store.records.put(collection, writes, CALL);
        await Promise.all(
          ids.map((id) => store.records.put(collection, [{ id, value: round }], CALL)),
        );
      }
      isWriting = false;
    };
    await Promise.all([write(), search(), search(), watch()]);
    expect(removed).toEqual([]);
    const { written } = await store.records.changes(collection, { ...CALL, since: 0 });
    expect(written.length).toBe(ids.length * 11);
  });

  function metaOf(key: string): string {
    return key.includes('{') ? `meta:${key}` : `meta:{${key}}`;
  }
});

describe('looking for records of another program on a Cluster', () => {
  it('FR-011 does not take for gone what the index was told of just now: it may be on its way', async () => {
    const store = await openRedisStore(cluster.url, { quarantine: 'off' });
    const writer = strangerOnCluster();
    const changes = () => store.records.changes('parcel', { ...CALL, since: 1 });
    try {
      // As far as a put of ours goes before it writes the record.
      const told = (ageMs: number) => String((Date.now() - ageMs) * 1_000);
      // A little ahead of time, for a machine that is slow.
      await writer.do('ZADD', 'index:parcel', told(60_000), 'lost', told(-5_000), 'on-its-way');
      expect(await store.records.discover('parcel', CALL)).toBe(1);
      expect(await changes()).toMatchObject({ written: ['on-its-way'], removed: ['lost'] });
      await writer.do('SET', 'parcel:on-its-way', '1');
      expect(await store.records.discover('parcel', CALL)).toBe(1);
      expect(await changes()).toMatchObject({ written: ['on-its-way'], removed: ['lost'] });
    } finally {
      writer.end();
      await store.close();
    }
  });
});

describe('looking for records of another program on one server', () => {
  it('FR-011 takes a few hundred milliseconds for ten thousand, and is bounded by its time limit', async () => {
    await using big = await startRedis();
    const store = await openRedisStore(big.url, { quarantine: 'off' });
    try {
      const script =
        "for i = 1, 10000 do redis.call('SET', 'session:' .. i, '{\"n\":' .. i .. '}') end";
      await big.cli('EVAL', script, 0);
      expect(await store.records.discover('session', CALL)).toBe(10_000);
      const before = await scriptCalls(big);
      const beganAt = performance.now();
      expect(await store.records.discover('session', CALL)).toBe(0);
      const tookMs = performance.now() - beganAt;
      expect(tookMs).toBeLessThan(2_000);
      expect((await scriptCalls(big)) - before).toBeLessThan(120);
      await big.cli('EVAL', script.replaceAll('session:', 'stuff:').replace('10000', '100000'), 0);
      const late = store.records.discover('session', { timeoutMs: 105 });
      await expect(late).rejects.toMatchObject({ code: 'STORE_UNREACHABLE' });
      expect(await store.records.discover('session', CALL)).toBe(0);
      const stats = await big.info('commandstats');
      expect(stats.cmdstat_keys).toBeUndefined();
    } finally {
      await store.close();
    }
  });
});

describe('an index that was lost', () => {
  it('FR-011 is noticed by who knew it before, also when others have written since', async () => {
    await using lost = await startRedis();
    const store = await openRedisStore(lost.url, { quarantine: 'off' });
    const put = (id: string) => store.records.put('session', [{ id, value: {} }], CALL);
    await put('a');
    await put('b');
    const { version } = await store.records.changes('session', { ...CALL, since: 0 });
    expect(await store.records.changes('session', { ...CALL, since: version })).toMatchObject({
      ...{ written: [], reset: false },
    });
    await lost.cli('FLUSHALL');
    await put('c');
    const after = await store.records.changes('session', { ...CALL, since: version });
    expect(after.reset).toBe(true);
    const anew = await store.records.changes('session', { ...CALL, since: 0 });
    expect(anew).toMatchObject({ written: ['c'], reset: false });
    expect(await store.records.changes('session', { ...CALL, since: anew.version })).toMatchObject({
      reset: false,
    });
    await store.close();
  });
});
