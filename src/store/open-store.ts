import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../core/clock.ts';
import { ConfigError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import type { Random } from '../core/random.ts';
import { coordinationOnly, offersWork } from './coordination-only.ts';
import { createMemoryStore } from './memory/memory-store.ts';
import type { MaxTtls } from './port/keyspaces.ts';
import type { CoordinationStore, Store } from './port/store.ts';
import { type AdoptablePostgres, isAdoptablePostgres } from './postgres/adoptable.ts';
import { type AdoptableClient, isAdoptable } from './redis/client/adoptable.ts';
import type { RedisLinkOptions } from './redis/client/link-options.ts';

export interface OpenStoreOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly prefix?: string | undefined;
  readonly quarantine?: 'on' | 'off' | undefined;
  readonly sync?: 'everysec' | 'always' | undefined;
  readonly maxTtls?: MaxTtls | null;
  /** False: an SQLite file that does not exist is an error. */
  readonly create?: boolean | undefined;
  /** For a copy alone: also a store with an unfinished copy. */
  readonly unfinished?: boolean | undefined;
  readonly tls?: TlsOptions | undefined;
  readonly redis?: RedisLinkOptions | undefined;
  /** The instance, for the names of its connections in the server's list of clients. */
  readonly instanceId?: string | undefined;
}

const RULE =
  "a store is 'sqlite:path', 'memory:', 'redis://host:port' (rediss:// for TLS), 'redis+sentinel://host:port,…/name', " +
  "'redis+cluster://host:port,…', 'redis+unix:///path', 'postgres://host:port/database', a client of node-redis, ioredis, pg, postgres or PGlite, a store already made, " +
  'or nothing: then it is the file .holdfast/holdfast.db of this folder or the nearest above';

/**
 * The store for an address, and whether closing it is ours to do; without one, the file in
 * `.holdfast` here or in a folder above. SQLite, Redis and PostgreSQL are loaded only
 * where they are asked for.
 */
export async function openStore(
  store: string | AdoptableClient | AdoptablePostgres | CoordinationStore | Store | undefined,
  options: OpenStoreOptions,
): Promise<{ store: Store; owned: boolean }> {
  checkSyncs(store, options);
  checkRedis(store, options);
  if (typeof store === 'object' && store !== null && 'leases' in store)
    return { store: offersWork(store) ? store : coordinationOnly(store), owned: false };
  if (store === undefined) return { store: await openDefaultFile(options), owned: true };
  const scheme = typeof store === 'string' ? /^[a-z+]+:/.exec(store)?.[0] : undefined;
  if (scheme === 'memory:')
    return { store: createMemoryStore({ clock: options.clock }), owned: true };
  if (typeof store === 'string' && scheme === 'sqlite:') {
    const { openSqliteStore } = await import('./sqlite/sqlite-store.ts');
    return { store: await openSqliteStore(pathOf(store), options), owned: true };
  }
  if (isRedis(store)) {
    const { openRedisStore } = await import('./redis/redis-store.ts');
    return { store: await openRedisStore(store, options), owned: true };
  }
  if (isAdoptablePostgres(store) || (typeof store === 'string' && /^postgres(ql)?:/.test(store))) {
    const { openPostgresStore } = await import('./postgres/postgres-store.ts');
    return { store: await openPostgresStore(store, options), owned: true };
  }
  // An address may hold a password: only its scheme is shown.
  const shown = typeof store === 'string' ? (scheme ?? 'text without a scheme') : store;
  throw new ConfigError({ field: 'store', value: shown, rule: RULE });
}

/** A store that does not sync must not be believed to. */
function checkSyncs(store: unknown, { sync }: OpenStoreOptions): void {
  const isSqlite = store === undefined || (typeof store === 'string' && /^sqlite:/.test(store));
  if (sync === undefined || isSqlite) return;
  const rule =
    "it is for SQLite; on Redis, 'appendfsync' of the server decides; on PostgreSQL, every write is on the disk before the call returns";
  throw new ConfigError({ field: 'sync', value: sync, rule });
}

/** An address map or a password for a store that is none would be forgotten without a word. */
function checkRedis(store: unknown, { redis }: OpenStoreOptions): void {
  if (redis === undefined || isRedis(store)) return;
  throw new ConfigError({ field: 'redis', value: redis, rule: 'it is for a store on Redis' });
}

/** Whether a store is the address of a Redis, or a client of one. */
export function isRedis(store: unknown): store is string | AdoptableClient {
  if (typeof store === 'string') return /^(unix|rediss?(\+[a-z]+)?):/.test(store);
  return isAdoptable(store);
}

async function openDefaultFile(options: OpenStoreOptions): Promise<Store> {
  const { openSqliteStore } = await import('./sqlite/sqlite-store.ts');
  const { defaultFile } = await import('./sqlite/file/place.ts');
  return openSqliteStore(defaultFile(process.cwd()), options);
}

/**
 * `sqlite:./a.db`, `sqlite:/a.db` and `sqlite:a.db` are paths as they stand; `sqlite:///a.db` is a
 * URL.
 */
function pathOf(address: string): string {
  const rest = address.slice('sqlite:'.length);
  if (rest === '' || rest.endsWith('/') || rest.includes('\0'))
    throw new ConfigError({
      field: 'store',
      value: address,
      rule: "after 'sqlite:' comes the path of a file, such as sqlite:./holdfast.db or sqlite:///var/lib/app/holdfast.db",
    });
  if (!rest.startsWith('//')) return rest;
  if (!rest.startsWith('///'))
    throw new ConfigError({
      field: 'store',
      value: address,
      rule: 'after sqlite:// comes the path, with a third slash: the file is on this host',
    });
  return fileURLToPath(`file:${rest}`);
}
