/**
 * Who is measured. Each runs in a process of its own (`child.mjs`), opened by its module's `openContender(url, client)`
 * with one client, and set up the fastest way its documentation knows for a single Redis. A module returns:
 *
 *     pair(key)             acquires and releases one key nobody else wants
 *     wait(key), release    for handovers; waiting is at the library's defaults
 *     keep(keys, everyMs)   holds many keys: `{ renew({ lanes, redisCpuUs }) → { ms, redisUs } }`; who renews by
 *                           itself does it every so often
 *     pool(name, slots)     for those who have a counting semaphore: `{ acquire(), release(held) }`; acquire waits
 *     claims(key, ttlMs)    what says "I still hold it": `[{ label, believes(), untilMs }]`
 *
 * `retryMs` is how often a waiter of this library asks: a handover begins at a random moment of that.
 */
const MODULES = {
  holdfast: { load: () => import('./contenders/holdfast.mjs'), retryMs: 5 },
  redlock: { load: () => import('./contenders/redlock.mjs'), retryMs: 200 },
  'redis-semaphore': { load: () => import('./contenders/redis-semaphore.mjs'), retryMs: 10 },
  'redlock-universal': { load: () => import('./contenders/redlock-universal.mjs'), retryMs: 100 },
  bare: { load: () => import('./contenders/bare.mjs'), retryMs: 0 },
  pg: { load: () => import('./contenders/pg.mjs'), retryMs: 0 },
};

const CLIENTS = {
  plain: {},
  /** ioredis: sends what comes in one turn of the event loop together. Neither is always the faster one. */
  pipelining: { enableAutoPipelining: true },
  /** node-redis: without the AbortSignal it makes for every command to time it out while it waits to be sent. */
  untimed: { commandOptions: { timeout: 0 } },
};

export const OURS = { name: 'holdfast', client: 'plain' };
/** No library: node-redis, and the scripts that no library can do without. */
export const BARE = { name: 'bare', client: 'plain' };
export const BARE_UNTIMED = { name: 'bare', client: 'untimed' };
export const PEERS = ['redlock', 'redis-semaphore', 'redlock-universal'].map((name) => {
  return { name, client: 'plain' };
});
/** No library: pg, and one statement to lock and one to unlock, as people write them by hand. */
export const BY_HAND = { name: 'pg', client: 'plain' };
/** A peer's figure is that of its better client. */
export const PEERS_WITH_EVERY_CLIENT = PEERS.flatMap((peer) => [
  peer,
  { ...peer, client: 'pipelining' },
]);

export function retryMs({ name }) {
  return MODULES[name].retryMs;
}

export async function openContender({ name, client }, url) {
  const module = await MODULES[name].load();
  return module.openContender(url, CLIENTS[client]);
}
