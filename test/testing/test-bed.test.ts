import { describe, expect, it } from 'vitest';
import type { Holdfast } from '../../src/holdfast.ts';
import { TestBed } from '../../testing/index.ts';

/** Work that goes on until it is told to stop. */
function endless(holdfast: Holdfast, key: string): Promise<unknown> {
  return holdfast.withLease(key, ({ signal }) => {
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  });
}

describe('a test bed', () => {
  it('has a lease lost at its deadline by who does not reach the store, and had by the next', async () => {
    const bed = await TestBed.open();
    const ana = await bed.join('ana');
    const ben = await bed.join('ben');
    const work = endless(ana.holdfast, 'k');
    await bed.until(() => ana.holdfast.held === 1);
    const startMs = bed.clock.monotonicMs();
    const next = ben.holdfast.acquire('k', { wait: '1m' });
    ana.faults.hang = true;
    await expect(bed.outcome(work)).rejects.toMatchObject({
      code: 'LEASE_LOST',
      reason: 'expired',
    });
    // The TTL of 30 s without the guard of 1.5 s, to the step.
    expect(bed.clock.monotonicMs() - startMs).toBeLessThanOrEqual(28_550);
    expect(bed.clock.monotonicMs() - startMs).toBeGreaterThan(28_400);
    const result = await bed.outcome(next);
    expect(result.ok).toBe(true);
    expect(bed.clock.monotonicMs() - startMs).toBeGreaterThanOrEqual(30_000);
    if (result.ok) await result.lease.release();
    await bed.close();
  });

  it('has one lost at once that is revoked, without time passing', async () => {
    const bed = await TestBed.open();
    const { holdfast } = await bed.join();
    const work = endless(holdfast, 'k');
    await bed.until(() => holdfast.held === 1);
    const startMs = bed.clock.monotonicMs();
    await holdfast.revoke('k', { reason: 'a test' });
    await expect(bed.outcome(work)).rejects.toMatchObject({ reason: 'revoked' });
    expect(bed.clock.monotonicMs()).toBe(startMs);
    await bed.close();
  });

  it('says what it waits for when that does not come, and how much time has passed', async () => {
    const bed = await TestBed.open();
    const never = bed.until(() => false, { within: '1s', what: 'the moon' });
    await expect(never).rejects.toThrow(/^1000 ms have passed .* waits for the moon$/);
    const pending = bed.outcome(new Promise(() => {}), { within: 100 });
    await expect(pending).rejects.toThrow('an outcome');
    await bed.close();
  });

  it('steps workflows and their processors from the first action on', async () => {
    const bed = await TestBed.open();
    const { holdfast } = await bed.join();
    const handlers = { DOUBLE: async ({ n }: { n: number }) => ({ n: 2 * n }) };
    await holdfast.processor({ name: 'maths', role: 'compute', handlers }).start();
    const workflow = await holdfast.workflows.claim('w');
    const { action_id } = await workflow.emit('DOUBLE', { n: 21 }, { target: 'maths' });
    const { value } = await bed.outcome(workflow.result(action_id), { within: '1s' });
    expect(value).toEqual({ n: 42 });
    await bed.close();
  });

  it('leaves no timer behind', async () => {
    const bed = await TestBed.open();
    const { holdfast } = await bed.join();
    await holdfast.acquire('k');
    await bed.close();
    expect(bed.clock.pendingTimers).toBe(0);
  });

  it('goes the same way in every run', async () => {
    const ids = async () => {
      const bed = await TestBed.open();
      const { holdfast } = await bed.join('ana');
      await bed.close();
      return holdfast.instanceId;
    };
    expect(await ids()).toBe(await ids());
  });
});
