import { describe, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { storeConformance } from '../../testing/conformance/conformance.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

storeConformance(
  'the memory store conforms',
  {
    open: async () => {
      const clock = new FakeClock();
      return {
        store: createMemoryStore({ clock }),
        elapse: (ms) => clock.advance(ms),
        dispose: async () => {},
      };
    },
  },
  { describe, it },
);
