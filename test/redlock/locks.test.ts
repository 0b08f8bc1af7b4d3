import { describe, expect, it } from 'vitest';
import { LeaseHeldError } from '../../src/index.ts';
import { ExecutionError, Lock, ResourceLockedError } from '../../src/redlock/index.ts';
import { revokeShown } from '../support/revoke-shown.ts';
import { failure, lockers } from './support/lockers.ts';

const ONCE = { retryCount: 0 };

describe('a lock', () => {
  it('is held alone: who asks once is told at once, with who voted how and why', async () => {
    const { locker } = lockers();
    const [a, b] = [locker(ONCE), locker(ONCE)];
    const lock = await a.redlock.acquire(['r'], 5_000);
    const error = await failure<ExecutionError>(b.redlock.acquire(['r'], 5_000));
    expect(error).toBeInstanceOf(ExecutionError);
    expect(error).toMatchObject({ name: 'ExecutionError', code: 'EXECUTION_FAILED' });
    expect(error.message).toMatch(
      /^The operation was unable to achieve a quorum during its retry window\. /,
    );
    expect(error.message).toContain(
      `The resource 'r' is locked by ${lock.value} with fence ${lock.fence} for `,
    );
    expect(error.cause).toBeInstanceOf(LeaseHeldError);
    const [stats] = await Promise.all(error.attempts);
    expect(stats).toMatchObject({ membershipSize: 1, quorumSize: 1, votesFor: new Set() });
    expect([...(stats?.votesAgainst.keys() ?? [])]).toEqual([...b.redlock.clients]);
    expect([...(stats?.votesAgainst.values() ?? [])]).toEqual(b.errors);
    expect(b.errors).toMatchObject([{ name: 'ResourceLockedError', code: 'RESOURCE_LOCKED' }]);
    expect(b.errors[0]).toBeInstanceOf(ResourceLockedError);
    expect(b.errors[0]?.message).toMatch(
      /^The operation was applied to: 0 of the 1 requested resources\. The resource 'r' is locked by /,
    );
  });

  it('K-15 is not locked where the store is in quarantine: the error says so, and for how long', async () => {
    const { store, locker } = lockers();
    const { redlock, errors } = locker(ONCE);
    const busy = { reason: 'quarantine', holder: '', fence: 0, expiresInMs: 20_000 } as const;
    store.leases.acquire = async (requests) => requests.map(() => ({ kind: 'busy', ...busy }));
    const error = await failure<ExecutionError>(redlock.acquire(['r'], 5_000));
    expect(error.cause).toMatchObject({ code: 'STORE_QUARANTINED', expiresInMs: 20_000 });
    expect(error.message).toContain('Raise retryCount or retryDelay to wait longer.');
    expect(error.message).toContain("pass { quarantine: 'off' } as the third argument");
    expect(errors).toEqual([error.cause]);
  });

  it('says who has it, what it locks, until when, and by which fence', async () => {
    const { clock, store, locker } = lockers();
    const { redlock } = locker();
    const lock = await redlock.acquire(['r'], 5_000);
    expect(lock).toBeInstanceOf(Lock);
    expect(lock.redlock).toBe(redlock);
    expect(lock.resources).toEqual(['r']);
    expect(lock.expiration - clock.wallMs()).toBe(4_750);
    expect((await Promise.all(lock.attempts))[0]?.votesFor).toEqual(redlock.clients);
    const call = { timeoutMs: 1_000 };
    const [reply] = await store.leases.read(['lease:r'], call);
    expect(reply).toMatchObject({ kind: 'held', holder: lock.value, fence: lock.fence });
    expect(lock.fences).toEqual(new Map([['r', lock.fence]]));
    expect([lock.isHeld(), lock.signal.aborted]).toEqual([true, false]);
  });

  it('has a higher fence than the one before it', async () => {
    const { locker } = lockers();
    const { redlock } = locker();
    const first = await redlock.acquire(['r'], 5_000);
    await first.release();
    const second = await redlock.acquire(['r'], 5_000);
    expect(second.fence).toBeGreaterThan(first.fence);
  });

  it('that was released is over, and can neither be released nor extended again', async () => {
    const { clock, locker } = lockers();
    const [a, b] = [locker(), locker(ONCE)];
    const lock = await a.redlock.acquire(['r'], 5_000);
    const { attempts } = await lock.release();
    expect((await Promise.all(attempts))[0]?.votesFor.size).toBe(1);
    expect([lock.expiration, lock.isHeld(), lock.signal.aborted]).toEqual([0, false, false]);
    await (await b.redlock.acquire(['r'], 5_000)).release();
    expect(await failure(lock.release())).toBeInstanceOf(ExecutionError);
    expect((await failure(lock.extend(5_000))).message).toMatch(
      /^Cannot extend an already-expired lock\./,
    );
    await a.redlock.quit();
    await b.redlock.quit();
    expect(clock.pendingTimers).toBe(0);
  });

  it('ends when its duration is over, even if its holder still works: others get it then, not before', async () => {
    const { clock, locker } = lockers();
    const [a, b] = [locker(), locker({ retryCount: -1 })];
    const lock = await a.redlock.acquire(['r'], 5_000);
    const startMs = clock.monotonicMs();
    let nextMs = 0;
    const next = b.redlock.acquire(['r'], 5_000).then((taken) => {
      nextMs = clock.monotonicMs() - startMs;
      return taken;
    });
    await clock.advance(4_749);
    expect([lock.isHeld(), lock.signal.aborted]).toEqual([true, false]);
    await clock.advance(1);
    expect([lock.isHeld(), lock.signal.aborted, lock.expiration]).toEqual([false, true, 0]);
    expect(lock.signal.error).toBeInstanceOf(ExecutionError);
    expect(lock.signal.reason).toBe(lock.signal.error);
    await clock.advance(300);
    expect((await next).fence).toBeGreaterThan(lock.fence);
    expect(nextMs).toBe(5_000);
    expect(await failure(lock.release())).toBeInstanceOf(ExecutionError);
  });

  it('of less than the kernel keeps ends in time all the same', async () => {
    const { clock, locker } = lockers();
    const [a, b] = [locker(), locker(ONCE)];
    const lock = await a.redlock.acquire(['r'], 200);
    expect(lock.expiration - clock.wallMs()).toBe(196);
    await clock.advance(200);
    expect((await b.redlock.acquire(['r'], 200)).fence).toBeGreaterThan(lock.fence);
  });

  it('that is over before it could be handed out is not, and its resource is free', async () => {
    const { locker } = lockers();
    const { redlock } = locker(ONCE);
    const error = await failure<ExecutionError>(redlock.acquire(['r'], 2));
    expect(error).toBeInstanceOf(ExecutionError);
    expect(error.message).toMatch(/The lock of 'r' is over: its duration has passed/);
    await redlock.acquire(['r'], 5_000);
  });

  it('may be released between its end and the end of its duration: the work has stopped', async () => {
    const { clock, locker } = lockers();
    const { redlock } = locker(ONCE);
    const lock = await redlock.acquire(['r'], 5_000);
    await clock.advance(4_900);
    expect(lock.signal.aborted).toBe(true);
    await lock.release();
    await redlock.acquire(['r'], 5_000);
  });

  it('ends by the clock even if the timer is late, and nothing brings it back', async () => {
    const { clock, locker } = lockers();
    const { redlock } = locker();
    const lock = await redlock.acquire(['r'], 5_000);
    clock.block(4_800);
    expect([lock.isHeld(), lock.expiration]).toEqual([false, 0]);
    const error = await failure<ExecutionError>(lock.extend(5_000));
    expect(error.message).toMatch(
      /^Cannot extend an already-expired lock\. The lock of 'r' is over: /,
    );
    expect(error.attempts).toEqual([]);
    expect(lock.signal.aborted).toBe(true);
  });
});

describe('extending', () => {
  it('gives another lock for the same hold, with the same value and fence, from now on', async () => {
    const { clock, locker } = lockers();
    const [a, b] = [locker(), locker(ONCE)];
    const lock = await a.redlock.acquire(['r'], 5_000);
    await clock.advance(4_000);
    const longer = await lock.extend(10_000);
    // No later than the store has confirmed: it moves on with every renewal.
    expect(longer.expiration - clock.wallMs()).toBe(4_750);
    expect([longer.value, longer.fence]).toEqual([lock.value, lock.fence]);
    expect([lock.expiration, longer.signal === lock.signal]).toEqual([0, true]);
    expect((await failure(lock.extend(5_000))).message).toMatch(/already-expired/);
    await clock.advance(9_000);
    expect(longer.isHeld()).toBe(true);
    expect(longer.expiration - clock.wallMs()).toBeCloseTo(500, 2);
    expect(await failure(b.redlock.acquire(['r'], 5_000))).toBeInstanceOf(ExecutionError);
    const shorter = await longer.extend(1_000);
    await clock.advance(1_000);
    expect(shorter.isHeld()).toBe(false);
    await b.redlock.acquire(['r'], 5_000);
  });

  it('is refused if another holder has the resource, at once and not after all retries', async () => {
    const { clock, store, locker } = lockers();
    const { redlock, errors } = locker();
    const lock = await redlock.acquire(['r'], 5_000);
    await revokeShown(store, 'lease:r', { force: true });
    const startMs = clock.monotonicMs();
    const extending = failure<ExecutionError>(lock.extend(5_000));
    await clock.advance(400);
    const error = await extending;
    expect(error).toBeInstanceOf(ExecutionError);
    expect(error.message).toMatch(/The lock of 'r' is over: .*(revoked|taken_over)/);
    expect(errors[0]).toBeInstanceOf(ResourceLockedError);
    expect(lock.signal.aborted).toBe(true);
    expect(clock.monotonicMs() - startMs).toBe(400);
  });

  it('outlasts a store that does not answer for a while', async () => {
    const { clock, locker } = lockers();
    const { redlock, faults } = locker();
    const lock = await redlock.acquire(['r'], 5_000);
    faults.refuse = true;
    const extending = lock.extend(8_000);
    await clock.advance(500);
    faults.refuse = false;
    await clock.advance(500);
    const longer = await extending;
    expect(longer.attempts.length).toBeGreaterThan(1);
    expect(longer.isHeld()).toBe(true);
  });

  it('that the store never confirms fails, and the lock is over in time', async () => {
    const { clock, locker } = lockers();
    const { redlock, faults } = locker();
    const lock = await redlock.acquire(['r'], 5_000);
    faults.hang = true;
    const extending = failure<ExecutionError>(lock.extend(5_000));
    await clock.advance(4_750);
    expect((await extending).attempts.length).toBeGreaterThan(1);
    expect([lock.isHeld(), lock.signal.aborted]).toEqual([false, true]);
  });
});

describe('several resources', () => {
  it('are locked all or none, each with its fence', async () => {
    const { clock, store, locker } = lockers();
    const [a, b] = [locker(), locker(ONCE)];
    const held = await a.redlock.acquire(['b'], 5_000);
    expect(await failure(b.redlock.acquire(['a', 'b', 'c'], 5_000))).toBeInstanceOf(ExecutionError);
    const call = { timeoutMs: 1_000 };
    const keys = ['lease:a', 'lease:c'];
    expect(await store.leases.read(keys, call)).toMatchObject([{ kind: 'free' }, { kind: 'free' }]);
    const waiting = a.redlock.acquire(['c', 'b', 'a'], 5_000);
    await clock.advance(100);
    await held.release();
    await clock.advance(100);
    const lock = await waiting;
    expect([...lock.fences.keys()]).toEqual(['c', 'b', 'a']);
    expect(lock.fences.get('b')).toBeGreaterThan(held.fence);
    expect(lock.fence).toBe(lock.fences.get('c'));
    await lock.release();
    await b.redlock.acquire(['a', 'b', 'c'], 5_000);
  });

  it('are over together when one of them is lost', async () => {
    const { clock, store, locker } = lockers();
    const { redlock } = locker();
    const lock = await redlock.acquire(['a', 'b'], 6_000);
    await revokeShown(store, 'lease:b', { force: true });
    await clock.advance(2_100);
    expect([lock.isHeld(), lock.signal.aborted]).toEqual([false, true]);
    const error = await failure<ExecutionError>(lock.release());
    const [stats] = await Promise.all(error.attempts);
    expect([...(stats?.votesAgainst.values() ?? [])].map(({ message }) => message)).toEqual([
      'The operation was applied to: 1 of the 2 requested resources.',
    ]);
  });

  it.each([
    ['{redlock}a', 'lease:%7Bredlock%7Da'],
    ['100%', 'lease:100%25'],
    [7, 'lease:7'],
  ])('may be called %s, as with redlock', async (resource, key) => {
    const { store, locker } = lockers();
    const lock = await locker().redlock.acquire([resource as string], 5_000);
    const [reply] = await store.leases.read([key], { timeoutMs: 1_000 });
    expect(reply).toMatchObject({ kind: 'held', holder: lock.value });
    expect([lock.fence > 0, lock.resources]).toEqual([true, [String(resource)]]);
  });
});
