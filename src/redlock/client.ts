import type { OpenOptions } from '../holdfast.ts';
import { Holdfast } from '../holdfast.ts';
import type { Store } from '../store/port/store.ts';
import type { AdoptableClient } from '../store/redis/client/adoptable.ts';

/** What locks can be kept on: whatever `open` takes, or a Holdfast that is open. */
export type RedlockClient = AdoptableClient | Store | string | Holdfast;

/** All that was given, each once. A string would fall into its letters. */
export function clientsOf(given: Iterable<RedlockClient> | Holdfast): Set<RedlockClient> {
  const isOne = typeof given === 'string' || given instanceof Holdfast;
  return new Set(isOne ? [given] : given);
}

/** As redlock's keys, ours stand behind what the client puts before all of its keys. */
export function prefixOf(client: RedlockClient): Pick<OpenOptions, 'prefix'> {
  if (typeof client !== 'object' || !('options' in client)) return {};
  const { keyPrefix } = client.options as { keyPrefix?: unknown };
  return typeof keyPrefix === 'string' && keyPrefix !== '' ? { prefix: keyPrefix } : {};
}

/** Closes what was given to us, as redlock does. */
export async function quitClient(client: RedlockClient): Promise<void> {
  if (typeof client !== 'object' || !('quit' in client) || typeof client.quit !== 'function')
    return;
  // node-redis refuses to end what was never begun.
  if ('isOpen' in client && client.isOpen === false) return;
  await client.quit();
}
