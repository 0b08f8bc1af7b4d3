// The lock that people write first, whose faults a soak must find: SET NX PX, PEXPIRE and DEL without a check of the holder,
// and a flag that says "mine" until the next renewal. A counter is its fence.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';
import { Beliefs, chanceOf } from './soak-beliefs.mjs';

const { name, store, keys, seed, file, forMs } = JSON.parse(process.argv[2]);
const TTL_MS = 600;
const chance = chanceOf(seed);
const beliefs = new Beliefs(file, name);
const counts = { granted: 0, refused: 0, failed: 0 };
const redis = createClient({ url: store });
redis.on('error', () => {});
await redis.connect();
process.send?.({ kind: 'ready' });
const endMs = performance.now() + forMs;
while (performance.now() < endMs)
  await once(keys[Math.floor(chance() * keys.length)]).catch(() => counts.failed++);
beliefs.flush();
appendFileSync(`${file}.counts`, JSON.stringify(counts));
process.exit();

async function once(key) {
  const expiration = { type: 'PX', value: TTL_MS };
  if ((await redis.set(key, name, { condition: 'NX', expiration })) === null) {
    counts.refused++;
    return sleep(chance() * 30);
  }
  counts.granted++;
  const lock = { holder: name, fence: await redis.incr(`fence:${key}`) };
  const untilMs = performance.now() + chance() * 1_500;
  for (let renewMs = 0; performance.now() < untilMs; ) {
    beliefs.check(lock, key, () => {});
    if (performance.now() > renewMs) {
      renewMs = performance.now() + TTL_MS / 3;
      await redis.pExpire(key, TTL_MS);
    }
    await sleep(2);
  }
  beliefs.end(lock);
  await redis.del(key);
}
