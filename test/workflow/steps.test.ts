import { expect, it } from 'vitest';
import { seededRandom } from '../../src/core/random.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type {
  EmitStep,
  StepReply,
  Tenancy,
  WorkflowStore,
} from '../../src/store/port/workflow-store.ts';
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

it('W-02 an emit that is refused as full says first what has been read and did not fit into its request', async () => {
  const clock = new FakeClock();
  const store = createMemoryStore({ clock });
  const unread = new Set(Array.from({ length: 11_000 }, (_, n) => String(n)));
  // A workflow of an earlier version, with more unread results than it may have now.
  const forget = (read: readonly string[]) => {
    for (const position of read) unread.delete(position);
    return { kind: 'done', epoch: 0 } as const;
  };
  const workflows = {
    markRead: async (_: string, { read }: Tenancy) => forget(read),
    emit: async (_: string, { read, actions }: EmitStep): Promise<StepReply> => {
      const left = unread.size - read.length;
      if (left + actions.length > 10_000) return { kind: 'full', unresolved: 0, unread: left };
      return { ...forget(read), epoch: actions.length };
    },
  };
  const tenure = { workflow: 'order', leaseId: 'a', timeoutMs: 100 };
  const free = { over: new AbortController().signal, check: () => {}, onRefused: () => {} };
  const faked = { ...store, workflows: { ...store.workflows, ...workflows } as WorkflowStore };
  const steps = new StepQueue(
    { store: faked, clock, random: seededRandom(1), ...tenure, ...free },
    0,
  );
  const action = { id: 'x', target: 'press', priority: 5, body: '{}' };
  await expect(steps.emit(action, false)).rejects.toMatchObject({
    ...{ code: 'WORKFLOW_FULL', limit: 'unread', unread: 11_000 },
  });
  for (const position of [...unread]) steps.markRead(position);
  expect(await steps.emit(action, false)).toBe(0);
  expect(unread.size).toBe(0);
});
