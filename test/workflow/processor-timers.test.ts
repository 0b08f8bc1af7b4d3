import { expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { untraced } from '../../src/core/tracing.ts';
import { open } from '../../src/holdfast.ts';
// The memory store loads it on first use, which takes longer than a clock that is stepped will wait.
import '../../src/store/memory/tables.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { Processor } from '../../src/workflow/processor.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';
import { faultyStore } from '../../testing/fakes/faulty-store.ts';

it('a processor that stops while it extends a claim leaves no timer to keep its process alive', async () => {
  const clock = new FakeClock();
  const { store, faults } = faultyStore(createMemoryStore({ clock }), clock);
  const holdfast = await open(store, { clock, random: seededRandom(1) });
  let finish = () => {};
  const handlers = { STEP: () => new Promise<void>((resolve) => (finish = resolve)) };
  const processor = holdfast.processor({ name: 'press', role: 'effect', handlers, claim: '31s' });
  await processor.start();
  const orchestrator = await holdfast.workflows.claim('order', { ttl: '5m' });
  await orchestrator.emit('STEP', null, { target: 'press' });
  await clock.advance(10_200);
  expect(processor.running).toBe(1);
  // The claim is extended after a third of it, and that is never answered.
  faults.hang = true;
  await clock.advance(200);
  faults.hang = false;
  finish();
  await processor.stop();
  await orchestrator.release();
  await holdfast.close();
  await clock.advance(5_000);
  expect(clock.pendingTimers).toBe(0);
});

it('a processor that stops while the store is unavailable does not report outcomes any more', async () => {
  const clock = new FakeClock();
  const { store, faults } = faultyStore(createMemoryStore({ clock }), clock);
  const holdfast = await open(store, { clock, random: seededRandom(1) });
  const handlers = { STEP: () => clock.sleep(100) };
  const processor = holdfast.processor({ name: 'press', role: 'effect', handlers, claim: '31s' });
  await processor.start();
  const orchestrator = await holdfast.workflows.claim('order', { ttl: '5m' });
  await orchestrator.emit('STEP', null, { target: 'press' });
  await clock.advance(50);
  await orchestrator.release();
  faults.hang = true;
  await clock.advance(100);
  const stopping = processor.stop({ within: 1_000 });
  await clock.advance(2_000);
  await stopping;
  // What was sent is given up after 5 s.
  await clock.advance(3_000);
  faults.hang = false;
  await holdfast.close();
  expect(clock.pendingTimers).toBe(0);
});

it('W-13 a processor with 150,000 pending retries takes them when they are due', async () => {
  const clock = new FakeClock();
  const MOST = 150_000;
  let given = 0;
  let settled = 0;
  const looks: number[] = [];
  const body = JSON.stringify({
    ...{ action_type: 'STEP', created_at: '2026-01-01T00:00:00.000Z', timeout_ms: null },
    payload: 1,
  });
  const uuid = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
  const reserved = () => {
    const action = { target: 'press', priority: 5, leaseId: uuid(0), epoch: 1, body };
    const n = ++given;
    const taken = { workflow: `w${n}`, fence: n, tries: 1, action: { ...action, id: uuid(n) } };
    return { kind: 'reserved', ...taken };
  };
  const workflows = {
    take: async (_: string, { most }: { most: number }) => {
      looks.push(clock.monotonicMs());
      return Array.from({ length: Math.min(most, MOST - given) }, reserved);
    },
    settle: async (_: string, all: readonly unknown[]) => {
      settled += all.length;
      return all.map(() => 'done');
    },
    extend: async () => [],
  };
  const store = { signals: { subscribe: async () => () => {} }, workflows } as unknown as Store;
  const rt = {
    store,
    clock,
    random: seededRandom(1),
    events: new Emitter(),
    tracing: untraced,
    instanceId: 'i',
  };
  const handlers = {
    STEP: () => {
      throw new Error('no');
    },
  };
  const processor = new Processor(rt, {
    ...{ name: 'press', role: 'effect', concurrency: 10_000, tries: 2, backoff: 700, handlers },
  });
  await processor.start();
  for (let turn = 0; settled < MOST && turn < 1_000; turn++) await clock.advance(0);
  expect([given, settled]).toEqual([MOST, MOST]);
  const fromMs = clock.monotonicMs();
  looks.length = 0;
  await clock.advance(750);
  // Each is due within 10 % before 700 ms: it is looked for then, and not once for each.
  expect(looks.filter((ms) => ms > fromMs && ms <= fromMs + 711).length).toBeGreaterThan(0);
  expect(looks.length).toBeLessThan(50);
  expect(clock.pendingTimers).toBeLessThan(10);
  await processor.stop();
  expect(clock.pendingTimers).toBe(0);
}, 30_000);
