import { describe, expect, it } from 'vitest';
import { open } from '../../src/index.ts';
import RedlockByDefault, {
  Lock,
  QuorumNotOfferedError,
  Redlock,
  type RedlockClient,
} from '../../src/redlock/index.ts';
import { failure, lockers } from './support/lockers.ts';

describe('Redlock', () => {
  it('is the default export too', () => {
    expect(RedlockByDefault).toBe(Redlock);
  });

  it('takes a Holdfast, whose own leases exclude its locks', async () => {
    const holdfast = await open('memory:');
    const redlock = new Redlock(holdfast, { retryCount: 0 });
    const lock = await redlock.acquire(['r'], 5_000);
    expect(await holdfast.acquire('r')).toMatchObject({ ok: false, holder: lock.value });
    await lock.release();
    const result = await holdfast.acquire('r');
    expect(await failure(redlock.acquire(['r'], 5_000))).toMatchObject({
      code: 'EXECUTION_FAILED',
    });
    if (result.ok) await result.lease.release();
    await redlock.quit();
    expect(await failure(holdfast.acquire('r'))).toMatchObject({ code: 'CLOSED' });
  });

  it.each([[['memory:']], ['memory:']])('takes an address: %o', async (address) => {
    const redlock = new Redlock(address);
    await (await redlock.acquire(['r'], 5_000)).release();
    await redlock.quit();
    await redlock.quit();
  });

  it('refuses several clients, and says what to do instead', () => {
    const several = ['redis://a:6379', 'redis://b:6379', 'redis://c:6379'];
    const error = thrown(() => new Redlock(several));
    expect(error).toBeInstanceOf(QuorumNotOfferedError);
    expect(error).toMatchObject({ code: 'QUORUM_NOT_OFFERED', clients: 3 });
    expect((error as Error).message).toMatch(/given 3 clients.*fence.*sentinels.*Cluster/);
  });

  it.each<[string, () => unknown]>([
    ['clients', () => new Redlock([])],
    ['retryCount', () => new Redlock(['memory:'], { retryCount: -2 })],
    ['retryDelay', () => new Redlock(['memory:'], { retryDelay: Number.NaN })],
    ['driftFactor', () => new Redlock(['memory:'], { driftFactor: 1 })],
    ['acquireScript', () => new Redlock(['memory:'], {}, { acquireScript: '' } as object)],
  ])('refuses what makes no sense: %s', (field, make) => {
    expect(thrown(make)).toMatchObject({ code: 'CONFIG_INVALID', field });
  });

  it('refuses options of open beside a Holdfast that is open', async () => {
    await using holdfast = await open('memory:');
    const make = () => new Redlock(holdfast, {}, { quarantine: 'off' });
    expect(thrown(make)).toMatchObject({ code: 'CONFIG_INVALID', field: 'quarantine' });
  });

  it.each([
    ['duration', (redlock: Redlock) => redlock.acquire(['r'], 1.5)],
    ['duration', (redlock: Redlock) => redlock.acquire(['r'], 0)],
    ['duration', (redlock: Redlock) => redlock.acquire(['r'], 13 * 3_600_000)],
    ['resources', (redlock: Redlock) => redlock.acquire([], 1_000)],
    ['resources', (redlock: Redlock) => redlock.acquire([{} as string], 1_000)],
    ['keys', (redlock: Redlock) => redlock.acquire(['r', 'r'], 1_000)],
    ['key', (redlock: Redlock) => redlock.acquire(['r'.repeat(257)], 1_000)],
    ['duration', (redlock: Redlock) => redlock.using(['r'], 550, async () => {})],
    ['routine', (redlock: Redlock) => redlock.using(['r'], 5_000, {})],
    ['lock', (redlock: Redlock) => redlock.release(Object.create(Lock.prototype) as Lock)],
  ])('refuses, before anything is sent: %s', async (field, call) => {
    const { locker } = lockers();
    const { redlock, errors } = locker();
    expect(await failure(call(redlock))).toMatchObject({ code: 'CONFIG_INVALID', field });
    expect(errors).toEqual([]);
  });

  it('tries to open again after it could not', async () => {
    const { store } = lockers();
    let isThere = false;
    const client = new Proxy(store, {
      has: (target, name) => {
        if (name === 'leases' && !isThere) throw new Error('not yet');
        return Reflect.has(target, name);
      },
    });
    const redlock = new Redlock([client as RedlockClient], { retryCount: 0 });
    expect((await failure(redlock.acquire(['r'], 5_000))).message).toMatch(/not yet/);
    isThere = true;
    expect((await redlock.acquire(['r'], 5_000)).fence).toBeGreaterThan(0);
    await redlock.quit();
  });
});

function thrown(make: () => unknown): unknown {
  try {
    make();
    return undefined;
  } catch (error) {
    return error;
  }
}
