import { copyFileSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import { DEFAULT_MAX_TTLS, type MaxTtls } from '../../src/store/port/keyspaces.ts';
import type { Store } from '../../src/store/port/store.ts';
import { SqliteConnection } from '../../src/store/sqlite/file/sqlite-connection.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { CALL, Kit } from '../../testing/conformance/kit.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const root = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(root, { recursive: true }));
const opened: Store[] = [];
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
});

/** The bound of the tests: leases of 5 s. */
const BOUNDS: MaxTtls = { ...DEFAULT_MAX_TTLS, lease: 5_000 };
const ENDS = ['', '-wal', '-shm'];

const newFile = () => join(mkdtempSync(join(root, 'f-')), 'test.db');

async function openAt(path: string, clock: FakeClock, maxTtls: MaxTtls | null = BOUNDS) {
  const events = new Emitter();
  const forgot: string[] = [];
  events.on('store.forgot', ({ why }) => forgot.push(why));
  events.on('store.warned', () => {});
  const store = await openSqliteStore(path, { clock, events, maxTtls });
  opened.push(store);
  const kit = new Kit({ store, elapse: (ms) => clock.advance(ms), dispose: async () => {} });
  return { store, kit, forgot };
}

describe('K-15 a file that lost data', () => {
  it('K-15 was deleted: a process that used short leases waits for the bound of all', async () => {
    const clock = new FakeClock();
    const path = newFile();
    const a = await openAt(path, clock);
    const b = await openAt(path, clock);
    await a.kit.granted('lease:warm', 'a', { ttlMs: 1_000 });
    await b.kit.granted('lease:k', 'b', { ttlMs: 5_000 });
    for (const end of ENDS) rmSync(path + end, { force: true });
    const refused = await a.kit.acquire('lease:k', 'a', { ttlMs: 1_000 });
    expect(refused).toMatchObject({ reason: 'quarantine', expiresInMs: 6_000 });
    await clock.advance(5_900);
    const still = await a.kit.acquire('lease:k', 'a', { ttlMs: 1_000 });
    expect(still).toMatchObject({ reason: 'quarantine' });
    await clock.advance(200);
    await a.kit.granted('lease:k', 'a', { ttlMs: 1_000 });
  });

  it('K-15 was moved away and back: what was granted in between may still be held', async () => {
    const clock = new FakeClock();
    const path = newFile();
    const a = await openAt(path, clock);
    const b = await openAt(path, clock);
    await a.kit.granted('lease:warm', 'a', { ttlMs: 1_000 });
    await b.kit.granted('lease:warm-2', 'b', { ttlMs: 1_000 });
    for (const end of ENDS) renameSync(path + end, `${path}.away${end}`);
    await a.kit.acquire('lease:k', 'a', { ttlMs: 5_000 });
    await clock.advance(6_100);
    await a.kit.granted('lease:k', 'a', { ttlMs: 5_000 });
    await b.kit.read('lease:k');
    for (const end of ENDS) rmSync(path + end, { force: true });
    for (const end of ENDS) renameSync(`${path}.away${end}`, path + end);
    const refused = await b.kit.acquire('lease:k', 'b', { ttlMs: 1_000 });
    expect(refused).toMatchObject({ reason: 'quarantine' });
    expect(b.forgot.at(-1)).toBe('an earlier state of its data is back');
  });

  it('K-15 was restored from a backup under running processes: the older data is noticed', async () => {
    const clock = new FakeClock();
    const path = newFile();
    const a = await openAt(path, clock);
    await a.kit.granted('lease:warm', 'a', { ttlMs: 1_000 });
    const backup = `${path}.backup`;
    copyOf(path, backup);
    await clock.advance(2_000);
    const held = await a.kit.granted('lease:k', 'a', { ttlMs: 5_000 });
    expect(held).toBeGreaterThan(0);
    await clock.advance(1_000);
    await a.kit.renew('lease:k', 'a', 5_000);
    restore(path, backup);
    const b = await a.kit.acquire('lease:k', 'b', { ttlMs: 1_000 });
    expect(b).toMatchObject({ reason: 'quarantine' });
    expect(a.forgot).toEqual(['an earlier state of its data is back']);
  });
});

describe('K-15 the bound of a file', () => {
  it('K-15 is the same for every process: another is refused, with both values', async () => {
    const clock = new FakeClock();
    const path = newFile();
    await openAt(path, clock);
    const other = openAt(path, clock, DEFAULT_MAX_TTLS);
    await expect(other).rejects.toMatchObject({ code: 'STORE_UNSUITABLE' });
    await expect(other).rejects.toThrow(/'lease' leases is 5000 ms there and 30000 ms here/);
  });

  it('K-15 need not be known by a process that only looks', async () => {
    const clock = new FakeClock();
    const path = newFile();
    await openAt(path, clock);
    const { store } = await openAt(path, clock, null);
    expect(await store.bounds?.read(CALL)).toEqual(BOUNDS);
  });

  it('K-15 is changed for all, and begins a quarantine', async () => {
    const clock = new FakeClock();
    const path = newFile();
    const a = await openAt(path, clock);
    const looking = await openAt(path, clock, null);
    await looking.store.bounds?.change(DEFAULT_MAX_TTLS, CALL);
    await expect(a.kit.acquire('lease:k', 'a')).rejects.toMatchObject({ code: 'STORE_UNSUITABLE' });
    const { kit } = await openAt(path, clock, DEFAULT_MAX_TTLS);
    expect(await kit.acquire('lease:k', 'b')).toMatchObject({ reason: 'quarantine' });
  });
});

/** What the file says now, without its log. */
function copyOf(path: string, to: string): void {
  const database = new SqliteConnection(path);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
  copyFileSync(path, to);
}

/** As `.restore` of the sqlite3 shell does it: the same file has other contents. */
function restore(path: string, backup: string): void {
  const database = new SqliteConnection(path);
  database.exec(`ATTACH '${backup}' AS old`);
  database.exec(`
    BEGIN IMMEDIATE;
    DELETE FROM leases; INSERT INTO leases SELECT * FROM old.leases;
    DELETE FROM fences; INSERT INTO fences SELECT * FROM old.fences;
    DELETE FROM marker; INSERT INTO marker SELECT * FROM old.marker;
    COMMIT;
  `);
  database.close();
}
