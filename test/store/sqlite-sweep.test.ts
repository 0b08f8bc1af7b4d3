import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { FENCE_RECORD_MS } from '../../src/store/port/lease-store.ts';
import { SqliteConnection } from '../../src/store/sqlite/file/sqlite-connection.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { CALL } from '../../testing/conformance/kit.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A clock that moves a little whenever it is read, so that work takes time. */
class WorkingClock extends FakeClock {
  readMs = 0;

  override monotonicMs(): number {
    this.block(this.readMs);
    return super.monotonicMs();
  }
}

const KEYS = 5_000;
const ACQUIRE = { ...CALL, ttlMs: 1_000, inbox: '' };

/** A store with thousands of leases and fences that have expired. */
async function openLittered(name: string) {
  const path = join(folder, name);
  const clock = new WorkingClock();
  const store = await openSqliteStore(path, { clock });
  const requests = Array.from({ length: KEYS }, (_, n) => ({ key: `lease:${n}`, holder: 'a' }));
  await store.leases.acquire(requests, ACQUIRE);
  await clock.advance(FENCE_RECORD_MS + 1);
  const count = (table: string) => {
    const db = new SqliteConnection(path);
    const rows = Number(db.value(`SELECT count(*) FROM ${table}`));
    db.close();
    return rows;
  };
  expect(count('leases') + count('fences')).toBe(2 * KEYS);
  const grant = () => store.leases.acquire([{ key: 'lease:now', holder: 'b' }], ACQUIRE);
  return { clock, store, count, grant };
}

it('K-03 the sweep keeps up with what expires: where there is time, one grant clears thousands of rows', async () => {
  const { store, count, grant } = await openLittered('much.db');
  await grant();
  expect([count('leases'), count('fences')]).toEqual([1, 1]);
  await store.close();
});

it('K-03 the sweep takes a millisecond of a transaction at most, and continues in the next one', async () => {
  const { clock, store, count, grant } = await openLittered('slow.db');
  const left = () => count('leases') + count('fences');
  const before = left();
  clock.readMs = 0.1;
  await grant();
  const removed = before - left();
  expect(removed).toBeGreaterThan(128);
  // There are at most ten looks in a millisecond, of 128 rows each.
  expect(removed).toBeLessThanOrEqual(10 * 128);
  for (let n = 0; n < 60; n++) {
    clock.block(11);
    await grant();
  }
  expect([count('leases'), count('fences')]).toEqual([1, 1]);
  clock.readMs = 0;
  await store.close();
});
