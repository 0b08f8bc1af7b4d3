import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const CALL = { timeoutMs: 5_000 };
const TTL_MS = 80_000_000;
const KEY = 'lease:k';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(folder, { recursive: true }));

const STORES = {
  memory: async (clock: FakeClock) => createMemoryStore({ clock }),
  SQLite: (clock: FakeClock) => openSqliteStore(join(folder, 'h.db'), { clock }),
};

it.each(Object.entries(STORES))(
  'K-03 %s keeps a fence record for as long as renewals keep it',
  async (_, open) => {
    const clock = new FakeClock();
    const store = await open(clock);
    const acquire = { ...CALL, ttlMs: TTL_MS, inbox: 'inbox' };
    const [granted] = await store.leases.acquire([{ key: KEY, holder: 'a' }], acquire);
    const fence = granted?.kind === 'granted' ? granted.fence : 0;
    const renew = (keepFences: boolean) =>
      store.leases.renew([{ key: KEY, holder: 'a' }], { ...CALL, ttlMs: TTL_MS, keepFences });
    await clock.advance(70_000_000);
    await renew(true);
    await clock.advance(70_000_000);
    expect(await store.leases.read([KEY], CALL)).toMatchObject([{ kind: 'held', fence }]);
    await renew(false);
    await clock.advance(20_000_000);
    expect(await store.leases.read([KEY], CALL)).toMatchObject([{ kind: 'held', fence: 0 }]);
    await store.close();
  },
);
