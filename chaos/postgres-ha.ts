/**
 * Two PostgreSQL servers that Patroni keeps with etcd. Instances know both addresses, and use the primary. After a
 * promotion the store must be in quarantine, unless the standby is synchronous and the address promises that.
 */
import { installStore } from '../src/store/postgres/administration.ts';
import { type PatroniCluster, type PatroniNode, startPatroni } from '../test/support/patroni.ts';
import { until } from '../test/support/until.ts';
import type { Invariant } from './checker.ts';
import { GRANTS, timedCommits, WRITES } from './commit-order.ts';
import { type Scene, type StoreFault, storeFault } from './faults.ts';
import type { HistoryFile } from './history.ts';
import type { Network } from './network.ts';
import { partitions, type Servers } from './network-faults.ts';
import { requirePostgres } from './postgres-programs.ts';
import { oneOf, type Topology } from './topology.ts';

const SETTINGS = {
  track_commit_timestamp: 'on',
  max_connections: '200',
  idle_in_transaction_session_timeout: '15s',
  wal_keep_size: '512MB',
};
/** Instances find the new primary, and the first of them compares its timeline. */
const EXAMINED_DEADLINE_MS = 3_000;

/** The server of a Patroni that is frozen or cut off still answers, and may grant what the new primary grants, too. */
const SPLIT: readonly Invariant[] = ['exclusion', 'two polls'];

export async function postgresHa(
  history: HistoryFile,
  { isSynchronous, network }: { isSynchronous: boolean; network: Network | undefined },
): Promise<Topology> {
  const { programs } = requirePostgres(['patroni', 'etcd']);
  const pickHome = network && { pickHome: () => network.server() };
  const cluster = await startPatroni({ programs, isSynchronous, settings: SETTINGS, ...pickHome });
  const hosts = cluster.nodes.map(({ home, port }) => `${home.address}:${port}`).join(',');
  const promise = isSynchronous ? '&standbys=synchronous' : '';
  const url = `postgres://postgres@${hosts}/postgres?target_session_attrs=read-write${promise}`;
  await installStore(url);
  await (await cluster.leader()).sql(`${WRITES}; ${GRANTS}`);
  const watch = new FailoverWatch(cluster, history, isSynchronous);
  return {
    ways: [{ url, databases: cluster.nodes.map((node) => node.url) }],
    ports: network === undefined ? cluster.nodes.map(({ port }) => port) : [],
    ...(network && { network }),
    neverForgets: isSynchronous,
    faults: [
      ...faultsOf(cluster, watch, isSynchronous ? [] : SPLIT),
      ...(network === undefined
        ? [proxiesCut(cluster, watch)]
        : partitions(network, serversOf(cluster, watch))),
    ],
    commits: async () => timedCommits(await cluster.leader()),
    stop: async () => cluster[Symbol.asyncDispose](),
  };
}

/** How long anything lasts after which another server is the primary. */
const OUTAGE_MS = [1_000, 5_000] as const;

function harming(cluster: PatroniCluster, watch: FailoverWatch) {
  return (
    name: string,
    lastsMs: readonly [number, number],
    harm: (node: PatroniNode, scene: Scene) => Harm,
    mayBreak: readonly Invariant[] = [],
  ): StoreFault => {
    const inflict = (scene: Scene) =>
      watch.during(async () => {
        const { begin, meanwhile, end } = harm(await cluster.leader(), scene);
        await begin();
        try {
          await meanwhile?.();
          await scene.pause(scene.lastsMs);
        } finally {
          await end();
        }
      });
    return storeFault(name, { lastsMs, mayBreak, inflict });
  };
}

/** Its clients reach it still. */
function proxiesCut(cluster: PatroniCluster, watch: FailoverWatch): StoreFault {
  return harming(cluster, watch)('primary cut off', OUTAGE_MS, (node) => {
    const meanwhile = () => cluster.untilFailedOver(node);
    return { begin: () => node.isolate(), meanwhile, end: () => node.rejoin() };
  });
}

function serversOf(cluster: PatroniCluster, watch: FailoverWatch): Servers {
  return {
    homes: cluster.homes,
    lastsMs: OUTAGE_MS,
    primary: async () => (await cluster.leader()).home,
    meanwhile: async (primary) => {
      const node = cluster.nodes.find(({ home }) => home === primary);
      if (node !== undefined) await cluster.untilFailedOver(node);
    },
    around: (fault) => watch.during(fault),
  };
}

function faultsOf(
  cluster: PatroniCluster,
  watch: FailoverWatch,
  split: readonly Invariant[],
): StoreFault[] {
  const fault = harming(cluster, watch);
  // A leader of Patroni 3.0 that wakes in the very moment of a promotion takes the lock back, and
  // its cluster does not heal. So the leader wakes long before that, or after it.
  const failedOver = (node: PatroniNode) => () => cluster.untilFailedOver(node);
  return [
    fault('primary killed', [0, 8_000], (node) => {
      return { begin: () => node.kill(), end: () => node.start() };
    }),
    fault('primary frozen briefly', [300, 2_000], (node) => {
      return { begin: () => node.freeze(), end: () => node.thaw() };
    }),
    fault(
      'primary frozen',
      OUTAGE_MS,
      (node) => {
        const meanwhile = failedOver(node);
        return { begin: () => node.freeze(), meanwhile, end: () => node.thaw() };
      },
      split,
    ),
    // Its Patroni cannot demote it: both servers take writes.
    fault(
      'split primary',
      OUTAGE_MS,
      (node) => {
        const meanwhile = failedOver(node);
        return { begin: () => node.freezePatroni(), meanwhile, end: () => node.thaw() };
      },
      split,
    ),
    fault('standby killed', [0, 4_000], (leader, { pick }) => {
      const standbys = cluster.nodes.filter((node) => node !== leader);
      const standby = oneOf(standbys, pick);
      return { begin: () => standby.kill(), end: () => standby.start() };
    }),
  ];
}

interface Harm {
  readonly begin: () => Promise<unknown>;
  readonly meanwhile?: () => Promise<unknown>;
  readonly end: () => unknown;
}

interface Era {
  readonly timeline: string;
  readonly era: string;
}

/** Compares the store's era before and after a fault, if that has led to another timeline. */
class FailoverWatch {
  readonly #cluster: PatroniCluster;
  readonly #history: HistoryFile;
  readonly #isSynchronous: boolean;

  constructor(cluster: PatroniCluster, history: HistoryFile, isSynchronous: boolean) {
    this.#cluster = cluster;
    this.#history = history;
    this.#isSynchronous = isSynchronous;
  }

  async during(fault: () => Promise<void>): Promise<void> {
    const before = await this.#examined();
    try {
      await fault();
    } finally {
      await this.#cluster.untilHealthy();
      const { timeline: to, era } = await this.#examined();
      const { timeline: from } = before;
      const mustQuarantine = !this.#isSynchronous;
      if (from !== to)
        this.#history.write('nemesis', 'timeline.changed', {
          from,
          to,
          isNewEra: era !== before.era,
          mustQuarantine,
        });
    }
  }

  /** The marker, when some process has compared it with the server. */
  async #examined(): Promise<Era> {
    const leader = await this.#cluster.leader();
    const look = async () => {
      const [row] = await leader.sql<Era & { isCurrent: boolean }>(`
        SELECT era, timeline, timeline = holdfast.timeline()
          AND (synchronous OR NOT ${this.#isSynchronous}) AS "isCurrent" FROM holdfast.marker`);
      return row?.isCurrent === true && row;
    };
    const what = 'a process to examine the server';
    // The next acquire would do this: see `check_era`.
    const compare = `SET search_path = holdfast; SELECT check_era('synchronous')`;
    const how = { what, every: 100 };
    return until(look, { ...how, deadlineMs: EXAMINED_DEADLINE_MS }).catch(async () => {
      if (this.#isSynchronous) await leader.sql(compare);
      return until(look, { ...how, deadlineMs: EXAMINED_DEADLINE_MS });
    });
  }
}
