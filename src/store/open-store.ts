import type { ConnectionOptions as TlsOptions } from 'node:tls';
import type { Clock } from '../base/clock.ts';
import { ConfigError } from '../base/errors.ts';
import type { Emitter } from '../base/events.ts';
import type { Random } from '../base/random.ts';
import { createMemoryStore } from './memory/memory-store.ts';
import { type AdoptableClient, isAdoptable } from './redis/adoptable.ts';
import type { Store } from './store.ts';

export interface OpenStoreOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly prefix?: string;
  readonly quarantine?: 'on' | 'off';
  readonly tls?: TlsOptions;
}

const RULE =
  "a store is 'memory:', 'redis://host:port' (rediss:// for TLS), 'redis+sentinel://host:port,…/name', " +
  "'redis+cluster://host:port,…', a client of node-redis or ioredis, or a store already made";

/** The store for an address, and whether closing it is ours to do. Redis is loaded only where it is asked for. */
export async function openStore(
  store: string | AdoptableClient | Store | undefined,
  options: OpenStoreOptions,
): Promise<{ store: Store; owned: boolean }> {
  if (typeof store === 'object' && store !== null && 'leases' in store)
    return { store, owned: false };
  const scheme = typeof store === 'string' ? /^[a-z+]+:/.exec(store)?.[0] : undefined;
  if (scheme === 'memory:')
    return { store: createMemoryStore({ clock: options.clock }), owned: true };
  if (isAdoptable(store) || (typeof store === 'string' && /^rediss?(\+[a-z]+)?:/.test(store))) {
    const { openRedisStore } = await import('./redis/redis-store.ts');
    return { store: await openRedisStore(store, options), owned: true };
  }
  // An address may hold a password: only its scheme is shown.
  const shown = typeof store === 'string' ? (scheme ?? 'text without a scheme') : store;
  throw new ConfigError({ field: 'store', value: shown, rule: RULE });
}
