import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { type Clock, systemClock } from '../../core/clock.ts';
import { ConfigError } from '../../core/errors.ts';
import { Emitter } from '../../core/events.ts';
import { checkSwitch } from '../../core/options.ts';
import { type Random, systemRandom } from '../../core/random.ts';
import type { BaseRuntime } from '../../core/runtime.ts';
import { DEFAULT_MAX_TTLS, type MaxTtls } from '../port/keyspaces.ts';
import { REMOVALS_KEPT } from '../port/record-store.ts';
import type { Store } from '../port/store.ts';
import { parseAddress, type RedisAddress } from './client/address.ts';
import { adopt } from './client/adopt.ts';
import type { AdoptableClient } from './client/adoptable.ts';
import { type Dialer, endpointDialer } from './client/link.ts';
import type { RedisLinkOptions } from './client/link-options.ts';
import { keysOf } from './keys.ts';
import { ExaminationHistory, type StoreContext } from './quarantine.ts';
import { ClusterClient } from './topology/cluster-client.ts';
import { evaluate } from './topology/cluster-marker.ts';
import { PrimaryServer } from './topology/primary-server.ts';
import { sentinelDialer } from './topology/sentinel-set.ts';
import { type Servers, SingleServer } from './topology/servers.ts';
import { redisBounds } from './verbs/bounds.ts';
import { RedisCopyStore } from './verbs/copy-store.ts';
import { RedisIntents } from './verbs/intents.ts';
import { RedisLeases } from './verbs/leases.ts';
import { redisLog } from './verbs/log.ts';
import { RedisMembers } from './verbs/members.ts';
import { RedisRecords } from './verbs/records.ts';
import { RedisRunStore } from './verbs/run-store.ts';
import { RedisSignals } from './verbs/signals.ts';
import { redisStreams } from './verbs/streams.ts';
import { WorkConnection } from './verbs/work-connection.ts';
import { RedisWorkflows } from './verbs/workflows.ts';

export interface RedisStoreOptions {
  /**
   * Put before every key; default none. Two Holdfasts see each other's leases if they have the same
   * one.
   */
  prefix?: string | undefined;
  /**
   * `off` only where a second owner for one TTL after a restart does no harm: development, tests.
   */
  quarantine?: 'on' | 'off' | undefined;
  /**
   * How long leases may last, per keyspace; the same for every client of the store. Null for one
   * that takes none.
   */
  maxTtls?: MaxTtls | null;
  /**
   * Whether a store that has not been used yet is prepared for use; default: yes, unless this
   * client takes no leases.
   */
  create?: boolean | undefined;
  /** For a copy alone: also a store with an unfinished copy. */
  unfinished?: boolean | undefined;
  /** For rediss URLs: what `node:tls` needs beyond the host's own certificates. */
  tls?: TlsOptions | undefined;
  /** For URLs: how to reach the servers. */
  redis?: RedisLinkOptions | undefined;
  /** The instance, for the names of its connections in CLIENT LIST. */
  instanceId?: string | undefined;
  clock?: Clock;
  random?: Random;
  events?: Emitter;
  /**
   * How many removals a collection of records remembers. For tests, which want to see what happens
   * beyond.
   */
  removalsKept?: number;
}

const EXAMINE_TIMEOUT_MS = 5_000;
const ADOPTED_RULE =
  'it is for a URL. A client brings its own credentials and addresses: pass them to the client';

/**
 * Redis 6.2 or later, or Valkey: by its URL (one server, sentinels or a Cluster), or through a
 * client that is already there. Connects and examines every server before it resolves.
 */
export async function openRedisStore(
  from: string | AdoptableClient,
  options: RedisStoreOptions = {},
): Promise<Store> {
  return openOn(options, (rt, context) => serversFor(rt, context, from, options));
}

/** As above, over the links of another dialer. For the simulator, which has its own network. */
export async function openRedisStoreOn(
  dialer: Dialer,
  options: Omit<RedisStoreOptions, 'tls' | 'redis' | 'instanceId'> = {},
): Promise<Store> {
  return openOn(options, (rt, context) => singleServer(rt, context, dialer));
}

async function openOn(
  options: RedisStoreOptions,
  serversIn: (rt: BaseRuntime, context: StoreContext) => Servers,
): Promise<Store> {
  const { clock = systemClock, random = systemRandom, events = new Emitter() } = options;
  const { prefix = '', quarantine: mode = 'on', maxTtls = DEFAULT_MAX_TTLS } = options;
  const { removalsKept = REMOVALS_KEPT, create: mayCreate = maxTtls !== null } = options;
  const { unfinished = false } = options;
  checkSwitch(mode, 'quarantine');
  const rt: BaseRuntime = { clock, random, events };
  const keys = keysOf(prefix);
  const servers = serversIn(rt, {
    marker: keys.marker,
    mode,
    maxTtls,
    mayCreate,
    unfinished,
    remembered: new ExaminationHistory(),
    warned: new Set(),
  });
  const signals = new RedisSignals(rt, keys, servers);
  const work = new WorkConnection(rt, keys, servers);
  const records = new RedisRecords(rt, keys, servers, removalsKept);
  const store: Store = {
    name: servers.name,
    leases: new RedisLeases(rt, keys, servers, maxTtls),
    members: new RedisMembers(rt, keys, servers),
    records,
    signals,
    log: redisLog(keys, servers),
    streams: redisStreams(work),
    workflows: new RedisWorkflows(work),
    intents: new RedisIntents(work),
    runs: new RedisRunStore(work),
    bounds: redisBounds(servers, keys.marker),
    copies: new RedisCopyStore(servers, work, records),
    examine: async () => ({
      store: servers.name,
      findings: await servers.examine(EXAMINE_TIMEOUT_MS),
    }),
    close: async () => void (await Promise.all([signals.close(), servers.close()])),
  };
  try {
    await servers.open();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

function serversFor(
  rt: BaseRuntime,
  context: StoreContext,
  from: string | AdoptableClient,
  { tls, redis, instanceId }: RedisStoreOptions,
): Servers {
  const clientName = instanceId === undefined ? undefined : clientNameOf(instanceId);
  if (typeof from !== 'string') {
    if (redis !== undefined)
      throw new ConfigError({ field: 'redis', value: redis, rule: ADOPTED_RULE });
    return singleServer(rt, context, adopt(from, rt.clock, clientName));
  }
  const address = parseAddress(from, { tls, link: redis, clientName });
  if (address.kind === 'cluster') return new ClusterClient(rt, address, context);
  return singleServer(rt, context, dialerFor(rt, address));
}

function dialerFor({ clock }: BaseRuntime, address: RedisAddress): Dialer {
  if (address.kind === 'sentinel') return sentinelDialer(address, clock);
  const { socketPath } = address;
  const [endpoint] = socketPath === '' ? address.endpoints : [{ path: socketPath }];
  if (endpoint === undefined) throw new TypeError('an address has an endpoint');
  return endpointDialer(address.name, endpoint, address.credentials);
}

/** Redis refuses spaces and control characters in a name. */
function clientNameOf(instanceId: string): string {
  return `holdfast:${instanceId.replace(/[^!-~]/g, '_')}`;
}

function singleServer(rt: BaseRuntime, context: StoreContext, dialer: Dialer): Servers {
  const primary = new PrimaryServer(rt, dialer, context, {
    topology: 'single',
    address: '',
    onMarker: evaluate,
    onDisconnected: () => {},
  });
  return new SingleServer(rt, primary, context.maxTtls);
}
