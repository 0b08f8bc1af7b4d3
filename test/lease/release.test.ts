import { describe, expect, it } from 'vitest';
import { world } from '../support/world.ts';

const CALL = { timeoutMs: 1_000 };
const KEY = 'lease:k';

async function holder() {
  const { clock, store, actor } = world();
  const parts = await actor();
  const lease = await parts.take('k', { ttl: '3s' });
  const tenancy = { key: KEY, holder: lease.holder, fence: lease.fence };
  /** Ends the lease in the store, of which its holder does not know. */
  const free = () => store.leases.release([tenancy], CALL);
  const grant = (name: string) =>
    store.leases.acquire([{ key: KEY, holder: name }], { ...CALL, ttlMs: 9_000, inbox: 'i' });
  const read = async () => (await store.leases.read([KEY], CALL))[0];
  return { clock, store, lease, free, grant, read, ...parts };
}

/** What comes of a promise within a second. */
async function soon<T>(clock: { advance(ms: number): Promise<void> }, promise: Promise<T>) {
  await clock.advance(1_000);
  return promise;
}

describe('a release that finds another state in the store', () => {
  it('K-08 is told that the lease had expired, where the key is free', async () => {
    const { clock, lease, free } = await holder();
    await free();
    expect(await soon(clock, lease.release())).toEqual({ released: false, reason: 'expired' });
    expect(lease.state).toBe('lost');
  });

  it('K-08 is told that it was taken over, where another holder has the key, and leaves that one alone', async () => {
    const { clock, lease, free, grant, read, names } = await holder();
    await free();
    await grant('b');
    const result = await soon(clock, lease.release());
    expect(result).toEqual({ released: false, reason: 'taken_over' });
    expect(await read()).toMatchObject({ kind: 'held', holder: 'b' });
    expect(names()).not.toContain('lease.returned');
  });

  it('K-03 releases a later grant to the same holder that nobody knows of', async () => {
    const { clock, lease, free, grant, read, names } = await holder();
    await free();
    await grant(lease.holder);
    const result = await soon(clock, lease.release());
    expect(result).toEqual({ released: false, reason: 'taken_over' });
    await clock.advance(1_000);
    expect(await read()).toMatchObject({ kind: 'free' });
    expect(names()).toContain('lease.returned');
  });

  it('K-08 keeps no key, and hands over none, that the store does not have', async () => {
    const kept = await holder();
    await kept.free();
    const keeping = kept.lease.release({ keepFor: '2s' });
    expect(await soon(kept.clock, keeping)).toEqual({ released: false, reason: 'expired' });
    const given = await holder();
    await given.free();
    const giving = given.lease.transfer('b');
    expect(await soon(given.clock, giving)).toEqual({ transferred: false, reason: 'expired' });
  });
});

describe('a release', () => {
  it('B-05 keeps the key under a name that no process has', async () => {
    const { clock, lease, read } = await holder();
    expect(await soon(clock, lease.release({ keepFor: '2s' }))).toEqual({ released: true });
    expect(await read()).toMatchObject({ kind: 'held', holder: `${lease.holder} (kept)` });
    await clock.advance(1_100);
    expect(await read()).toMatchObject({ kind: 'free' });
  });

  it('K-08 waits for its work for as long as that takes, and renews meanwhile', async () => {
    const { clock, lease, read } = await holder();
    let settle = () => {};
    const settled = new Promise<void>((resolve) => (settle = resolve));
    const releasing = lease.release({ settled });
    await clock.advance(60_000);
    expect(lease.state).toBe('releasing');
    expect(await read()).toMatchObject({ kind: 'held', holder: lease.holder });
    settle();
    expect(await soon(clock, releasing)).toEqual({ released: true });
  });

  it('K-08 work that fails has stopped', async () => {
    const { clock, lease } = await holder();
    const settled = Promise.reject(new Error('failed'));
    expect(await soon(clock, lease.release({ settled }))).toEqual({ released: true });
  });

  it('K-08 of a lease that was lost while its work went on names the loss', async () => {
    const { clock, lease, faults } = await holder();
    let settle = () => {};
    const settled = new Promise<void>((resolve) => (settle = resolve));
    const releasing = lease.release({ settled });
    faults.hang = true;
    await clock.advance(10_000);
    settle();
    expect(await soon(clock, releasing)).toEqual({ released: false, reason: 'expired' });
  });
});

describe('the options of a lease', () => {
  it('K-06 are all known', async () => {
    const { clock, actor } = world();
    const { holdfast } = await actor();
    const { signal } = new AbortController();
    const timings = { ttl: '9s', renewEvery: '2s', stop: '500ms', guard: '1s' };
    const acquiring = holdfast.acquire('k', {
      ...timings,
      ...{ operationTimeout: '1s', maxHold: '1m', wait: '1s', signal, holder: 'a' },
      ...{ fence: 7, fenceFloor: 8, untilReleased: true, class: 'lease' },
    });
    expect(await soon(clock, acquiring)).toMatchObject({ ok: true, lease: { holder: 'a' } });
    const once = { per: '1h', tolerance: '1m', onCrash: 'retry' } as const;
    const options = { ...once, ...timings, operationTimeout: '1s', wait: '1s', signal };
    const running = holdfast.once('job', options, () => 'done');
    expect(await soon(clock, running)).toMatchObject({ ok: true, value: 'done' });
  });

  it('K-06 untilReleased is true or false', async () => {
    const { actor } = world();
    const { holdfast } = await actor();
    const untilReleased = 1 as unknown as boolean;
    await expect(holdfast.acquire('k', { untilReleased })).rejects.toMatchObject({
      ...{ code: 'CONFIG_INVALID', field: 'untilReleased', value: 1 },
    });
  });
});
