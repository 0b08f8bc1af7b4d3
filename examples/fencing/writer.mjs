/**
 * Writes an account's balance into PostgreSQL and Redis, under a lease: `node writer.mjs NAME`. Asking the lease is not enough, for a process
 * can be stopped between the answer and the write. So the fence goes along, and what is written to refuses older ones than it has seen.
 */
import { FENCE_GUARD_LUA, fenceSql, fenceStaleFrom, open } from 'holdfast';
import { Redis } from 'ioredis';
import { connect } from './database.mjs';
import { obey } from './orders.mjs';

const [name] = process.argv.slice(2);
const { HOLDFAST_STORE, HOLDFAST_PREFIX: prefix, HOLDFAST_QUARANTINE: quarantine } = process.env;
const holdfast = await open(HOLDFAST_STORE, { name, prefix, quarantine });
const database = await connect(process.env.DATABASE, process.env.SCHEMA);
const redis = process.env.REDIS ? new Redis(process.env.REDIS) : null;

// A column for the fence, beside what it guards: 'fence <= $2' and 'fence = $2'.
const { where, set } = fenceSql('fence', '$2');
const UPDATE = `UPDATE accounts SET balance = $1, ${set} WHERE id = 'account-7' AND ${where}`;

/** A row that does not want it is not changed. */
async function writeRow(balance, fence) {
  const { rowCount } = await database.query(UPDATE, [balance, fence]);
  return rowCount === 1 ? 'written' : 'refused: no row with this fence or an older one';
}

// A key for the fence, beside what it guards, and with the same hash tag.
const KEYS = [`${prefix}{account-7}:fence`, `${prefix}{account-7}:balance`];
const SCRIPT = `${FENCE_GUARD_LUA}
local stale = holdfast_guard(KEYS[1], ARGV[1]); if stale then return stale end
return redis.call('SET', KEYS[2], ARGV[2])`;

async function writeKey(balance, fence) {
  try {
    await redis.eval(SCRIPT, KEYS.length, ...KEYS, fence, balance);
    return 'written';
  } catch (error) {
    const stale = fenceStaleFrom(error, 'account-7', fence);
    if (stale === undefined) throw error;
    return `refused: ${stale.code}, it has seen ${stale.seen}`;
  }
}

/** As it is often done: whoever is late overwrites. */
async function writeUnguarded(balance) {
  await database.query(`UPDATE accounts SET balance = $1 WHERE id = 'unguarded'`, [balance]);
  return 'written';
}

let lease = null;
obey(name, {
  async take() {
    const result = await holdfast.acquire('account-7', { ttl: '2s', wait: '20s' });
    lease = result.lease;
    return { fence: lease.fence };
  },
  async write({ balance, isFrozenFirst }) {
    lease.assertHeld(); // it does not throw …
    if (isFrozenFirst) process.kill(process.pid, 'SIGSTOP'); // … and right here everything stands still
    return {
      isHeld: lease.isHeld(),
      unguarded: await writeUnguarded(balance),
      row: await writeRow(balance, lease.fence),
      key: redis && (await writeKey(balance, lease.fence)),
    };
  },
});
