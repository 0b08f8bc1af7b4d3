import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, it } from 'vitest';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { storeConformance } from '../../testing/conformance/conformance.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = () => join(folder, `${files++}.db`);

storeConformance(
  'SQLite conforms, on a clock that is stepped',
  {
    open: async () => {
      const clock = new FakeClock();
      const store = await openSqliteStore(newFile(), { clock });
      return { store, elapse: (ms) => clock.advance(ms), dispose: () => store.close() };
    },
  },
  { describe, it },
);

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const shared = newFile();
storeConformance(
  'SQLite conforms, with a prefix, on a file that all tests share',
  {
    open: async () => {
      const store = await openSqliteStore(shared, { prefix: 'team:' });
      return { store, elapse: wait, dispose: () => store.close() };
    },
  },
  { describe, it: it.concurrent },
);
