import { describe, expect, it } from 'vitest';
import type { ExecutionError } from '../../src/redlock/index.ts';
import { retryWindowMs, settingsOf } from '../../src/redlock/settings.ts';
import { failure, lockers } from './support/lockers.ts';

describe('who asks for what is held', () => {
  it.each([
    [{ retryCount: 10, retryDelay: 200, retryJitter: 100 }, 2_000],
    [{ retryCount: 3, retryDelay: 50, retryJitter: 0 }, 150],
  ])('with %o waits %i ms', async (settings, windowMs) => {
    const { clock, locker } = lockers();
    await locker().redlock.acquire(['r'], 60_000);
    const b = locker(settings);
    const startMs = clock.monotonicMs();
    let endMs = 0;
    const asking = failure<ExecutionError>(b.redlock.acquire(['r'], 5_000)).then((error) => {
      endMs = clock.monotonicMs();
      return error;
    });
    await clock.advance(windowMs + 500);
    await asking;
    expect(endMs - startMs).toBe(windowMs);
  });

  it('is given it when it is released, and not at the next round of a loop', async () => {
    const { clock, locker } = lockers();
    const [a, b] = [locker(), locker({ retryCount: 2, retryDelay: 10_000 })];
    const held = await a.redlock.acquire(['r'], 60_000);
    const waiting = b.redlock.acquire(['r'], 5_000);
    await clock.advance(1_234);
    await held.release();
    await clock.advance(0);
    expect((await waiting).isHeld()).toBe(true);
    expect(b.errors).toEqual([]);
  });

  it('with retryCount -1 waits without end', async () => {
    const { clock, locker } = lockers();
    const [a, b] = [locker(), locker()];
    let held = await a.redlock.acquire(['r'], 3_600_000);
    const waiting = b.redlock.acquire(['r'], 5_000, { retryCount: -1 });
    await clock.advance(3_000_000);
    held = await held.extend(3_600_000);
    await clock.advance(1_000_000);
    await held.release();
    await clock.advance(10);
    expect((await waiting).isHeld()).toBe(true);
    // One for the hour that passed in vain; redlock would have told of twenty thousand.
    expect(b.errors.map(({ name }) => name)).toEqual(['ResourceLockedError']);
  });

  it('asks a store that does not answer again, with the pauses that were set, and then fails', async () => {
    const { clock, locker } = lockers();
    const { redlock, faults, errors } = locker({ retryCount: 3, retryDelay: 100, retryJitter: 0 });
    faults.refuse = true;
    const failing = failure<ExecutionError>(redlock.acquire(['a', 'b'], 5_000));
    await clock.advance(1_000);
    const error = await failing;
    expect(error.attempts).toHaveLength(4);
    expect(error.cause).toMatchObject({ code: 'STORE_UNREACHABLE' });
    expect(errors.map((each) => 'code' in each && each.code)).toEqual(
      Array(4).fill('STORE_UNREACHABLE'),
    );
    const trying = redlock.acquire(['a', 'b'], 5_000);
    await clock.advance(150);
    faults.refuse = false;
    await clock.advance(150);
    expect((await trying).attempts.length).toBeGreaterThan(1);
  });
});

describe('the time that redlock would sleep in all', () => {
  const settings = (over: object) => settingsOf(over);

  it.each([
    [{ retryCount: 0 }, 0],
    [{ retryCount: -1 }, Number.POSITIVE_INFINITY],
    [{ retryCount: Number.POSITIVE_INFINITY }, Number.POSITIVE_INFINITY],
    [{}, 2_000],
    [{ retryCount: 4, retryDelay: 0, retryJitter: 100 }, 100],
    [{ retryCount: 5, retryDelay: 0, retryJitter: 0 }, 5],
  ])('with %o is %d ms on average', (over, ms) => {
    expect(retryWindowMs(settings(over))).toBe(ms);
  });
});
