import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { SimRedis } from '../../testing/sim-redis/server.ts';
import { simDialer } from '../support/sim-link.ts';

const CALL = { timeoutMs: 1_000 };
const KEY = 'lease:k';

/** A store on a simulated Redis, and a second connection that runs plain commands on the same server. */
async function openSim() {
  const clock = new FakeClock();
  const random = seededRandom(1);
  const parts = { wallMs: () => clock.wallMs(), nowMs: () => clock.monotonicMs(), random };
  const server = new SimRedis(parts);
  const store = await openRedisStoreOn(simDialer(server), { quarantine: 'off', clock, random });
  const client = server.connect(() => {});
  const run = (...args: string[]) => server.execute(client, args);
  const acquire = (holder: string, more: { fence?: number; ttlMs?: number } = {}) => {
    const { ttlMs = 5_000, ...presented } = more;
    const call = { ...CALL, ttlMs, inbox: 'inbox' };
    return store.leases.acquire([{ key: KEY, holder, ...presented }], call);
  };
  return { clock, store, run, acquire };
}

describe('a lease key without expiry, which another program wrote', () => {
  it('K-02 gets an expiry when the holder it names renews', async () => {
    const { store, run } = await openSim();
    run('SET', KEY, 'a');
    const renewed = await store.leases.renew([{ key: KEY, holder: 'a' }], {
      ...CALL,
      ttlMs: 5_000,
    });
    expect(renewed).toEqual([{ kind: 'renewed' }]);
    expect(run('PTTL', KEY)).toBe(5_000);
  });

  it('K-01 gets an expiry when the holder it names acquires', async () => {
    const { run, acquire } = await openSim();
    run('SET', KEY, 'a');
    expect(await acquire('a')).toMatchObject([{ kind: 'granted' }]);
    expect(run('PTTL', KEY)).toBe(5_000);
  });

  it('K-01 stays as it is when another holder asks', async () => {
    const { run, acquire } = await openSim();
    run('SET', KEY, 'a');
    const busy = { kind: 'busy', holder: 'a', expiresInMs: Number.POSITIVE_INFINITY };
    expect(await acquire('b')).toMatchObject([busy]);
    expect(run('PTTL', KEY)).toBe(-1);
  });
});

describe('the fence record of a lease that is held for long', () => {
  it('K-03 is kept by a renewal that says so, and lasts longer than the lease', async () => {
    const { clock, store, run, acquire } = await openSim();
    const [granted] = await acquire('a', { ttlMs: 80_000_000 });
    await clock.advance(70_000_000);
    const call = { ...CALL, ttlMs: 80_000_000, keepFences: true };
    await store.leases.renew([{ key: KEY, holder: 'a' }], call);
    await clock.advance(60_000_000);
    expect(run('PTTL', 'fence:{lease:k}')).toBeGreaterThan(Number(run('PTTL', KEY)));
    expect(await store.leases.read([KEY], CALL)).toMatchObject([
      { kind: 'held', fence: granted?.kind === 'granted' ? granted.fence : 0 },
    ]);
  });

  it('K-03 is left alone where another program wrote it', async () => {
    const { store, run } = await openSim();
    run('SET', KEY, 'a');
    run('SET', 'fence:{lease:k}', 'somebody’s');
    const call = { ...CALL, ttlMs: 5_000, keepFences: true };
    expect(await store.leases.renew([{ key: KEY, holder: 'a' }], call)).toEqual([
      { kind: 'renewed' },
    ]);
    expect(run('PTTL', 'fence:{lease:k}')).toBe(-1);
  });
});
