import { Emitter } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import { untraced } from '../../src/core/tracing.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { Runtime } from '../../src/store/runtime.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

/** A runtime on a fake clock and a memory store, unless the test brings its own. */
export function testRuntime<R extends Partial<Runtime>>(own: R): Runtime & R {
  const clock = own.clock ?? new FakeClock();
  return {
    store: createMemoryStore({ clock }),
    random: seededRandom(1),
    events: new Emitter(),
    tracing: untraced,
    instanceId: 'test',
    ...own,
    clock,
  };
}
