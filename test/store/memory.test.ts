import { describe, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { storeConformance } from '../../src/testing/conformance.ts';
import { FakeClock } from '../../src/testing/fake-clock.ts';

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
