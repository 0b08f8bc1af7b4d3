/** A process that only looks leaves a Redis that has not been used yet as it found it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startCluster } from '../support/redis-cluster.ts';
import { startSentinels } from '../support/redis-sentinel.ts';
import { type RedisServer, startRedis } from '../support/redis-server.ts';
import { until } from '../support/until.ts';
import { cli, privateFolder, startCli } from './support/cli.ts';
import { leaveNothingBehind, openAt, take } from './support/holdfasts.ts';

leaveNothingBehind();

const LOOK = { observe: true, quarantine: 'on' } as const;

/** How many keys there are, on all servers together. */
async function sizeOf(servers: readonly RedisServer[]): Promise<number> {
  const sizes = await Promise.all(servers.map((server) => server.cli('DBSIZE')));
  return sizes.reduce<number>((sum, size) => sum + Number(size), 0);
}

describe('a command that only looks', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  it.each([
    ...['ls', 'max-ttl', 'doctor', 'members', 'map', 'top', 'slots'],
    ...['sessions ls', 'sessions ls --kind live', 'workflows ls', 'deadletters ls'],
  ])('K-16 holdfast %s finds a new Redis empty, and leaves it empty', async (command) => {
    const { code, stderr } = await cli(command.split(' '), { at: redis, cwd: privateFolder() });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(await sizeOf([redis])).toBe(0);
  });

  it.each([
    ...['get x', 'explain x', 'sessions get x', 'workflows show x', 'workflows history x'],
    ...['revoke x --reason x', 'drain x', 'unpin x', 'sessions rm x', 'workflows rm x'],
  ])('K-16 holdfast %s finds nothing in a new Redis, and leaves it empty', async (command) => {
    expect(await cli(command.split(' '), { at: redis })).toMatchObject({ code: 1 });
    expect(await sizeOf([redis])).toBe(0);
  });

  it('K-16 holdfast watch follows a new Redis, and leaves it empty', async () => {
    await using watch = startCli(['watch', '--since', '1h'], { at: redis });
    const channels = async () => (await redis.cli('PUBSUB', 'CHANNELS')) as unknown[];
    await until(async () => (await channels()).length > 0, { what: 'watch to follow the log' });
    watch.signal('SIGINT');
    expect(await watch.end()).toMatchObject({ code: 0 });
    expect(await sizeOf([redis])).toBe(0);
  });

  it('K-16 holdfast doctor says that the store has not been used yet, and tries a lease once it has', async () => {
    await using used = await startRedis();
    const doctor = async () => (await cli(['doctor'], { at: used })).stdout;
    expect(await doctor()).toMatch(/^ok {6}No process has taken leases in this store yet/m);
    await (await openAt(used)).close();
    expect(await doctor()).toMatch(/^ok {6}A lease was had, waited for, used and released\.$/m);
  });
});

async function single() {
  const redis = await startRedis();
  return { url: redis.url, servers: [redis], [Symbol.asyncDispose]: () => redis.stop() };
}

async function sentinel() {
  const watched = await startSentinels();
  const stop = () => watched[Symbol.asyncDispose]();
  return { url: watched.url(), servers: watched.servers, [Symbol.asyncDispose]: stop };
}

async function cluster() {
  const nodes = await startCluster();
  const stop = () => nodes[Symbol.asyncDispose]();
  return { url: nodes.url, servers: nodes.nodes, [Symbol.asyncDispose]: stop };
}

describe.each([
  ['one server', single],
  ['Sentinels', sentinel],
  ['a Cluster', cluster],
])('a process that only looks at %s', (_, start) => {
  it('K-16 leaves it empty, and sees the leases of the first client that takes some', async () => {
    await using topology = await start();
    await using looking = await openAt(topology, LOOK);
    expect((await looking.list()).leases).toEqual([]);
    expect((await looking.fleet.view()).members).toEqual([]);
    expect((await looking.log.recall()).entries).toEqual([]);
    expect(await looking.maxTtl()).toEqual({});
    expect(await sizeOf(topology.servers)).toBe(0);

    await using client = await openAt(topology);
    await take(client, 'k');
    expect(await looking.inspect('k')).toMatchObject({ kind: 'held' });
    // It finds the marker of that client.
    await using next = await openAt(topology, LOOK);
    expect(await next.maxTtl()).toMatchObject({ lease: 30_000 });
  });

  it('K-16 a client that makes no store is refused, and leaves it empty', async () => {
    await using topology = await start();
    await expect(openAt(topology, { create: false })).rejects.toMatchObject({
      code: 'STORE_UNREACHABLE',
      message: expect.stringContaining('no process has used this store yet'),
    });
    expect(await sizeOf(topology.servers)).toBe(0);
    await using client = await openAt(topology);
    await take(client, 'k');
    await using other = await openAt(topology, { create: false });
    expect(await other.inspect('k')).toMatchObject({ kind: 'held' });
  });
});
