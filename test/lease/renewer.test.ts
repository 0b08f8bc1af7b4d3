import { describe, expect, it } from 'vitest';
import { StoreUnsuitableError } from '../../src/core/errors.ts';
import { seededRandom } from '../../src/core/random.ts';
import { open } from '../../src/holdfast.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { world } from '../support/world.ts';

describe('Renewer', () => {
  it('K-03 keeps a lease as long as its holder lives', async () => {
    const { clock, actor } = world();
    const { take, names } = await actor();
    const lease = await take('k', { ttl: '3s' });
    for (let second = 0; second < 120; second++) {
      await clock.advance(1_000);
      expect(lease.isHeld()).toBe(true);
    }
    expect(names()).toEqual(['lease.acquired']);
  });

  it('K-03 one timer and few requests renew ten thousand leases taken at different times', async () => {
    const clock = new FakeClock();
    const { store, calls } = counting(createMemoryStore({ clock }));
    const holdfast = await open(store, { clock, random: seededRandom(1) });
    for (let wave = 0; wave < 10; wave++) {
      await Promise.all(
        Array.from({ length: 1_000 }, (_, i) => holdfast.acquire(`k${wave}-${i}`, { ttl: '30s' })),
      );
      await clock.advance(1_000);
    }
    expect(clock.pendingTimers).toBe(1);
    await clock.advance(60_000);
    const before = calls.renew;
    await clock.advance(10_000);
    expect(calls.renew - before).toBeLessThanOrEqual(20);
    expect(holdfast.held).toBe(10_000);
  });

  it('K-05 a store outage shorter than the deadline loses nothing', async () => {
    const { clock, actor } = world();
    const { take, faults, names } = await actor();
    const lease = await take('k', { ttl: '3s' });
    faults.refuse = true;
    await clock.advance(1_900);
    expect(lease.state).toBe('uncertain');
    faults.refuse = false;
    await clock.advance(600);
    expect(lease.isHeld()).toBe(true);
    expect(names()).toEqual(['lease.acquired', 'lease.uncertain', 'lease.confirmed']);
  });

  it('K-04 if the store hangs, the signal fires at the deadline, and no check passes after it', async () => {
    const { clock, actor } = world();
    const { take, faults, happened } = await actor();
    const lease = await take('k', { ttl: '3s' });
    const acquiredMs = clock.monotonicMs();
    let abortedMs = 0;
    lease.signal.addEventListener('abort', () => {
      abortedMs = clock.monotonicMs();
    });
    faults.hang = true;
    for (let ms = 0; ms < 4_000; ms += 10) {
      await clock.advance(10);
      const passes = isPassing(() => lease.assertHeld());
      expect(passes).toBe(clock.monotonicMs() < acquiredMs + 2_850);
    }
    expect(abortedMs).toBe(acquiredMs + 2_850);
    expect(happened.at(-1)).toMatchObject({
      name: 'lease.lost',
      reason: 'expired',
      heldForMs: 2_850,
    });
  });

  it('K-07 a renewal that is never answered ends after the operation timeout and is repeated', async () => {
    const { clock, actor } = world();
    const { take, faults } = await actor();
    const lease = await take('k', { ttl: '3s' });
    await clock.advance(800);
    faults.hang = true;
    await clock.advance(800);
    expect(lease.state).toBe('uncertain');
    faults.hang = false;
    await clock.advance(700);
    expect(lease.isHeld()).toBe(true);
  });

  it('K-05 a lease that the store granted to another holder is lost at the next renewal', async () => {
    const { clock, store, actor } = world();
    const { take, happened } = await actor();
    const lease = await take('k', { ttl: '3s' });
    await store.leases.release([{ key: 'lease:k', holder: lease.holder, fence: lease.fence }], {
      timeoutMs: 1,
    });
    await (await actor()).take('k', { ttl: '3s' });
    await clock.advance(1_100);
    expect(lease.state).toBe('lost');
    expect(happened.at(-1)).toMatchObject({ name: 'lease.lost', reason: 'taken_over' });
  });

  it('K-05 a lease is lost at once, with the cause, if its store no longer counts', async () => {
    const { clock, store, actor } = world();
    const { take, happened } = await actor();
    const lease = await take('k', { ttl: '9s' });
    const problem = new StoreUnsuitableError({
      ...{ store: 's', problems: ['two clocks'], voidsLeases: true },
    });
    store.leases.renew = () => Promise.reject(problem);
    await clock.advance(3_400);
    expect(lease.state).toBe('lost');
    expect(lease.signal.reason).toMatchObject({ code: 'LEASE_LOST', cause: problem });
    expect(happened.at(-1)).toMatchObject({ name: 'lease.lost', reason: 'unsuitable' });
  });

  it('K-05 a lease survives a server that is unsuitable for a moment, such as a replica during a failover', async () => {
    const { clock, store, actor } = world();
    const { take, names } = await actor();
    const lease = await take('k', { ttl: '9s' });
    const renew = store.leases.renew.bind(store.leases);
    const problem = new StoreUnsuitableError({ store: 's', problems: ['a replica'] });
    store.leases.renew = () => Promise.reject(problem);
    await clock.advance(4_000);
    expect(lease.state).toBe('uncertain');
    store.leases.renew = renew;
    await clock.advance(1_500);
    expect(lease.isHeld()).toBe(true);
    expect(names()).toEqual(['lease.acquired', 'lease.uncertain', 'lease.confirmed']);
  });

  it('K-15 a lease that vanished is reasserted with its fence', async () => {
    const { clock, store, actor } = world();
    const { take, names } = await actor();
    const lease = await take('k', { ttl: '3s' });
    await store.leases.release([{ key: 'lease:k', holder: lease.holder, fence: lease.fence }], {
      timeoutMs: 1,
    });
    await clock.advance(1_100);
    expect(lease.isHeld()).toBe(true);
    expect(names()).toEqual(['lease.acquired', 'lease.reasserted']);
    expect(await store.leases.read(['lease:k'], { timeoutMs: 1 })).toMatchObject([
      { kind: 'held', fence: lease.fence },
    ]);
  });

  it('K-08 a lease that is being released is neither reasserted nor reported as lost', async () => {
    const clock = new FakeClock();
    const store = createMemoryStore({ clock });
    const { leases, asked, answer } = withLateAnswers(store.leases);
    const holdfast = await open({ ...store, leases }, { clock, random: seededRandom(1) });
    const happened: string[] = [];
    for (const name of ['lease.lost', 'lease.reasserted', 'lease.released'] as const)
      holdfast.on(name, ({ key }) => happened.push(`${name} ${key}`));
    await holdfast.acquire('kept', { ttl: '3s' });
    const forgotten = await holdfast.acquire('forgotten', { ttl: '3s' });
    await clock.advance(1_100);
    expect(asked).toEqual(['reassert lease:kept']);
    const releasing = forgotten.ok ? forgotten.lease.release() : null;
    // Its turn to be put back comes when the store has been told to release it.
    await answer();
    expect(asked).toEqual(['reassert lease:kept', 'release lease:forgotten']);
    await answer();
    expect(await releasing).toEqual({ released: true });
    expect(happened).toEqual(['lease.reasserted kept', 'lease.released forgotten']);
  });

  it('K-04 after a blocked event loop a lease past its deadline is lost, not renewed, and an event reports the delay', async () => {
    const { clock, actor } = world();
    const { take, happened, names } = await actor();
    const lease = await take('k', { ttl: '3s' });
    clock.block(2_900);
    await clock.advance(0);
    expect(lease.state).toBe('lost');
    expect(names()).toEqual(['lease.acquired', 'loop.delayed', 'lease.lost']);
    expect(happened.find(({ name }) => name === 'loop.delayed')).toMatchObject({
      lateMs: expect.any(Number),
    });
  });

  it('K-04 a block of the event loop that ends before the deadline loses no lease: it is renewed at once', async () => {
    const { clock, actor } = world();
    const { take } = await actor();
    const lease = await take('k', { ttl: '3s' });
    clock.block(2_800);
    expect(lease.isHeld()).toBe(true);
    await clock.advance(0);
    expect(lease.remainingMs()).toBe(2_850);
  });

  it('K-04 after the host slept, the first check sends a renewal, and its answer decides', async () => {
    const { clock, actor } = world();
    const sleeper = await actor();
    const lease = await sleeper.take('k', { ttl: '3s' });
    clock.jumpWall(3_600_000);
    expect(lease.isHeld()).toBe(false);
    await clock.advance(1);
    expect(lease.isHeld()).toBe(true);
    expect(sleeper.names()).toEqual(['lease.acquired', 'lease.uncertain', 'lease.confirmed']);
  });
});

function isPassing(check: () => void): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}

/** A store that has lost both leases, of one also the fence; it answers what it is asked then when the test says so. */
function withLateAnswers(leases: Store['leases']) {
  const asked: string[] = [];
  const waiting: (() => void)[] = [];
  const later = async <T>(what: string, answer: () => Promise<T>) => {
    asked.push(what);
    await new Promise<void>((resolve) => waiting.push(resolve));
    return answer();
  };
  const late: Partial<Store['leases']> = {
    acquire: (...args) => leases.acquire(...args),
    renew: async (holdings, options) => {
      const found = await leases.read(
        holdings.map(({ key }) => key),
        options,
      );
      return found.map((lease, i) => {
        const isKept = holdings[i]?.key === 'lease:kept';
        const fence = isKept && lease.kind === 'held' ? lease.fence : 0;
        return { kind: 'vanished', fence, revoked: false } as const;
      });
    },
    reassert: (tenancies) =>
      later(`reassert ${tenancies.map(({ key }) => key)}`, async () =>
        tenancies.map(() => 'reasserted' as const),
      ),
    release: (tenancies, options) =>
      later(`release ${tenancies.map(({ key }) => key)}`, async () =>
        leases.release(tenancies, options),
      ),
  };
  const answer = async () => {
    waiting.shift()?.();
    await new Promise<void>((resolve) => setImmediate(resolve));
  };
  return { leases: late as Store['leases'], asked, answer };
}

function counting(store: Store) {
  const calls = { renew: 0 };
  const leases = Object.create(store.leases, {
    renew: {
      value: (...args: Parameters<Store['leases']['renew']>) => {
        calls.renew++;
        return store.leases.renew(...args);
      },
    },
  });
  // Methods of a class keep their private state: everything else goes to the store itself.
  for (const verb of [
    'acquire',
    'keepAlive',
    'reassert',
    'release',
    'transfer',
    'revoke',
    'read',
    'list',
    'wakeNext',
  ] as const) {
    leases[verb] = store.leases[verb]?.bind(store.leases);
  }
  return { store: { ...store, leases }, calls };
}
