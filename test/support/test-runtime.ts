import { Emitter } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { untraced } from '../../src/core/tracing.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Runtime } from '../../src/store/runtime.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

/** A runtime on a stepped clock and a store in memory, except for what the test gives. */
export function testRuntime(given: Partial<Runtime> = {}): Runtime {
  const { clock = new FakeClock() } = given;
  return {
    store: given.store ?? createMemoryStore({ clock }),
    clock,
    random: given.random ?? seededRandom(1),
    events: given.events ?? new Emitter(),
    tracing: given.tracing ?? untraced,
    instanceId: given.instanceId ?? 'me',
  };
}
