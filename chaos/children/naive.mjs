// The lock that people write first, whose faults the harness must find: SET NX PX, then PEXPIRE and DEL without a check
// of the holder, and a flag that says "mine" until an error says otherwise. A counter is its fence.
import { createClient, createSentinel } from 'redis';
import { detour } from './detour.mjs';
import { identify, obey, record, say, settings, work } from './work.mjs';

const TICK_SHARE = 1 / 3;
const SENTINEL_URL = /^redis\+sentinel:\/\/(.+):(.+)@(.+)\/(.+)$/;

detour(settings.ports);

const id = `${settings.name}-${process.pid}`;
identify(id);
const redis = clientOf(settings.url);
redis.on('error', () => {});
await redis.connect();

function clientOf(url) {
  const [, username, password, hosts, name] = SENTINEL_URL.exec(url) ?? [];
  if (hosts === undefined) return createClient({ url });
  const sentinelRootNodes = hosts.split(',').map((one) => {
    const [host, port] = one.split(':');
    return { host, port: Number(port) };
  });
  return createSentinel({ name, sentinelRootNodes, nodeClientOptions: { username, password } });
}

/** Target → fence, of what it believes is its own. */
const mine = new Map();
const polling = new Set();
const leaseKey = (target) => `poll:lease:${target}`;

async function beat() {
  await redis.set(`poll:node:${id}`, '1', { expiration: { type: 'PX', value: settings.ttlMs } });
}

/** The seeds' formula: the member with the highest hash of both names. */
function preferred(target, members) {
  const weight = (member) => {
    let hash = 0xcbf29ce484222325n;
    for (const byte of Buffer.from(member + target))
      hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
    return hash;
  };
  return members.reduce((best, member) => (weight(member) > weight(best) ? member : best), id);
}

async function acquire(target) {
  const expiration = { type: 'PX', value: settings.ttlMs };
  const isMine = await redis.set(leaseKey(target), id, { condition: 'NX', expiration });
  if (isMine === null) return;
  const fence = await redis.incr(`poll:fence:${target}`);
  mine.set(target, fence);
  record('lease.acquired', { target, fence, deadlineMs: null });
}

async function renew(target, fence) {
  if (await redis.pExpire(leaseKey(target), settings.ttlMs)) return;
  mine.delete(target);
  record('lease.lost', { target, fence, reason: 'expired' });
}

async function release(target, fence) {
  mine.delete(target);
  record('lease.releasing', { target, fence });
  await redis.del(leaseKey(target));
}

async function tick() {
  await beat();
  const keys = await redis.keys('poll:node:*');
  const members = keys.map((key) => key.slice('poll:node:'.length));
  for (const target of settings.targets) {
    const fence = mine.get(target);
    const isPreferred = preferred(target, members) === id;
    if (fence === undefined && isPreferred) await acquire(target);
    else if (fence !== undefined && (isPreferred || polling.has(target)))
      await renew(target, fence);
    else if (fence !== undefined) await release(target, fence);
  }
}

async function poll(target, fence) {
  polling.add(target);
  await work(target, { fence, mayAct: () => {} }).catch(() => {});
  polling.delete(target);
}

let isTicking = false;
setInterval(() => {
  if (isTicking) return;
  isTicking = true;
  tick()
    .catch(() => {})
    .finally(() => {
      isTicking = false;
    });
}, settings.ttlMs * TICK_SHARE);
setInterval(() => {
  for (const [target, fence] of mine) if (!polling.has(target)) void poll(target, fence);
}, settings.everyMs);

obey(async () => {
  for (const [target, fence] of [...mine]) await release(target, fence).catch(() => {});
});
say({ event: 'ready', id });
