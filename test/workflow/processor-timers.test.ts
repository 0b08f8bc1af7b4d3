import { expect, it } from 'vitest';
import { seededRandom } from '../../src/base/random.ts';
import { open } from '../../src/holdfast.ts';
// The memory store loads it on first use, which takes longer than a clock that is stepped will wait.
import '../../src/store/memory/tables.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { FakeClock } from '../../src/testing/fake-clock.ts';
import { faultyStore } from '../../src/testing/faulty-store.ts';

it('a processor that has stopped while a claim was being extended leaves no timer behind to keep its process alive', async () => {
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

it('a processor that has stopped while the store could not be told of an outcome tells it no more', async () => {
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
