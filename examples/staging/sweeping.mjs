/** Removes from a Redis what an example has put there. */
import { Redis } from 'ioredis';

/** How many keys are asked for at once. */
const PAGE = 1_000;

/** Whatever has this prefix in its name, which nobody else uses. Other stores than a single Redis are left as they are. */
export async function sweep(store = '', prefix = '') {
  if (!/^rediss?:/.test(store) || prefix === '') return;
  const redis = new Redis(store, {
    lazyConnect: true,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
  });
  redis.on('error', () => {});
  // One that could not be reached has nothing of ours, and whoever tried has said so.
  if (
    !(await redis.connect().then(
      () => true,
      () => false,
    ))
  )
    return;
  // Not at the beginning alone: where keys have to lie together it is inside of braces.
  for await (const keys of redis.scanStream({ match: `*${prefix}*`, count: PAGE }))
    if (keys.length > 0) await redis.unlink(...keys);
  redis.disconnect();
}
