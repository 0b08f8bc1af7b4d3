/**
 * Opens a store, and the leases on it. `open()` builds all the rest on that. `holdfast run` needs
 * no more than this, and so loads no more.
 */
import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { type Clock, systemClock } from './core/clock.ts';
import { StoreUnsuitableError } from './core/errors.ts';
import { Emitter, type EventName, type Listener } from './core/events.ts';
import { instanceId } from './core/ids.ts';
import { type Random, systemRandom } from './core/random.ts';
import type { TargetIds } from './fleet/targets/target-record.ts';
import type { KindDeclarations } from './intents/kind.ts';
import { Leases } from './lease/leases.ts';
import { openStore } from './store/open-store.ts';
import {
  boundsProblem,
  type MaxTtlOption,
  type MaxTtls,
  readMaxTtl,
} from './store/port/keyspaces.ts';
import type { CoordinationStore, Store } from './store/port/store.ts';
import type { AdoptablePostgres } from './store/postgres/adoptable.ts';
import type { AdoptableClient } from './store/redis/client/adoptable.ts';
import type { RedisLinkOptions } from './store/redis/client/link-options.ts';
import type { Runtime } from './store/runtime.ts';
import { diagnosticsPublisher } from './telemetry/diagnostics.ts';
import { findTracing } from './telemetry/open-telemetry.ts';

export type StoreArgument =
  | string
  | AdoptableClient
  | AdoptablePostgres
  | CoordinationStore
  | Store
  | undefined;

export interface OpenOptions {
  /** The readable part of this instance's id. Default: the host's name. */
  name?: string | undefined;
  /** A text before every key in the store. Default: none. */
  prefix?: string | undefined;
  /**
   * `off` skips the time without new grants after the store lost data. Use it only where two
   * holders of one lease for up to one TTL do no harm.
   */
  quarantine?: 'on' | 'off' | undefined;
  /**
   * The longest TTL of a lease: one for all keyspaces, or one for each. Default `{ lease: '30s',
   * poll: '30s', workflow: '5m' }`. Every process of a store needs the same bounds. After the store
   * lost data, it grants no new lease for this long and a second.
   */
  maxTtl?: MaxTtlOption | undefined;
  /**
   * SQLite only. When records, streams, workflows, intents and the log reach the disk, so that they
   * survive a power failure: within a second (`everysec`, the default), or before the call returns
   * (`always`).
   */
  sync?: 'everysec' | 'always' | undefined;
  /**
   * Only read and steer, and take no lease. Such a process need not know the store's `maxTtl`. It
   * leaves a Redis that no process has used yet as it is, unless `create` is `true`.
   */
  observe?: boolean | undefined;
  /**
   * `false`: a store that does not exist is a `STORE_UNREACHABLE` error: a SQLite file that is not
   * there, a Redis that no process has used yet (with `observe` it counts as empty). Default
   * `true`.
   */
  create?: boolean | undefined;
  /** `uuid`: the id of a target must be a UUID. Default `any`: every safe id. */
  sessionIds?: TargetIds | undefined;
  /** Declares the kinds of sessions that intents start, by name. See `KindOptions`. */
  kinds?: KindDeclarations | undefined;
  /**
   * Whether the events of this instance go into the log that all instances share. Default: only if
   * this instance has a poller or a worker, or accepts intents.
   */
  history?: 'on' | 'off' | undefined;
  /** Listeners from the start. Events during `open` are over when it resolves. */
  on?: { [N in EventName]?: Listener<N> } | undefined;
  /** For `rediss:` addresses: options for `node:tls`, such as your own certificates. */
  tls?: TlsOptions | undefined;
  /** For addresses of Redis: passwords that rotate, and servers behind NAT. */
  redis?: RedisLinkOptions | undefined;
  clock?: Clock | undefined;
  random?: Random | undefined;
}

export interface OpenedLeases {
  readonly rt: Runtime;
  readonly leases: Leases;
  /** False for a store that the caller opened, and closes. */
  readonly ownsStore: boolean;
}

export async function openLeases(
  store: StoreArgument,
  options: OpenOptions,
): Promise<OpenedLeases> {
  const { clock = systemClock, random = systemRandom, observe = false } = options;
  const maxTtls = readMaxTtl(options.maxTtl);
  const ownId = instanceId(random, clock.startedAtMs, options.name);
  const events = new Emitter(diagnosticsPublisher(ownId));
  for (const [name, listener] of Object.entries(options.on ?? {}))
    events.on(name as EventName, listener as Listener<EventName>);
  const opened = await openStore(store, {
    clock,
    random,
    events,
    prefix: options.prefix,
    quarantine: options.quarantine,
    sync: options.sync,
    maxTtls: observe ? null : maxTtls,
    tls: options.tls,
    redis: options.redis,
    instanceId: ownId,
    create: options.create,
  });
  const rt: Runtime = {
    store: opened.store,
    clock,
    random,
    events,
    tracing: await findTracing(),
    instanceId: ownId,
  };
  const bounds = opened.owned ? maxTtls : boundsOf(opened.store, options.maxTtl, maxTtls);
  return { rt, leases: new Leases(rt, observe ? null : bounds), ownsStore: opened.owned };
}

/** The bounds of a store that the caller opened. Refuses a `maxTtl` that differs from them. */
function boundsOf(store: Store, given: MaxTtlOption | undefined, own: MaxTtls): MaxTtls {
  const { maxTtls } = store.leases;
  const problem = given === undefined || maxTtls === undefined ? null : boundsProblem(maxTtls, own);
  if (problem !== null) throw new StoreUnsuitableError({ store: store.name, problems: [problem] });
  return maxTtls ?? own;
}
