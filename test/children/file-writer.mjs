// Takes and lets go of leases of a store as fast as it can, and says every fence it got, until somebody kills it.
import { open } from 'holdfast';
import { say } from './parent.mjs';

const [url, name, keys] = process.argv.slice(2);

const holdfast = await open(url, { name });
for (let n = 0; ; n++) {
  try {
    const key = `k${n % Number(keys)}`;
    const result = await holdfast.acquire(key, { ttl: 2_000 });
    if (!result.ok) continue;
    say({ event: 'granted', key, fence: result.lease.fence });
    await holdfast.records.put(`r${n % 50}`, { n, text: 'x'.repeat(500) });
    await result.lease.release();
  } catch (error) {
    // On a busy machine whoever holds the lock may not get to run for a while.
    if (error.code !== 'STORE_UNREACHABLE') throw error;
  }
}
