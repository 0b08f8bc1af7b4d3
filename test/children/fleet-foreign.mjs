// Another implementation of the same protocol, that knows only what the seeds say: their keys, their two scripts and
// their hash. It knows no fences and no quarantine, believes in a lease until its own clock says that it must have run
// out, and lets go of what it is not preferred for.
//
//   fleet-foreign.mjs REDIS_URL {"ttlMs": 3000, "everyMs": 200}
import { hostname } from 'node:os';
import { createInterface } from 'node:readline';
import { createClient } from 'redis';
import { pollTarget } from './fleet-poll.mjs';
import { hostMs, say } from './parent.mjs';

const RENEW = `if redis.call("GET", KEYS[1]) == ARGV[1] then
  return redis.call("PEXPIRE", KEYS[1], ARGV[2])
else
  return 0
end`;
const RELEASE = `if redis.call("GET", KEYS[1]) == ARGV[1] then
  return redis.call("DEL", KEYS[1])
else
  return 0
end`;

const [url, text = '{}'] = process.argv.slice(2);
const { ttlMs = 3_000, everyMs = 200 } = JSON.parse(text);
/** It stops believing this long before the TTL, so that a poll under way does not outlive the lease. */
const MARGIN_MS = 500;

const suffix = process.hrtime.bigint().toString(16).slice(-8).padStart(8, '0');
const instance = `${hostname()}-${BigInt(Date.now()) * 1_000_000n}-${suffix}`;
const redis = await createClient({ url }).connect();
redis.on('error', () => {});

/** When the last confirmed acquire or renewal of each lease was sent. */
const owned = new Map();
const polling = new Set();
let isStopping = false;

const isHeld = (id) => hostMs() < (owned.get(id) ?? Number.NEGATIVE_INFINITY) + ttlMs - MARGIN_MS;

async function scan(prefix) {
  const found = [];
  for await (const names of redis.scanIterator({ MATCH: `${prefix}*`, COUNT: 200 }))
    for (const name of [names].flat()) found.push(name.slice(prefix.length));
  return [...new Set(found)];
}

/** FNV-1a, 64 bit, of the two ids one after the other: the seeds' formula. */
function weigh(node, id) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(node + id))
    hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  return hash;
}

function preferredOwner(id, nodes) {
  return nodes.reduce((best, node) => (weigh(node, id) > weigh(best, id) ? node : best));
}

async function renew(id) {
  const sentMs = hostMs();
  const keys = [`poll:lease:${id}`];
  const isOurs = await redis.eval(RENEW, { keys, arguments: [instance, String(ttlMs)] });
  if (isOurs) owned.set(id, sentMs);
  else owned.delete(id);
}

async function acquire(id) {
  const sentMs = hostMs();
  const reply = await redis.set(`poll:lease:${id}`, instance, { NX: true, PX: ttlMs });
  if (reply === 'OK') owned.set(id, sentMs);
}

async function release(id) {
  // A poll under way is over first: then nobody sees two.
  if (polling.has(id)) return;
  owned.delete(id);
  await redis.eval(RELEASE, { keys: [`poll:lease:${id}`], arguments: [instance] });
}

async function sessions() {
  const found = new Map();
  for (const id of await scan('session:')) {
    const value = JSON.parse((await redis.get(`session:${id}`)) ?? 'null');
    if (value !== null && !value.isPaused) found.set(id, value);
  }
  return found;
}

let targets = new Map();

async function tick() {
  await redis.set(`poll:node:${instance}`, '1', { PX: ttlMs });
  const nodes = await scan('poll:node:');
  targets = await sessions();
  for (const id of [...owned.keys()]) await renew(id);
  for (const id of targets.keys()) {
    const isPreferred = preferredOwner(id, nodes) === instance;
    if (isPreferred && !owned.has(id)) await acquire(id);
    if (!isPreferred && owned.has(id)) await release(id);
  }
  for (const id of [...owned.keys()]) if (!targets.has(id)) await release(id);
}

/** What is to be done every so often, one after the other; what fails is tried again the next time. */
async function loop(ms, step) {
  while (!isStopping) {
    await step().catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, ms));
  }
}

async function poll(id) {
  polling.add(id);
  const { url: at } = targets.get(id);
  await pollTarget(at, { instance }).catch(() => {});
  polling.delete(id);
}

async function pollAll() {
  for (const id of owned.keys())
    if (isHeld(id) && targets.has(id) && !polling.has(id)) void poll(id);
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { do: what } = JSON.parse(line);
  if (what === 'status') say({ event: 'status', owned: [...owned.keys()].filter(isHeld) });
});

process.once('SIGTERM', async () => {
  isStopping = true;
  await Promise.all([ticking, pollingAll]);
  while (polling.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  for (const id of [...owned.keys()]) await release(id);
  await redis.del(`poll:node:${instance}`);
  process.exit(0);
});

await tick();
say({ event: 'ready', id: instance });
say({ event: 'started', atMs: hostMs() });
const ticking = loop(ttlMs / 6, tick);
const pollingAll = loop(everyMs, pollAll);
