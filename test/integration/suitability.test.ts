import { readFileSync } from 'node:fs';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openRedisStore } from '../../src/store/redis/redis-store.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { leaveNothingBehind, nextEvent, openAt, take } from './support/holdfasts.ts';
import { useIntents } from './support/intent-use.ts';
import { SHORT } from './support/lease-watch.ts';
import { useWorkflows } from './support/workflow-use.ts';

leaveNothingBehind();

/** Longer than a released key takes to be passed on. */
const LONG_TTL_MS = 8_000;

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const failure = (opening: Promise<unknown>) =>
  opening.then(
    () => null,
    (error: Error) => error,
  );

describe('a Redis that is examined at start', () => {
  it('K-16 is refused if it evicts, with what to change', async () => {
    await using evicting = await startRedis({ args: ['--maxmemory-policy', 'allkeys-lru'] });
    const error = await failure(openAt(evicting));
    expect(error).toMatchObject({ code: 'STORE_UNSUITABLE' });
    expect(error?.message).toMatch(/allkeys-lru.*noeviction/s);
  });

  it('K-16 is refused if it is a replica, with the address of its primary', async () => {
    await using replica = await startRedis({ replicaOf: redis });
    const error = await failure(openAt(replica));
    expect(error).toMatchObject({ code: 'STORE_UNSUITABLE' });
    expect(error?.message).toContain(`127.0.0.1:${redis.port}`);
  });

  it('K-16 K-14 a fresh one is fit: findings by subject, and a warning that it forgets when restarted', async () => {
    const warnings: string[] = [];
    await using holdfast = await openAt(redis, {
      on: { 'store.warned': ({ finding, advice }) => warnings.push(`${finding} ${advice}`) },
    });
    const { store, findings } = await holdfast.examine();
    expect(store).toBe(redis.url);
    expect(findings.filter(({ level }) => level === 'refuse')).toEqual([]);
    expect(Object.fromEntries(findings.map(({ subject, level }) => [subject, level]))).toEqual({
      version: 'ok',
      topology: 'ok',
      role: 'ok',
      eviction: 'ok',
      persistence: 'warn',
      replication: 'ok',
      clock: 'ok',
    });
    expect(warnings).toEqual([expect.stringContaining('appendonly yes')]);
  });

  it('K-16 is refused if a later version of Holdfast has written to it, with what to do', async () => {
    await redis.cli('HSET', 'later:holdfast:marker', 'format', '5');
    const error = await failure(openAt(redis, { prefix: 'later:' }));
    expect(error).toMatchObject({ code: 'STORE_UNSUITABLE' });
    expect(error?.message).toMatch(/format 5.*knows format 4.*Upgrade/s);
    await (await openAt(redis, { prefix: 'now:' })).close();
    expect(await redis.cli('HGET', 'now:holdfast:marker', 'format')).toBe('4');
  });

  it('K-16 warns about a primary that grants without its replicas', async () => {
    await using replicated = await startRedis();
    await using _replica = await startRedis({ replicaOf: replicated });
    await using holdfast = await openAt(replicated);
    const replication = async () =>
      (await holdfast.examine()).findings.find(({ subject }) => subject === 'replication');
    expect(await replication()).toMatchObject({
      level: 'warn',
      advice: expect.stringContaining('min-replicas-to-write 1'),
    });
    await replicated.cli('CONFIG', 'SET', 'min-replicas-to-write', '1');
    expect(await replication()).toMatchObject({ level: 'ok' });
  });
});

/** The smallest set of rights with which everything works. */
const LEAST_RIGHTS =
  '~* &signal:* +ping +info +time +eval +evalsha +publish +subscribe +unsubscribe +scan +get +mget +set +del +exists ' +
  '+pexpire +persist +pttl +sadd +srem +smembers +scard +zadd +zrem +zpopmin +zcard +zrange +zrevrange +zrangebyscore ' +
  '+zrangebylex +zscore +zremrangebyrank +hget +hset +hsetnx +hmget +hgetall +hdel +hkeys +hvals +hlen +rpush +lpop ' +
  '+lindex +lrange +lrem +xadd +xdel +xlen +xtrim +xrange +xrevrange +xinfo|stream +client|setname';

/** What docs/redis.md tells an administrator to grant. */
function documentedRights(): { rights: string; withPrefix: string } {
  const page = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8');
  const rights = /^ACL SETUSER holdfast on >PASSWORD (.*)$/m.exec(page)?.[1];
  const patterns = /^With a prefix `app:`, use `(.*)`\.$/m.exec(page)?.[1];
  if (rights === undefined || patterns === undefined) throw new Error('docs/redis.md has no ACL');
  return { rights, withPrefix: rights.replace('~* &signal:*', patterns) };
}

async function userWith(rights: string): Promise<string> {
  const name = `user-${performance.now()}`;
  await redis.cli('ACL', 'SETUSER', name, 'reset', 'on', '>secret', ...rights.split(' '));
  return `redis://${name}:secret@127.0.0.1:${redis.port}`;
}

/** Uses everything a user of Holdfast can; throws at the first thing that does not work. */
async function useEverything(url: string, prefix = ''): Promise<void> {
  await using holdfast = await openAt({ url }, { prefix, quarantine: 'on', maxTtl: LONG_TTL_MS });
  await using other = await openAt({ url }, { prefix, maxTtl: LONG_TTL_MS });
  const lease = await take(holdfast, 'k', { ...SHORT, wait: '20s' });
  await nextEvent(holdfast, 'lease.renewed');
  await holdfast.records.put('r', 1, { fence: lease.fence });
  expect(await holdfast.records.get('r')).toMatchObject({ value: 1 });
  expect(await holdfast.records.remove('r', { fence: lease.fence })).toEqual({ removed: true });
  for await (const key of holdfast.records.keys()) throw new Error(`${key} has been removed`);
  await useMembers(url, prefix);
  await useLog(url, prefix);
  await useDiscovery(url, prefix);
  await useWorkflows(url, prefix);
  await useIntents(url, prefix);
  expect((await holdfast.list()).leases.map(({ key }) => key)).toEqual(['k']);
  await holdfast.examine();
  const reasserted = nextEvent(holdfast, 'lease.reasserted');
  await redis.cli('DEL', `${prefix}lease:k`);
  await reasserted;
  expect(await lease.release()).toEqual({ released: true });

  // Only a signal can tell of its end in time: it would run out after the wait.
  const long = await take(other, 'long', { ttl: LONG_TTL_MS });
  const waiting = take(holdfast, 'long', { ...SHORT, wait: LONG_TTL_MS - 2_000 });
  const inLine = async () => (await redis.cli('ZCARD', `line:{${prefix}lease:long}`)) === 1;
  await until(inLine, { what: 'the line' });
  expect(await long.release()).toEqual({ released: true });
  await waiting;

  const given = await take(other, 'k', SHORT);
  expect(await given.transfer('successor')).toMatchObject({ transferred: true });
  const claimed = await take(other, 'k', { ...SHORT, holder: 'successor' });
  await take(other, 'quits', SHORT);
  expect(await holdfast.acquire('quits', { ...SHORT, wait: '100ms' })).toMatchObject({ ok: false });
  const revoked = await holdfast.revoke('k', { reason: 'a test', force: true });
  expect(revoked).toMatchObject({ revoked: true, holder: 'successor' });
  await until(() => claimed.state === 'lost', { what: 'the revoked one to hear of it' });
  const noticed = nextEvent(holdfast, 'store.quarantined');
  await flush(prefix);
  await holdfast.acquire('k', SHORT);
  await noticed;
}

async function useMembers(url: string, prefix: string): Promise<void> {
  const { members, close } = await openRedisStore(url, { prefix, maxTtls: null });
  await redis.cli('SET', `${prefix}poll:node:foreign`, '1');
  await members.beat({ id: 'me', attributes: { weight: 1 } }, { ttlMs: 60_000, timeoutMs: 2_000 });
  const found = await members.list({ timeoutMs: 2_000, thorough: true });
  expect(found.map(({ id, attributes }) => [id, attributes]).sort()).toEqual([
    ['foreign', null],
    ['me', { weight: 1 }],
  ]);
  await redis.cli('DEL', `${prefix}poll:node:foreign`);
  await members.leave('me', { timeoutMs: 2_000 });
  expect(await members.list({ timeoutMs: 2_000 })).toEqual([]);
  await close();
}

async function useLog(url: string, prefix: string): Promise<void> {
  const { log, close } = await openRedisStore(url, { prefix, maxTtls: null });
  const call = { timeoutMs: 2_000 };
  await log.append(['a', 'b'], call);
  const [first, second] = (await log.read(call)).entries;
  expect(await log.read({ ...call, after: first?.position ?? '' })).toMatchObject({ gap: false });
  expect(await log.recall({ ...call, most: 1 })).toMatchObject({ entries: [second] });
  await close();
}

async function useDiscovery(url: string, prefix: string): Promise<void> {
  const { records, close } = await openRedisStore(url, { prefix, maxTtls: null });
  const call = { timeoutMs: 2_000 };
  await redis.cli('SET', `${prefix}session:foreign`, '1');
  expect(await records.discover('session', call)).toBe(1);
  await redis.cli('DEL', `${prefix}session:foreign`);
  expect(await records.discover('session', call)).toBe(1);
  await close();
}

async function flush(prefix: string): Promise<void> {
  const script = "for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end";
  await redis.cli('EVAL', script, '0', `*${prefix}*`);
}

describe('a Redis user', () => {
  it('K-16 that may not run INFO is refused, with what to grant', async () => {
    const error = await failure(
      openAt({ url: await userWith(LEAST_RIGHTS.replace(' +info', '')) }),
    );
    expect(error).toMatchObject({ code: 'STORE_UNSUITABLE' });
    expect(error?.message).toContain('+info');
    expect(error?.message).not.toContain('secret');
  });

  it('K-16 with the least rights can do everything, and is refused nothing', async () => {
    await redis.cli('FLUSHALL');
    await redis.cli('ACL', 'LOG', 'RESET');
    await useEverything(await userWith(LEAST_RIGHTS));
    expect(await redis.cli('ACL', 'LOG')).toEqual([]);
  });

  it('K-16 with the rights that docs/redis.md lists for a prefix can do everything under it', async () => {
    await redis.cli('FLUSHALL');
    await redis.cli('ACL', 'LOG', 'RESET');
    await useEverything(await userWith(documentedRights().withPrefix), 'app:');
    expect(await redis.cli('ACL', 'LOG')).toEqual([]);
  });

  it('K-16 with the rights that docs/redis.md lists for a prefix can do nothing else', async () => {
    const url = await userWith(documentedRights().withPrefix);
    const client = createClient({ url });
    await client.connect();
    const forbidden = [
      ['SET', 'other:lease:k', '1'],
      ['GET', 'other:lease:k'],
      ['PUBLISH', 'other:signal:x', '1'],
      ['KEYS', '*'],
      ...[['FLUSHALL'], ['CONFIG', 'GET', '*'], ['SHUTDOWN'], ['ACL', 'LIST']],
    ];
    for (const command of forbidden) {
      const error = await failure(client.sendCommand(command));
      expect(error?.message, command.join(' ')).toMatch(/NOPERM/);
    }
    client.destroy();
  });

  it('K-16 has the rights that docs/redis.md lists, and no others', () => {
    expect(documentedRights().rights.split(' ').sort()).toEqual(LEAST_RIGHTS.split(' ').sort());
  });

  it('K-16 K-07 that lacks a right gets STORE_REFUSED, with where to read on', async () => {
    const tryWithout = async (right: string) => {
      const rest = LEAST_RIGHTS.split(' ').filter((given) => given !== right);
      await using holdfast = await openAt({ url: await userWith(rest.join(' ')) });
      await holdfast.acquire('toothless', SHORT);
    };
    const refusals = ['+set', '+evalsha', '~*'].map((right) => failure(tryWithout(right)));
    for (const error of await Promise.all(refusals)) {
      expect(error).toMatchObject({ code: 'STORE_REFUSED' });
      expect(error?.message).toContain('docs/redis.md');
    }
  });
});
