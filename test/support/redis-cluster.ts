import type { Home } from './home.ts';
import { lastingPort } from './lasting-port.ts';
import { type RedisServer, startAllRedis, stopAllRedis } from './redis-server.ts';
import { type SlotMap, sameMap, slotMap } from './slot-map.ts';
import { until } from './until.ts';

const SLOTS = 16_384;
/** How long a node is silent before the others take it for failing. */
const NODE_TIMEOUT_MS = 1_000;
const READY_DEADLINE_MS = 20_000;
const FAILOVER_DEADLINE_MS = 20_000;
/** A replica gives up a failover by hand after five seconds, for instance when it did not get the votes. */
const MANUAL_FAILOVER_MS = 5_500;
const MIGRATE_DEADLINE_MS = 5_000;

/** The nodes talk to each other at this distance from their port. From Redis 7.0 it could be chosen. */
const BUS_OFFSET = 10_000;
/** Keys tried until one lies on a certain node; of three nodes, each third does. */
const MAX_KEY_ATTEMPTS = 1_000;

export interface ClusterOptions {
  /** Three by default; with fewer than three nobody is left to vote for a successor of one that died. */
  primaries?: number;
  /** In all, given to the primaries in turn. One by default, which is the first primary's. */
  replicas?: number;
  /** Primaries without slots, such as have just been added. None by default. */
  spares?: number;
  /** More options for every node. They win over the defaults. */
  args?: readonly string[];
  /** Picks a home for each node. This host by default. */
  pickHome?: () => Promise<Home>;
}

/** How far a slot's move goes: announced, with half of its keys (and at least one) moved, with all of them, or all of it. */
export type MigrationStage = 'migrating' | 'half' | 'keys' | 'done';

/** Starts a cluster in which all nodes agree who has which slots. Use `await using`. */
export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const { primaries = 3, replicas = 1, spares = 0, args = [], pickHome } = options;
  const node = {
    args: [
      ...['--cluster-enabled', 'yes', '--cluster-node-timeout', String(NODE_TIMEOUT_MS)],
      // A primary that lost its replica is not given another one's: who follows whom is for the test to say.
      ...['--cluster-migration-barrier', '100'],
      // A replica is on the map once it has received something: the first word to it comes with this.
      ...['--repl-ping-replica-period', '1'],
      ...args,
    ],
    pickPort: () => lastingPort([BUS_OFFSET]),
    ...(pickHome ? { pickHome } : {}),
  };
  const count = primaries + replicas + spares;
  const nodes = await startAllRedis(Array.from({ length: count }, () => node));
  const cluster = new RedisCluster(
    nodes.slice(0, primaries),
    nodes.slice(primaries, primaries + replicas),
    nodes.slice(primaries + replicas),
  );
  try {
    await cluster.form();
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

export class RedisCluster {
  /** Those that were primaries at the start, in the order of their slots. */
  readonly primaries: readonly RedisServer[];
  /** Those that were replicas at the start: the first one of the first primary, and so on in turn. */
  readonly replicas: readonly RedisServer[];
  /** Those that had no slots at the start. */
  readonly spares: readonly RedisServer[];
  readonly nodes: readonly RedisServer[];
  readonly url: string;

  constructor(
    primaries: readonly RedisServer[],
    replicas: readonly RedisServer[],
    spares: readonly RedisServer[] = [],
  ) {
    this.primaries = primaries;
    this.replicas = replicas;
    this.spares = spares;
    this.nodes = [...primaries, ...replicas, ...spares];
    const hosts = primaries.map(({ home, port }) => `${home.address}:${port}`);
    this.url = `redis+cluster://${hosts.join(',')}`;
  }

  /** Makes a cluster of nodes that know nothing of each other. `startCluster` calls this. */
  async form(): Promise<void> {
    await Promise.all(this.primaries.map((node, index) => this.#assignSlots(node, index)));
    await this.#meet();
    await Promise.all(this.replicas.map((node, index) => this.#follow(node, index)));
    const isFormed = async () => {
      const map = await this.#agreed();
      const areInStep = await Promise.all(this.replicas.map(isInStep));
      const areListed = this.replicas.every((node) => isListed(node, map));
      return map !== undefined && areInStep.every(Boolean) && areListed;
    };
    await until(isFormed, {
      what: 'the nodes to form a cluster',
      deadlineMs: READY_DEADLINE_MS,
    });
  }

  /** Until all nodes that are awake say that the cluster is well, and who has which slots. Returns that. */
  untilAgreed(): Promise<SlotMap> {
    return until(() => this.#agreed(), {
      what: 'the nodes to agree on the slots',
      deadlineMs: FAILOVER_DEADLINE_MS,
    });
  }

  async slotOf(key: string): Promise<number> {
    return Number(await this.#anyNode().cli('CLUSTER', 'KEYSLOT', key));
  }

  /** The node that has the slot. During a migration that is still the one it leaves. */
  async ownerOf(slot: number): Promise<RedisServer> {
    const range = (await this.untilAgreed()).find(({ from, to }) => from <= slot && slot <= to);
    return this.#nodeAt(range?.primary);
  }

  /** A key in one of the node's slots. The prefix has no hash tag, which would settle the slot. */
  async keyOn(node: RedisServer, prefix = 'key'): Promise<string> {
    const ranges = (await this.untilAgreed()).filter(({ primary }) => primary === node.port);
    for (let attempt = 0; attempt < MAX_KEY_ATTEMPTS; attempt += 1) {
      const key = `${prefix}${attempt}`;
      const slot = await this.slotOf(key);
      if (ranges.some(({ from, to }) => from <= slot && slot <= to)) return key;
    }
    throw new Error(`no key that begins with '${prefix}' lies on port ${node.port}`);
  }

  /**
   * Moves a slot to another primary, or as far as told; a later call goes on. On the way its owner
   * answers ASK for keys it has no more, or never had, and TRYAGAIN where some of several are there.
   */
  async migrateSlot(
    slot: number,
    to: RedisServer,
    { stopAt = 'done' }: { stopAt?: MigrationStage } = {},
  ): Promise<void> {
    const from = await this.ownerOf(slot);
    if (from === to) return;
    const [fromId, toId] = await Promise.all([idOf(from), idOf(to)]);
    await to.cli('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId);
    await from.cli('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId);
    if (stopAt === 'migrating') return;
    await moveKeys(slot, from, to, stopAt === 'half' ? 0.5 : 1);
    if (stopAt !== 'done') return;
    // The new owner first: if it were to fail in between, nobody points at one that does not know.
    await to.cli('CLUSTER', 'SETSLOT', slot, 'NODE', toId);
    await from.cli('CLUSTER', 'SETSLOT', slot, 'NODE', toId);
    await until(async () => (await this.ownerOf(slot)) === to, { what: `slot ${slot} to move` });
  }

  /** Kills the one that was this primary at the start. Returns it, for `untilFailedOver`. */
  async killPrimary(index: number): Promise<RedisServer> {
    const node = this.primaries[index];
    if (node === undefined) throw new Error(`there is no primary ${index}`);
    await node.kill();
    return node;
  }

  /** Until all other nodes that are awake agree that somebody else has its slots. */
  async untilFailedOver(old: RedisServer): Promise<void> {
    const isOver = async () => {
      const map = await this.#agreed(old);
      return map?.every(({ primary }) => primary !== old.port) ?? false;
    };
    await until(isOver, {
      what: `a failover from port ${old.port}`,
      deadlineMs: FAILOVER_DEADLINE_MS,
    });
  }

  /** Makes a replica the primary by hand. Nothing is lost, unless told not to ask the old one. */
  async failover(replica: RedisServer, how?: 'FORCE' | 'TAKEOVER'): Promise<void> {
    let askedAt = Number.NEGATIVE_INFINITY;
    const ask = async (map: SlotMap | undefined) => {
      // One that is not in step, or whom the voters still take for a primary, says OK and fails in silence.
      if (how === undefined && !(isListed(replica, map) && (await isInStep(replica)))) return;
      await replica.cli('CLUSTER', 'FAILOVER', ...(how === undefined ? [] : [how]));
      askedAt = performance.now();
    };
    const isPrimary = async () => {
      const map = await this.#agreed();
      if (map?.some(({ primary }) => primary === replica.port)) return true;
      if (performance.now() - askedAt > MANUAL_FAILOVER_MS) await ask(map);
      return false;
    };
    await until(isPrimary, {
      what: `port ${replica.port} to be a primary`,
      deadlineMs: FAILOVER_DEADLINE_MS,
    });
  }

  async stop(): Promise<void> {
    await stopAllRedis(this.nodes);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #assignSlots(node: RedisServer, index: number): Promise<void> {
    const count = this.primaries.length;
    const first = Math.floor((index * SLOTS) / count);
    const last = Math.floor(((index + 1) * SLOTS) / count) - 1;
    // Different from the start, so that no two primaries have to settle it between them.
    await node.cli('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
    // ADDSLOTSRANGE would be shorter, and is there from Redis 7.0 only.
    const slots = Array.from({ length: last - first + 1 }, (_, offset) => first + offset);
    await node.cli('CLUSTER', 'ADDSLOTS', ...slots);
  }

  /** Everybody with everybody, instead of waiting for word to get around. */
  async #meet(): Promise<void> {
    const pairs = this.nodes.flatMap((node, index) =>
      this.nodes.slice(index + 1).map((other) => [node, other] as const),
    );
    await Promise.all(
      pairs.map(([node, other]) => node.cli('CLUSTER', 'MEET', other.home.address, other.port)),
    );
  }

  async #follow(replica: RedisServer, index: number): Promise<void> {
    const primary = this.primaries[index % this.primaries.length];
    if (primary === undefined) throw new Error('a cluster has at least one primary');
    const id = await idOf(primary);
    // Refused until the replica has met the primary, and knows it as a primary.
    await until(async () => (await replica.cli('CLUSTER', 'REPLICATE', id)) === 'OK', {
      what: `port ${replica.port} to follow port ${primary.port}`,
      deadlineMs: READY_DEADLINE_MS,
    });
  }

  async #agreed(without?: RedisServer): Promise<SlotMap | undefined> {
    const asked = this.nodes.filter((node) => node.isAwake && node !== without);
    const states = await Promise.all(asked.map((node) => node.cli('CLUSTER', 'INFO')));
    if (!states.every((state) => String(state).includes('cluster_state:ok'))) return undefined;
    const [first, ...others] = await Promise.all(asked.map(slotMap));
    const isSame = first !== undefined && others.every((other) => sameMap(first, other));
    const isComplete =
      (first ?? []).reduce((sum, { from, to }) => sum + to - from + 1, 0) === SLOTS;
    return isSame && isComplete ? first : undefined;
  }

  #anyNode(): RedisServer {
    const node = this.nodes.find(({ isAwake }) => isAwake);
    if (node === undefined) throw new Error('no node is awake');
    return node;
  }

  #nodeAt(port: number | undefined): RedisServer {
    const node = this.nodes.find((other) => other.port === port);
    if (node === undefined) throw new Error(`no node of this cluster is at port ${port}`);
    return node;
  }
}

async function idOf(node: RedisServer): Promise<string> {
  return String(await node.cli('CLUSTER', 'MYID'));
}

function isListed(replica: RedisServer, map: SlotMap | undefined): boolean {
  return map?.some(({ replicas }) => replicas.includes(replica.port)) ?? false;
}

async function isInStep(replica: RedisServer): Promise<boolean> {
  return (await replica.info('replication')).master_link_status === 'up';
}

/** Moves keys until this share of them, rounded up, is there. */
async function moveKeys(slot: number, from: RedisServer, to: RedisServer, share: number) {
  const countIn = async (node: RedisServer) =>
    Number(await node.cli('CLUSTER', 'COUNTKEYSINSLOT', slot));
  const [left, moved] = await Promise.all([countIn(from), countIn(to)]);
  const wanted = Math.ceil((left + moved) * share) - moved;
  const keys = await from.cli('CLUSTER', 'GETKEYSINSLOT', slot, Math.max(wanted, 0));
  if (!Array.isArray(keys) || keys.length === 0) return;
  const names = keys.map(String);
  const { home, port } = to;
  await from.cli('MIGRATE', home.address, port, '', 0, MIGRATE_DEADLINE_MS, 'KEYS', ...names);
}
