import type { OpenOptions } from '../holdfast.ts';
import { Holdfast } from '../holdfast.ts';
import type { Store } from '../store/port/store.ts';
import type { AdoptableClient } from '../store/redis/client/adoptable.ts';

/** Where locks are kept: anything that `open` accepts, or an opened Holdfast. */
export type RedlockClient = AdoptableClient | Store | string | Holdfast;

/** The clients, each once. A string is one client, not an iterable of characters. */
export function clientsOf(given: Iterable<RedlockClient> | Holdfast): Set<RedlockClient> {
  const isOne = typeof given === 'string' || given instanceof Holdfast;
  return new Set(isOne ? [given] : given);
}

/** Like redlock's keys, ours get the client's `keyPrefix`. */
export function prefixOf(client: RedlockClient): Pick<OpenOptions, 'prefix'> {
  if (typeof client !== 'object' || !('options' in client)) return {};
  const { keyPrefix } = client.options as { keyPrefix?: unknown };
  return typeof keyPrefix === 'string' && keyPrefix !== '' ? { prefix: keyPrefix } : {};
}

/** Closes the client, as redlock does. */
export async function quitClient(client: RedlockClient): Promise<void> {
  if (typeof client !== 'object' || !('quit' in client) || typeof client.quit !== 'function')
    return;
  // node-redis refuses to quit a client that was never connected.
  if ('isOpen' in client && client.isOpen === false) return;
  await client.quit();
}
