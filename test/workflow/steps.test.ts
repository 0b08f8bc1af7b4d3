import { expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { StepQueue } from '../../src/workflow/step-queue.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';

it('W-02 a step whose answer did not come is not asked about any more when its tenure is over, and leaves no timer behind', async () => {
  const clock = new FakeClock();
  const { store, faults } = faultyStore(createMemoryStore({ clock }), clock);
  const over = new AbortController();
  const tenure = { workflow: 'order', leaseId: 'a', timeoutMs: 100, over: over.signal };
  const free = { check: () => {}, onRefused: () => {} };
  const steps = new StepQueue({ store, clock, random: seededRandom(1), ...tenure, ...free }, 0);
  faults.hang = true;
  const action = { id: 'x', target: 'press', priority: 5, body: '{}' };
  const emitting = steps.emit(action, false);
  emitting.catch(() => {});
  await clock.advance(110);
  expect(clock.pendingTimers).toBe(1);
  over.abort();
  await expect(emitting).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect(clock.pendingTimers).toBe(0);
});

it('W-02 a step that may have been taken is told as unknown, although its tenure has been refused since', async () => {
  const clock = new FakeClock();
  const { store, faults } = faultyStore(createMemoryStore({ clock }), clock);
  const tenure = { workflow: 'order', leaseId: 'a', timeoutMs: 100 };
  let isRefused = false;
  const check = () => {
    if (isRefused) throw new Error('refused');
  };
  const rest = { over: new AbortController().signal, check, onRefused: () => {} };
  const steps = new StepQueue({ store, clock, random: seededRandom(1), ...tenure, ...rest }, 0);
  faults.loseReplies = true;
  const action = { id: 'x', target: 'press', priority: 5, body: '{}' };
  const emitting = steps.emit(action, false);
  emitting.catch(() => {});
  await clock.advance(50);
  isRefused = true;
  await clock.advance(1_000);
  await expect(emitting).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  await expect(steps.emit(action, false)).rejects.toThrow('refused');
});
