import { describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/index.ts';
import Redlock5 from '../../src/redlock/index.ts';
import Redlock, { Lock, LockError, type RedlockOptions } from '../../src/redlock/redlock4.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';
import { failure } from './support/lockers.ts';

/** Programs with redlock 4 on one store. */
function programs() {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  return (options: RedlockOptions = { retryCount: 0 }) => {
    const { store: reached, faults } = faultyStore(store, clock);
    const redlock = new Redlock([reached], options, { clock, maxTtl: '12h' });
    const errors: Error[] = [];
    redlock.on('clientError', (error) => errors.push(error));
    return { redlock, errors, faults, clock };
  };
}

/** What is passed to a callback. */
function called<T>(call: (callback: (error: Error | null, result?: T) => void) => void) {
  return new Promise<{ error: Error | null; result: T | undefined }>((resolve) => {
    call((error, result) => resolve({ error, result }));
  });
}

describe('the calls of redlock 4', () => {
  it('lock, extend and unlock: the lock stays the same object', async () => {
    const { redlock, clock } = programs()();
    const lock = await redlock.lock('r', 5_000);
    expect(lock).toBeInstanceOf(Lock);
    expect([lock.resource, lock.redlock, lock.attempts]).toEqual(['r', redlock, 1]);
    expect(lock.expiration).toBe(clock.wallMs() + 4_750);
    const { value, fence } = lock;
    await clock.advance(1_000);
    expect(await lock.extend(5_000)).toBe(lock);
    expect(lock.expiration).toBe(clock.wallMs() + 4_750);
    expect([lock.value, lock.fence]).toEqual([value, fence]);
    expect(await lock.unlock()).toBeUndefined();
    expect(lock.expiration).toBe(0);
    await redlock.quit();
  });

  it('take callbacks, of which a rejection is never unhandled', async () => {
    const program = programs();
    const [a, b] = [program(), program()];
    const { result: lock } = await called<Lock>(
      (done) => void a.redlock.lock(['r', 's'], 5_000, done),
    );
    expect(lock?.resource).toEqual(['r', 's']);
    const { error } = await called<Lock>((done) => void b.redlock.lock('s', 5_000, done));
    expect(error).toBeInstanceOf(LockError);
    expect((await called<Lock>((done) => void lock?.extend(9_000, done))).result).toBe(lock);
    expect((await called<void>((done) => void lock?.unlock(done))).error).toBeNull();
    expect((await called<string[]>((done) => void a.redlock.quit(done))).result).toEqual(['OK']);
  });

  it('fail with a LockError, in the words of redlock 4, and then why', async () => {
    const program = programs();
    const [a, b] = [program(), program()];
    const lock = await a.redlock.acquire('r', 5_000);
    const refused = await failure<LockError>(b.redlock.acquire('r', 5_000));
    expect(refused).toMatchObject({ name: 'LockError', code: 'LOCK_FAILED', attempts: 1 });
    expect(refused.message).toMatch(
      /^Exceeded 0 attempts to lock the resource "r"\. The resource 'r' is locked by /,
    );
    // A resource that is locked is no error of the client.
    expect(b.errors).toEqual([]);
    await a.redlock.release(lock);
    expect((await failure(lock.unlock())).message).toMatch(
      /^Unable to fully release the lock on resource "r"\./,
    );
    expect((await failure(lock.extend(5_000))).message).toMatch(
      /^Cannot extend lock on resource "r" because the lock has already expired\./,
    );
    expect(await failure(a.redlock.lock('r', 1.5))).toMatchObject({ code: 'CONFIG_INVALID' });
  });

  it('tell of a client that fails by clientError', async () => {
    const { redlock, errors, faults, clock } = programs()({ retryCount: 2, retryJitter: 0 });
    faults.refuse = true;
    const failing = failure<LockError>(redlock.lockWithOptions('r', 5_000, { retryCount: 1 }));
    await clock.advance(5_000);
    expect((await failing).message).toMatch(/^Exceeded 1 attempts to lock the resource "r"\./);
    expect(errors.length).toBeGreaterThan(0);
    for (const error of errors) expect(error).toMatchObject({ code: 'STORE_UNREACHABLE' });
  });

  it('that are not there say what to write instead', () => {
    const { redlock } = programs()();
    expect(() => redlock.disposer('r', 5_000)).toThrow(
      /disposer\(\) of redlock 4 is not.*Bluebird/,
    );
    const scripts = { lockScript: (script: string) => script } as RedlockOptions;
    expect(() => new Redlock(['memory:'], scripts)).toThrow(/no scripts to replace/);
  });
});

describe('on the class of redlock 5', () => {
  const redlock: object = new Redlock5(['memory:']);
  it.each(['lock', 'lockWithOptions', 'acquireWithOptions', 'unlock', 'disposer'])(
    '%s() names the call of redlock 5 and holdfast/redlock4',
    (name) => {
      const call = Reflect.get(redlock, name) as () => unknown;
      expect(call).toThrow(/of redlock 4 is not offered: call \w+\(.*'holdfast\/redlock4'/);
      expect(call).toThrow(expect.objectContaining({ code: 'CALL_NOT_OFFERED' }));
    },
  );

  it('LockError and clientError do, too', () => {
    expect(() => Reflect.get(Redlock5, 'LockError')).toThrow(/catch ExecutionError/);
    expect(() => new Redlock5(['memory:']).on('clientError', () => {})).toThrow(
      /listen to 'error'/,
    );
  });
});
