import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_MAX_TTLS } from '../../src/store/port/keyspaces.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts';
import type { RedisServer } from '../support/redis-server.ts';
import { until } from '../support/until.ts';

const CALL = { timeoutMs: 5_000 };
/** Short enough to wait for, and longer than the five seconds between two looks at a Cluster. */
const MAX_TTLS = { ...DEFAULT_MAX_TTLS, lease: 8_000 };
const QUARANTINED = { kind: 'busy', reason: 'quarantine' };
/** How long nothing is granted on a Cluster that has just been started, and some more. */
const FIRST_QUARANTINE_MS = 20_000;

let cluster: RedisCluster;
beforeAll(async () => {
  cluster = await startCluster({ replicas: 0 });
}, 60_000);
afterAll(() => cluster.stop());

function open(prefix: string): Promise<Store> {
  return openRedisStore(cluster.url, { prefix, quarantine: 'on', maxTtls: MAX_TTLS });
}

async function ask(store: Store, key: string, holder: string) {
  const call = { ...CALL, ttlMs: MAX_TTLS.lease, inbox: holder };
  const [reply] = await store.leases.acquire([{ key, holder }], call);
  return reply;
}

/** Takes a lease once the first quarantine is over. */
async function hold(store: Store, key: string): Promise<void> {
  const isGranted = async () => (await ask(store, key, 'first'))?.kind === 'granted';
  const what = `${key} to be granted`;
  await until(isGranted, { what, deadlineMs: FIRST_QUARANTINE_MS });
}

/** The key of a lease that this primary has. */
async function leaseOn(server: RedisServer, prefix: string): Promise<string> {
  return (await cluster.keyOn(server, `${prefix}lease:k`)).slice(prefix.length);
}

async function witnessOf(server: RedisServer, prefix: string): Promise<string> {
  const names = (await server.cli('KEYS', `${prefix}holdfast:marker:witness:*`)) as string[];
  expect(names).toHaveLength(1);
  return names[0] ?? '';
}

describe('a primary of a Cluster', () => {
  it('K-15 that is flushed grants nothing more, to no client, before anybody has looked at it', async () => {
    const [server] = cluster.primaries;
    if (server === undefined) throw new Error('a primary is needed');
    const holder = await open('flush:');
    const other = await open('flush:');
    try {
      const key = await leaseOn(server, 'flush:');
      await hold(holder, key);
      // As long as the holder neither asks nor renews, nobody has noticed; the next look is seconds away.
      await server.cli('FLUSHALL');
      expect(await ask(other, key, 'second')).toMatchObject(QUARANTINED);
      expect(await ask(holder, key, 'third')).toMatchObject(QUARANTINED);
    } finally {
      await Promise.all([holder.close(), other.close()]);
    }
  }, 60_000);

  it('K-15 goes on granting when the slot of its witness is moved to another, and has a new one', async () => {
    const [from, to] = cluster.primaries;
    if (from === undefined || to === undefined) throw new Error('two primaries are needed');
    const store = await open('moved:');
    const other = await open('moved:');
    try {
      const key = await leaseOn(from, 'moved:');
      await hold(store, key);
      const witness = await witnessOf(from, 'moved:');
      for (const stopAt of ['half', 'done'] as const) {
        await cluster.migrateSlot(await cluster.slotOf(witness), to, { stopAt });
        for (const each of [store, other])
          expect(await ask(each, key, 'first')).toMatchObject({ kind: 'granted' });
      }
      const now = await until(
        async () => {
          await ask(store, key, 'first');
          const names = (await from.cli('KEYS', 'moved:holdfast:marker:witness:*')) as string[];
          return names[0];
        },
        { what: 'another witness' },
      );
      expect(now).not.toBe(witness);
    } finally {
      await Promise.all([store.close(), other.close()]);
    }
  }, 60_000);

  it('K-15 K-12 grants nothing to a client whose bounds were replaced', async () => {
    const store = await open('bounds:');
    const observer = await openRedisStore(cluster.url, { prefix: 'bounds:', maxTtls: null });
    try {
      await hold(store, 'lease:k');
      await observer.bounds?.change({ ...MAX_TTLS, lease: 60_000 }, CALL);
      const refused = await ask(store, 'lease:other', 'second').catch(({ code }) => code);
      expect(refused).toBe('STORE_UNSUITABLE');
    } finally {
      await Promise.all([store.close(), observer.close()]);
    }
  }, 60_000);

  it('K-15 that left long ago is forgotten by the marker, and one that left just now is not', async () => {
    const marker = 'left:holdfast:marker';
    const owner = await cluster.ownerOf(await cluster.slotOf(marker));
    await (await open('left:')).close();
    for (const [run, since] of [
      ['old', 1],
      ['new', Date.now()],
    ] as const)
      await owner.cli('HSET', marker, `${run}:run`, run, `${run}:since`, since, `${run}:era`, 'e');
    await (await open('left:')).close();
    expect(await owner.cli('HMGET', marker, 'old:since', 'old:era', 'new:era')).toEqual([
      ...[null, null, 'e'],
    ]);
    const fields = (await owner.cli('HKEYS', marker)) as string[];
    expect(fields.filter((field) => field.endsWith(':run'))).toHaveLength(4);
  });
});
