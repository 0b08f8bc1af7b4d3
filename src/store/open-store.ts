import type { Clock } from '../base/clock.ts';
import { ConfigError } from '../base/errors.ts';
import type { Emitter } from '../base/events.ts';
import type { Random } from '../base/random.ts';
import { createMemoryStore } from './memory/memory-store.ts';
import type { Store } from './store.ts';

export interface OpenStoreOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly prefix?: string;
  readonly quarantine?: 'on' | 'off';
}

const RULE =
  "a store is 'memory:', 'redis://host:port', 'rediss://host:port', or a store already made";

/** The store for an address, and whether closing it is ours to do. Redis is loaded only where it is asked for. */
export async function openStore(
  store: string | Store,
  options: OpenStoreOptions,
): Promise<{ store: Store; owned: boolean }> {
  if (typeof store === 'object' && store !== null && 'leases' in store)
    return { store, owned: false };
  if (typeof store !== 'string')
    throw new ConfigError({ field: 'store', value: store, rule: RULE });
  const scheme = /^[a-z+]+:/.exec(store)?.[0];
  if (scheme === 'memory:')
    return { store: createMemoryStore({ clock: options.clock }), owned: true };
  if (scheme === 'redis:' || scheme === 'rediss:') {
    const { openRedisStore } = await import('./redis/redis-store.ts');
    return { store: await openRedisStore(store, options), owned: true };
  }
  // An address may hold a password: only its scheme is shown.
  throw new ConfigError({ field: 'store', value: scheme ?? 'text without a scheme', rule: RULE });
}
