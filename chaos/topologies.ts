/** The stores a run can be on, and what the nemesis can do to each. */
import { readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { spawnChild } from '../test/support/child.ts';
import { lastingPort } from '../test/support/lasting-port.ts';
import { startCluster } from '../test/support/redis-cluster.ts';
import { type RedisSentinels, startSentinels } from '../test/support/redis-sentinel.ts';
import { type RedisServer, startRedis } from '../test/support/redis-server.ts';
import { call } from '../test/support/resp.ts';
import type { Invariant } from './checker.ts';
import { type Scene, type StoreFault, storeFault } from './faults.ts';
import type { HistoryFile } from './history.ts';
import { Network } from './network.ts';
import { partitions, type Servers } from './network-faults.ts';
import { postgresHa } from './postgres-ha.ts';
import { postgres } from './postgres-topology.ts';
import { RECOVERY_MS } from './timings.ts';
import { oneOf, type Topology } from './topology.ts';

export const TOPOLOGIES = [
  'single',
  'sentinel',
  'sentinel-loose',
  'cluster',
  'sqlite',
  'postgres',
  'postgres-ha',
  'postgres-ha-sync',
  'sentinel-netns',
  'cluster-netns',
  'postgres-ha-netns',
] as const;
export type TopologyName = (typeof TOPOLOGIES)[number];

/** Longer than it takes the others to take a silent server for down, which is a second. */
const OUTAGE_MS = [1_500, 6_000] as const;
/** What a crash of the host might cost the append-only file, of writes that were confirmed. */
const MOST_LOST_BYTES = 8_192;

/** Such a run begins in namespaces: see `namespaces.ts`. */
export function usesNamespaces(name: TopologyName): boolean {
  return name.endsWith('-netns');
}

export async function startTopology(
  name: TopologyName,
  { seed, folder, history }: { seed: number; folder: string; history: HistoryFile },
): Promise<Topology> {
  const network = usesNamespaces(name) ? await Network.start() : undefined;
  if (name === 'single') return single(seed);
  if (name === 'sqlite') return sqlite(folder);
  if (name === 'postgres') return postgres();
  if (name.startsWith('cluster')) return cluster(network);
  if (name.startsWith('postgres-ha'))
    return postgresHa(history, { isSynchronous: name === 'postgres-ha-sync', network });
  return sentinel({ isLoose: name === 'sentinel-loose', network });
}

async function single(seed: number): Promise<Topology> {
  const fsync = seed % 2 === 0 ? 'always' : 'everysec';
  const args = ['--appendfsync', fsync];
  const redis = await startRedis({ appendonly: true, args, pickPort: lastingPort });
  return {
    ways: [{ url: redis.url }],
    ports: [redis.port],
    faults: [
      storeFault('Redis killed', {
        lastsMs: [500, 6_000],
        inflict: (scene) => whileDead(redis, scene),
      }),
      storeFault('Redis restarted with AOF', {
        lastsMs: [0, 100],
        inflict: (scene) => whileDead(redis, scene),
      }),
      storeFault('Redis restarted with torn AOF', {
        lastsMs: [0, 1_000],
        inflict: (scene) => whileDead(redis, scene, async () => tear(redis, scene.pick)),
      }),
      storeFault('Redis restarted empty', {
        lastsMs: [0, 0],
        inflict: () => redis.restart({ empty: true }),
      }),
      storeFault('Redis flushed', {
        lastsMs: [0, 0],
        inflict: async () => void (await redis.cli('FLUSHALL')),
      }),
      storeFault('Redis frozen', {
        recoveryMs: RECOVERY_MS.plain,
        inflict: (scene) => whileFrozen(redis, scene),
      }),
    ],
    stop: () => redis.stop(),
  };
}

/** Cuts off the end of the append-only file: the last writes never happened. */
function tear({ dir }: RedisServer, pick: number): void {
  const folder = join(dir, 'appendonlydir');
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    const { size } = statSync(path);
    if (name.endsWith('.incr.aof'))
      truncateSync(path, Math.max(0, size - Math.floor(pick * MOST_LOST_BYTES)));
  }
}

/** With it, a primary that lost its replicas takes no writes. */
const STRICT = ['--min-replicas-to-write', '1', '--min-replicas-max-lag', '1'];
/** What instances log in as. Replicas and sentinels are the default user, which a primary can be made to turn away. */
const LOGIN = { username: 'instance', password: 'chaos' };
const CALL_DEADLINE_MS = 5_000;

// Two replicas: after the loss of a server the new primary still has one, which it needs to take writes.
async function sentinel({
  isLoose,
  network,
}: {
  isLoose: boolean;
  network: Network | undefined;
}): Promise<Topology> {
  const args = isLoose ? [] : STRICT;
  const sentinels = await startSentinels({
    replicas: 2,
    args,
    pickPort: lastingPort,
    ...(network && { pickHome: () => network.server() }),
  });
  await Promise.all(sentinels.servers.map(admit));
  const ports = [...sentinels.servers, ...sentinels.sentinels].map(({ port }) => port);
  // An old primary that takes writes grants to clients that still see it; only fences notice.
  const mayBreak: readonly Invariant[] = isLoose ? ['exclusion', 'two polls'] : [];
  return {
    ways: [{ url: sentinels.url().replace('//', `//${LOGIN.username}:${LOGIN.password}@`) }],
    ports: network === undefined ? ports : [],
    ...(network && { network }),
    faults: [
      ...(network === undefined
        ? [isolation(sentinels, mayBreak)]
        : partitions(network, sentinelServers(sentinels))),
      storeFault('primary killed', {
        lastsMs: [0, 2_000],
        mayBreak,
        inflict: async (scene) => {
          const primary = await sentinels.primary();
          await whileDead(primary, scene, () => sentinels.untilFailedOver(primary));
          await sentinels.untilHealthy();
        },
      }),
      storeFault('primary frozen', {
        lastsMs: OUTAGE_MS,
        mayBreak,
        inflict: async (scene) => {
          await whileFrozen(await sentinels.primary(), scene);
          await sentinels.untilHealthy();
        },
      }),
      storeFault('failover by hand', {
        lastsMs: [0, 0],
        mayBreak,
        inflict: async () => {
          await sentinels.failover();
          await sentinels.untilHealthy();
        },
      }),
      storeFault('replica killed', {
        inflict: async (scene) => {
          await whileDead(oneOf(await sentinels.replicas(), scene.pick), scene);
          await sentinels.untilHealthy();
        },
      }),
      storeFault('sentinel frozen', {
        inflict: (scene) => whileFrozen(oneOf(sentinels.sentinels, scene.pick), scene),
      }),
    ],
    stop: () => sentinels.stop(),
  };
}

const PARTITION_MS = [4_000, 9_000] as const;

function isolation(sentinels: RedisSentinels, mayBreak: readonly Invariant[]): StoreFault {
  const ports = [...sentinels.servers, ...sentinels.sentinels].map(({ port }) => port);
  return storeFault('primary isolated', {
    lastsMs: PARTITION_MS,
    mayBreak,
    inflict: async (scene) => {
      await isolate(await sentinels.primary(), ports, scene);
      await sentinels.untilHealthy();
    },
  });
}

function sentinelServers(sentinels: RedisSentinels): Servers {
  return {
    homes: [...sentinels.servers, ...sentinels.sentinels].map(({ home }) => home),
    lastsMs: PARTITION_MS,
    primary: async () => (await sentinels.primary()).home,
    around: async (fault) => {
      await fault();
      await sentinels.untilHealthy();
    },
  };
}

/** Lets instances in, also after a restart. */
async function admit(server: RedisServer): Promise<void> {
  const rights = ['on', `>${LOGIN.password}`, '~*', '&*', '+@all'];
  await server.cli('ACL', 'SETUSER', LOGIN.username, ...rights);
  await server.cli('CONFIG', 'REWRITE');
}

/** Cuts a primary off from replicas and sentinels, together with one instance, which sees nobody else. */
async function isolate(
  primary: RedisServer,
  ports: readonly number[],
  scene: Scene,
): Promise<void> {
  const { crew, lastsMs, pick, pause } = scene;
  const tell = (...command: string[]) => call(primary.port, command, CALL_DEADLINE_MS, LOGIN);
  const well = [...crew.instances].filter(({ afflictions }) => !afflictions.has('link'));
  const companion = well[Math.floor(pick * well.length)];
  const others = companion?.links.filter((_, i) => ports[i] !== primary.port) ?? [];
  companion?.afflictions.add('link');
  try {
    await Promise.all(others.map((link) => link.halfOpen()));
    await tell('ACL', 'SETUSER', 'default', 'off');
    await tell('CLIENT', 'KILL', 'USER', 'default');
    await pause(lastsMs);
  } finally {
    await tell('ACL', 'SETUSER', 'default', 'on');
    await Promise.all(others.map((link) => link.pass()));
    companion?.afflictions.delete('link');
  }
}

async function cluster(network: Network | undefined): Promise<Topology> {
  const redis = await startCluster({
    replicas: 3,
    ...(network && { pickHome: () => network.server() }),
  });
  const nodesAs = async (role: 'primary' | 'replica') => {
    const map = await redis.untilAgreed();
    const ports = map.flatMap(({ primary, replicas }) => (role === 'primary' ? primary : replicas));
    return redis.nodes.filter(({ port }) => ports.includes(port));
  };
  const primaryAt = async (pick: number) => oneOf(await nodesAs('primary'), pick);
  const servers: Servers = {
    homes: redis.nodes.map(({ home }) => home),
    lastsMs: OUTAGE_MS,
    primary: async (pick) => (await primaryAt(pick)).home,
    around: async (fault) => {
      await fault();
      await redis.untilAgreed();
    },
  };
  return {
    ways: [{ url: redis.url }],
    isSharded: true,
    ports: network === undefined ? redis.nodes.map(({ port }) => port) : [],
    ...(network && { network }),
    faults: [
      ...(network === undefined ? [] : partitions(network, servers)),
      storeFault('primary killed', {
        lastsMs: [0, 2_000],
        inflict: async (scene) => {
          const primary = await primaryAt(scene.pick);
          await whileDead(primary, scene, () => redis.untilFailedOver(primary));
          await redis.untilAgreed();
        },
      }),
      // Quicker than the others notice: it stays a primary, and has forgotten everything but its place.
      storeFault('primary restarted empty', {
        lastsMs: [0, 0],
        inflict: async ({ pick }) => {
          await (await primaryAt(pick)).restart();
          await redis.untilAgreed();
        },
      }),
      storeFault('primary frozen', {
        lastsMs: [300, 6_000],
        inflict: async (scene) => {
          await whileFrozen(await primaryAt(scene.pick), scene);
          await redis.untilAgreed();
        },
      }),
      storeFault('failover by hand', {
        lastsMs: [0, 0],
        inflict: async ({ pick }) => redis.failover(oneOf(await nodesAs('replica'), pick)),
      }),
    ],
    stop: () => redis.stop(),
  };
}

async function sqlite(folder: string): Promise<Topology> {
  const path = join(folder, 'holdfast.db');
  return {
    ways: [{ url: `sqlite:${path}` }],
    ports: [],
    faults: [
      storeFault('file locked', {
        recoveryMs: RECOVERY_MS.plain,
        inflict: async ({ lastsMs, pause }) => {
          await using locker = spawnChild('file-locker.mjs', { args: [path] });
          await locker.next('ready');
          locker.send({ do: 'lock' });
          await locker.next('lock');
          await pause(lastsMs);
        },
      }),
    ],
    stop: async () => {},
  };
}

/** Kills it, and starts it again later; in between comes what is given. */
async function whileDead(
  server: RedisServer,
  { lastsMs, pause }: Scene,
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<void> {
  await server.kill();
  try {
    await meanwhile();
    await pause(lastsMs);
  } finally {
    await server.restart();
  }
}

async function whileFrozen(server: RedisServer, { lastsMs, pause }: Scene): Promise<void> {
  await server.freeze();
  try {
    await pause(lastsMs);
  } finally {
    await server.thaw();
  }
}
