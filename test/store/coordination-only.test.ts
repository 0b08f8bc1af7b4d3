import { describe, expect, it } from 'vitest';
import { open } from '../../src/holdfast.ts';
import { coordinationOnly } from '../../src/store/coordination-only.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { CoordinationStore } from '../../src/store/port/store.ts';
import { coordinationConformance } from '../../testing/conformance/conformance.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

/** A store that offers leases, members and signals alone. */
function leasesAlone(clock?: FakeClock): CoordinationStore {
  const { name, leases, members, signals, examine, close } = createMemoryStore(
    clock ? { clock } : {},
  );
  return { name, leases, members, signals, examine, close };
}

describe('a store of the coordination layer', () => {
  it('B-21 serves leases, and refuses the work layer by the name of the verb', async () => {
    const holdfast = await open(leasesAlone());
    expect(await holdfast.withLease('x', ({ fence }) => fence > 0)).toBe(true);
    const refusal = { code: 'STORE_LACKS_WORK', store: 'memory:', verb: 'records.put' };
    await expect(holdfast.targets.add({ id: 'a' })).rejects.toMatchObject(refusal);
    await expect(holdfast.targets.add({ id: 'a' })).rejects.toThrow(
      /open PostgreSQL, Redis, SQLite/,
    );
    await holdfast.close();
  });
});

coordinationConformance(
  'a store of the coordination layer conforms in that layer',
  {
    open: async () => {
      const clock = new FakeClock();
      const store = coordinationOnly(leasesAlone(clock));
      return { store, elapse: (ms) => clock.advance(ms), dispose: () => store.close() };
    },
  },
  { describe, it },
);
