import { join } from 'node:path';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Holdfast, open } from '../../src/index.ts';
import { FaultProxy } from '../../testing/fakes/fault-proxy.ts';
import { startCluster } from '../support/redis-cluster.ts';
import { startSentinels } from '../support/redis-sentinel.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { codeOf, leaveNothingBehind, nextEvent, openAt, take } from './support/holdfasts.ts';
import { SHORT } from './support/lease-watch.ts';

// What an operator does with a link to Redis: names, passwords that rotate, sockets, NAT.

leaveNothingBehind();

let redis: RedisServer;
const socketOf = ({ dir }: RedisServer) => join(dir, 'redis.sock');
beforeAll(async () => {
  redis = await startRedis({ args: ['--unixsocket', 'redis.sock'] });
});
afterAll(() => redis.stop());

/** The names of the connections of an instance, in the order of the alphabet. */
async function namesOn(server: RedisServer, { instanceId }: Holdfast): Promise<string[]> {
  const clients = String(await server.cli('CLIENT', 'LIST')).split('\n');
  const names = clients.map((line) => / name=(\S*)/.exec(line)?.[1] ?? '');
  return names.filter((name) => name.startsWith(`holdfast:${instanceId}:`)).sort();
}

async function untilNamed(server: RedisServer, holdfast: Holdfast): Promise<void> {
  const wanted = ['data', 'hints', 'leases'].map(
    (role) => `holdfast:${holdfast.instanceId}:${role}`,
  );
  const isNamed = async () => String(await namesOn(server, holdfast)) === String(wanted);
  await until(isNamed, { what: `connections named ${wanted.join(', ')}` });
}

/** Uses each of the three connections. */
async function useAll(holdfast: Holdfast): Promise<void> {
  await holdfast.records.put('r', 1);
  const lease = await take(holdfast, 'used', SHORT);
  const waiting = take(holdfast, 'used', { ...SHORT, wait: '10s', holder: 'another' });
  const isInLine = async () => (await redis.cli('ZCARD', 'line:{lease:used}')) === 1;
  await until(isInLine, { what: 'the waiting holder to be in line' });
  await lease.release();
  await (await waiting).release();
}

describe('the name of a connection', () => {
  it('K-16 tells instance and role in CLIENT LIST, also after a reconnect', async () => {
    await using holdfast = await openAt(redis, { name: 'api 2' });
    await useAll(holdfast);
    await untilNamed(redis, holdfast);
    await redis.cli('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await redis.cli('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await useAll(holdfast);
    await untilNamed(redis, holdfast);
  });

  it.each([
    ['node-redis', () => createClient({ url: redis.url, name: 'mine' })],
    ['ioredis', () => new Redis(redis.url, { lazyConnect: true, connectionName: 'mine' })],
  ])('K-16 is there for an adopted client of %s, too', async (_, make) => {
    const client = make();
    await using holdfast = await open(client, {
      quarantine: 'off',
      on: { 'store.warned': () => {} },
    });
    await useAll(holdfast);
    await untilNamed(redis, holdfast);
    if (client instanceof Redis) client.disconnect();
  });

  it('K-16 is missing where the user may not name connections, and all else works', async () => {
    const rights = ['~*', '&*', '+@all', '-client|setname'];
    await redis.cli('ACL', 'SETUSER', 'nameless', 'on', '>secret', ...rights);
    const url = redis.url.replace('//', '//nameless:secret@');
    await using holdfast = await openAt({ url });
    await useAll(holdfast);
    expect(await namesOn(redis, holdfast)).toEqual([]);
  });
});

describe('a password that rotates', () => {
  const setPassword = (server: RedisServer, user: string, password: string) =>
    server.cli('ACL', 'SETUSER', user, 'on', 'resetpass', `>${password}`, '~*', '&*', '+@all');

  it('K-16 K-07 is asked for at each reconnect: a lease outlives the rotation', async () => {
    let password = 'first';
    await setPassword(redis, 'rotating', password);
    const url = redis.url.replace('//', '//rotating@');
    const credentials = async () => ({ password });
    await using holdfast = await openAt({ url }, { redis: { credentials } });
    const lease = await take(holdfast, 'kept', SHORT);
    await useAll(holdfast);
    password = 'second';
    await setPassword(redis, 'rotating', password);
    const renewed = nextEvent(holdfast, 'store.connected');
    await redis.cli('CLIENT', 'KILL', 'USER', 'rotating');
    await renewed;
    await nextEvent(holdfast, 'lease.renewed');
    await useAll(holdfast);
    expect(lease.isHeld()).toBe(true);
  });

  it('K-16 K-07 whose source is away for a while is asked for again, and is in no message', async () => {
    let password: string | null = 'first';
    await setPassword(redis, 'shy', password);
    const credentials = () => {
      if (password === null) throw new Error('the vault is sealed');
      return { username: 'shy', password };
    };
    await using holdfast = await openAt(redis, { redis: { credentials } });
    password = null;
    const disconnected = nextEvent(holdfast, 'store.disconnected');
    await redis.cli('CLIENT', 'KILL', 'USER', 'shy');
    await disconnected;
    const acquiring = holdfast.acquire('k', { ...SHORT, operationTimeout: 500 });
    const error = await acquiring.then(
      () => null,
      (thrown: Error) => thrown,
    );
    expect(error).toMatchObject({ code: 'STORE_UNREACHABLE' });
    expect(error?.message).toMatch(/redis\.credentials\(\) failed: the vault is sealed/);
    password = 'second';
    await setPassword(redis, 'shy', password);
    await until(
      () =>
        holdfast.acquire('k', SHORT).then(
          ({ ok }) => ok,
          () => false,
        ),
      {
        what: 'a lease with the new password',
      },
    );
    const wrong = () => ({ username: 'shy', password: 'canary' });
    const opening = openAt(redis, { redis: { credentials: wrong } });
    const refused = await opening.catch((thrown: Error) => thrown);
    expect(refused).toMatchObject({ code: 'STORE_REFUSED' });
    expect(String(refused)).toContain('redis.credentials');
    expect(String(refused)).not.toContain('canary');
  });

  it('K-16 is asked for at every server of a Cluster, and of sentinels', {
    timeout: 60_000,
  }, async () => {
    await using cluster = await startCluster({ replicas: 0 });
    for (const node of cluster.primaries) await setPassword(node, 'app', 'one');
    const url = cluster.url.replace('//', '//app@');
    const credentials = () => ({ password: 'one' });
    await using holdfast = await openAt({ url }, { redis: { credentials } });
    for (const node of cluster.primaries)
      await (await take(holdfast, await cluster.keyOn(node), SHORT)).release();
    await using watched = await startSentinels({
      sentinelCredentials: { username: 'watcher', password: 'barley' },
    });
    const sentinelCredentials = () => ({ username: 'watcher', password: 'barley' });
    const at = { url: watched.url() };
    await using behind = await openAt(at, { redis: { sentinelCredentials } });
    expect((await take(behind, 'k', SHORT)).isHeld()).toBe(true);
    expect(await codeOf(openAt(at))).toBe('STORE_UNREACHABLE');
  });
});

describe('a socket of this host', () => {
  it.each(['redis+unix', 'unix'])(
    'K-16 %s:// leads to the same leases as the port',
    async (scheme) => {
      await using one = await openAt({ url: `${scheme}://${socketOf(redis)}` });
      await using other = await openAt(redis);
      const lease = await take(one, `by-${scheme}`, SHORT);
      expect(await other.acquire(`by-${scheme}`, SHORT)).toMatchObject({ ok: false });
      const waiting = take(other, `by-${scheme}`, { ...SHORT, wait: '10s' });
      await lease.release();
      expect((await waiting).isHeld()).toBe(true);
      await useAll(one);
      await untilNamed(redis, one);
      const { store } = await one.examine();
      expect(store).toBe(`redis+unix://${socketOf(redis)}`);
    },
  );

  it('K-16 its database is in the query; a socket that is not there is named', async () => {
    await using holdfast = await openAt({ url: `unix://${socketOf(redis)}?db=3` });
    await take(holdfast, 'in-three', SHORT);
    expect(await redis.cli('EXISTS', 'lease:in-three')).toBe(0);
    const error = await openAt({ url: 'unix:///nowhere/redis.sock' }).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'STORE_UNREACHABLE' });
    expect(String(error)).toContain('/nowhere/redis.sock');
  });

  it('K-07 a lease outlives a server that drops its connections', async () => {
    await using holdfast = await openAt({ url: `unix://${socketOf(redis)}` });
    const lease = await take(holdfast, 'dropped', SHORT);
    const connected = nextEvent(holdfast, 'store.connected');
    await redis.cli('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await connected;
    await nextEvent(holdfast, 'lease.renewed');
    expect(lease.isHeld()).toBe(true);
  });
});

describe('servers behind NAT', { timeout: 60_000 }, () => {
  it('K-16 a Cluster is reached by the map, though it announces other names', async () => {
    const kind = ['--cluster-preferred-endpoint-type', 'hostname'];
    const args = [...kind, '--cluster-announce-hostname', 'inside.invalid'];
    await using cluster = await startCluster({ replicas: 0, args });
    const outside = ({ port }: RedisServer) => ({ host: '127.0.0.1', port });
    const pairs = cluster.primaries.map((node) => [`inside.invalid:${node.port}`, outside(node)]);
    const keys = await Promise.all(cluster.primaries.map((node) => cluster.keyOn(node)));
    await using holdfast = await openAt(cluster, { redis: { natMap: Object.fromEntries(pairs) } });
    for (const key of keys) await (await take(holdfast, key, SHORT)).release();
    // A slot on its way: keys are asked for at the server that a redirection names.
    const [from, to] = cluster.primaries;
    if (from === undefined || to === undefined) throw new Error('two primaries are needed');
    const lease = await take(holdfast, keys[0] ?? '', SHORT);
    const slot = await cluster.slotOf(`lease:${keys[0]}`);
    await cluster.migrateSlot(slot, to, { stopAt: 'keys' });
    await nextEvent(holdfast, 'lease.renewed');
    await cluster.migrateSlot(slot, to);
    await nextEvent(holdfast, 'lease.renewed');
    expect(lease.isHeld()).toBe(true);
    const opening = openAt(cluster, { redis: { natMap: () => undefined } });
    expect(await codeOf(opening)).toBe('STORE_UNREACHABLE');
  });

  it('K-16 the primary that sentinels name is reached by the map, and so is its successor', async () => {
    await using watched = await startSentinels();
    const proxies = new Map<string, FaultProxy>();
    for (const { port } of watched.servers) {
      const proxy = await FaultProxy.start({ target: { host: '127.0.0.1', port } });
      proxies.set(`127.0.0.1:${port}`, proxy);
    }
    const old = await watched.primary();
    const natMap = (address: string) => {
      const port = proxies.get(address)?.port;
      return port === undefined ? null : { host: 'localhost', port };
    };
    const holdfast = await openAt({ url: watched.url() }, { redis: { natMap } });
    await (await take(holdfast, 'k', SHORT)).release();
    expect(proxies.get(`127.0.0.1:${old.port}`)?.connections).toBeGreaterThan(0);
    await old.kill();
    const successor = await watched.untilFailedOver(old);
    const isTaken = () =>
      holdfast.acquire('l', SHORT).then(
        ({ ok }) => ok,
        () => false,
      );
    await until(isTaken, { what: 'a lease of the successor', deadlineMs: 20_000, every: 50 });
    expect(proxies.get(`127.0.0.1:${successor.port}`)?.connections).toBeGreaterThan(0);
    await holdfast.close();
    for (const proxy of proxies.values()) await proxy[Symbol.asyncDispose]();
  });
});
