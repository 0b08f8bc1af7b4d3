import { describe, expect, it } from 'vitest';
import {
  ExecutionError,
  type RedlockAbortSignal,
  type RedlockUsingContext,
} from '../../src/redlock/index.ts';
import { failure, lockers } from './support/lockers.ts';

describe('a routine under using', () => {
  it('keeps its lock for as long as it takes, and gives it back with its result', async () => {
    const { clock, locker } = lockers();
    const [a, b] = [locker(), locker({ retryCount: 0 })];
    let seen: RedlockUsingContext | undefined;
    let signalled: RedlockAbortSignal | undefined;
    const running = a.redlock.using(['r'], 3_000, async (signal, context) => {
      [signalled, seen] = [signal, context];
      await clock.sleep(20_000);
      return 42;
    });
    await clock.advance(19_000);
    expect(await failure(b.redlock.acquire(['r'], 3_000))).toBeInstanceOf(ExecutionError);
    expect(seen?.extensions).toBeGreaterThanOrEqual(18);
    expect(seen?.lock.isHeld()).toBe(true);
    expect(seen?.lock.expiration).toBeGreaterThan(clock.wallMs());
    await clock.advance(1_000);
    expect(await running).toBe(42);
    expect([signalled?.aborted, signalled?.error]).toEqual([false, undefined]);
    await b.redlock.acquire(['r'], 3_000);
  });

  it('is told before the store could give its lock to another, and its result does not count', async () => {
    const { clock, locker } = lockers();
    const [a, b] = [locker(), locker({ retryCount: -1 })];
    const startMs = clock.monotonicMs();
    let [toldMs, nextMs] = [0, 0];
    let error: Error | undefined;
    const running = failure<ExecutionError>(
      a.redlock.using(['r'], 3_000, async (signal) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        toldMs = clock.monotonicMs() - startMs;
        error = signal.error;
        return 'done';
      }),
    );
    await clock.advance(0);
    a.faults.hang = true;
    const next = b.redlock.acquire(['r'], 3_000).then(() => {
      nextMs = clock.monotonicMs() - startMs;
    });
    await clock.advance(4_000);
    await next;
    expect(toldMs).toBe(2_850);
    expect(nextMs).toBeGreaterThanOrEqual(3_000);
    expect(error).toBeInstanceOf(ExecutionError);
    expect(error?.cause).toMatchObject({ code: 'LEASE_LOST', reason: 'expired' });
    expect(await running).toBe(error);
  });

  it('fails with its own error, even if its lock is lost', async () => {
    const { clock, locker } = lockers();
    const { redlock, faults } = locker();
    const own = new Error('mine');
    expect(
      await failure(
        redlock.using(['r'], 3_000, async () => {
          throw own;
        }),
      ),
    ).toBe(own);
    const failing = failure(
      redlock.using(['r'], 3_000, { retryCount: 0 }, async (signal) => {
        faults.hang = true;
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        throw own;
      }),
    );
    await clock.advance(4_000);
    expect(await failing).toBe(own);
  });

  it('succeeds even if its lock cannot be released', async () => {
    const { clock, locker } = lockers();
    const { redlock, faults, errors } = locker();
    const running = redlock.using(['r'], 3_000, async () => {
      faults.hang = true;
      return 'done';
    });
    await clock.advance(3_000);
    expect(await running).toBe('done');
    expect(errors).toHaveLength(1);
  });

  it('may release its lock itself', async () => {
    const { locker } = lockers();
    const { redlock } = locker();
    const routine = async (_: RedlockAbortSignal, { lock }: RedlockUsingContext) => lock.release();
    expect((await redlock.using(['r'], 3_000, routine)).attempts).toHaveLength(1);
  });

  it('is renewed at the threshold, where that is sooner than a third of the duration', async () => {
    const { clock, locker } = lockers();
    const { redlock } = locker({ automaticExtensionThreshold: 2_900 });
    let extensions = 0;
    const running = redlock.using(['r'], 3_000, async (_, context) => {
      await clock.sleep(2_000);
      extensions = context.extensions;
    });
    await clock.advance(2_000);
    await running;
    expect(extensions).toBeGreaterThanOrEqual(19);
  });

  it('is told to stop when all is quit, and waited for', async () => {
    const { clock, locker } = lockers();
    const { redlock } = locker();
    const log: string[] = [];
    const running = failure(
      redlock.using(['r'], 3_000, async (signal) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        log.push('stopped');
      }),
    );
    await clock.advance(0);
    const quitting = redlock.quit().then(() => log.push('quit'));
    await clock.advance(100);
    await quitting;
    expect(log).toEqual(['stopped', 'quit']);
    expect(await running).toBeInstanceOf(ExecutionError);
    const after = await failure(redlock.acquire(['r'], 3_000));
    expect(after.cause).toMatchObject({ code: 'CLOSED' });
    expect(clock.pendingTimers).toBe(0);
  });
});
