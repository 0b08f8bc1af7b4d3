import { expect, it } from 'vitest';
import { Batcher } from '../../src/core/batcher.ts';
import { Emitter } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { untraced } from '../../src/core/tracing.ts';
import type { Lease } from '../../src/lease/lease.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import type {
  EmitStep,
  StepReply,
  Tenancy,
  WorkflowStore,
} from '../../src/store/port/workflow-store.ts';
import { StepQueue } from '../../src/workflow/step-queue.ts';
import { type WorkflowReader, WorkflowTenure } from '../../src/workflow/workflow-tenure.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';

const ACTION = { id: 'x', target: 'press', priority: 5, body: '{}' };

function queueWithFaults() {
  const clock = new FakeClock();
  const { store, faults } = faultyStore(createMemoryStore({ clock }), clock);
  return { clock, faults, ...queueOn(clock, store) };
}

function queueOn(clock: FakeClock, store: Store) {
  const over = new AbortController();
  const lease = {
    key: 'order',
    holder: 'a',
    signal: over.signal,
    state: 'held',
    lossReason: null as string | null,
    remainingMs: () => (lease.state === 'held' ? 1_000 : 0),
  };
  const timings = { ttlMs: 1_000, operationTimeoutMs: 100 };
  const reader: WorkflowReader = new Batcher(async () => [], 1);
  const tenure = new WorkflowTenure(lease as unknown as Lease, timings, reader);
  const chance = { random: seededRandom(1), events: new Emitter(), tracing: untraced };
  const steps = new StepQueue({ store, clock, ...chance, instanceId: 'i' }, tenure, 0);
  return { lease, over, steps };
}

it('W-02 a step without an answer is not sent again after its tenure has ended, and leaves no timer', async () => {
  const { clock, faults, over, steps } = queueWithFaults();
  faults.hang = true;
  const emitting = steps.emit(ACTION, false);
  emitting.catch(() => {});
  await clock.advance(110);
  expect(clock.pendingTimers).toBe(1);
  over.abort();
  await expect(emitting).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  expect(clock.pendingTimers).toBe(0);
});

it('W-02 a step that may have been taken fails with OUTCOME_UNKNOWN, even if its tenure has been lost since', async () => {
  const { clock, faults, lease, steps } = queueWithFaults();
  faults.loseReplies = true;
  const emitting = steps.emit(ACTION, false);
  emitting.catch(() => {});
  await clock.advance(50);
  Object.assign(lease, { state: 'lost', lossReason: 'taken' });
  await clock.advance(1_000);
  await expect(emitting).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
  await expect(steps.emit(ACTION, false)).rejects.toMatchObject({ code: 'LEASE_VIOLATION' });
});

it('W-02 an emit that is refused as full first marks read results that did not fit into its request', async () => {
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
  const faked = { ...store, workflows: { ...store.workflows, ...workflows } as WorkflowStore };
  const { steps } = queueOn(clock, faked);
  await expect(steps.emit(ACTION, false)).rejects.toMatchObject({
    code: 'WORKFLOW_FULL',
    limit: 'unread',
    unread: 11_000,
  });
  for (const position of [...unread]) steps.markRead(position);
  expect(await steps.emit(ACTION, false)).toBe(0);
  expect(unread.size).toBe(0);
});
