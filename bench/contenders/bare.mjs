import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';
import { each, KEPT_MS, PAIR_TTL_MS, timed } from './keeping.mjs';

/** As the keeper of Holdfast sends them. */
const CHUNK = 1_000;
const CHUNKS_IN_FLIGHT = 4;
/** As long as a holder of Holdfast's is. */
const HOLDER = 'bench-1700000000000000000-0123abcd/';

const GRANT = `
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return false end
return redis.call('INCR', KEYS[2])`;

const RELEASE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`;

const RENEW = `
local renewed = 0
for i, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[i + 1] then
    redis.call('PEXPIRE', key, ARGV[1])
    renewed = renewed + 1
  end
end
return renewed`;

/** What no library can do without: one script to grant and count, one to compare and delete, one to renew many. */
export async function openContender(url, clientOptions) {
  const client = createClient({ url, RESP: 2, ...clientOptions });
  await client.connect();
  for (const script of [GRANT, RELEASE, RENEW])
    await client.sendCommand(['SCRIPT', 'LOAD', script]);
  const grant = sha(GRANT);
  const release = sha(RELEASE);
  const holder = `${HOLDER}0`;
  return {
    async pair(key) {
      const lease = `bare:${key}`;
      const granted = [
        'EVALSHA',
        grant,
        '2',
        lease,
        `fence:{${lease}}`,
        holder,
        String(PAIR_TTL_MS),
      ];
      if ((await client.sendCommand(granted)) === null) throw new Error(`${key} is held`);
      const released = await client.sendCommand(['EVALSHA', release, '1', lease, holder]);
      if (released !== 1) throw new Error(`${key} was not released`);
    },
    keep: (keys, everyMs) => keep(client, keys, everyMs),
  };
}

async function keep(client, keys, everyMs) {
  const leases = keys.map((key) => `bare:${key}`);
  const holders = keys.map((_, at) => HOLDER + at.toString(36));
  const set = (at) => client.sendCommand(['SET', leases[at], holders[at], 'PX', String(KEPT_MS)]);
  await each(leases.length, CHUNK, set);
  const renewChunk = async (at) => {
    const chunk = leases.slice(at * CHUNK, (at + 1) * CHUNK);
    const theirs = holders.slice(at * CHUNK, (at + 1) * CHUNK);
    const args = [
      'EVALSHA',
      sha(RENEW),
      String(chunk.length),
      ...chunk,
      String(KEPT_MS),
      ...theirs,
    ];
    const renewed = await client.sendCommand(args);
    if (renewed !== chunk.length) throw new Error(`${renewed} of ${chunk.length} were renewed`);
  };
  const chunks = Math.ceil(leases.length / CHUNK);
  return {
    async renew({ redisCpuUs }) {
      // A keeper's timer fires after a rest, when processors and caches are cold: so does this.
      await sleep(everyMs);
      return timed(redisCpuUs, () => each(chunks, CHUNKS_IN_FLIGHT, renewChunk));
    },
  };
}

function sha(script) {
  return createHash('sha1').update(script).digest('hex');
}
