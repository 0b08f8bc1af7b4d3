import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import { LOG_KEPT, LOG_PAGE } from '../../src/store/port/log-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { SqliteConnection } from '../../src/store/sqlite/file/sqlite-connection.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const CALL = { timeoutMs: 5_000 };
const DAY_MS = 24 * 3_600_000;

const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = () => join(folder, `${files++}.db`);

const stores: [string, (clock: FakeClock) => Promise<Store>][] = [
  ['memory', async (clock) => createMemoryStore({ clock })],
  ['SQLite', (clock) => openSqliteStore(newFile(), { clock })],
];

async function newest({ log }: Store): Promise<string> {
  return (await log.recall({ ...CALL, most: 1 })).entries[0]?.position ?? '';
}

async function valuesOf({ log }: Store): Promise<unknown[]> {
  return (await log.read(CALL)).entries.map(({ value }) => value);
}

describe.each(stores)('the log in %s', (_, open) => {
  it('keeps the last hundred thousand entries, and says that there is a gap before them', async () => {
    const store = await open(new FakeClock());
    await store.log.append(['first'], CALL);
    const first = await newest(store);
    await store.log.append(['second'], CALL);
    const second = await newest(store);
    const page = Array.from({ length: LOG_PAGE }, (_, n) => n);
    for (let i = 0; i < LOG_KEPT / LOG_PAGE; i++) await store.log.append(page, CALL);
    const lost = await store.log.read({ ...CALL, after: first });
    expect([lost.gap, lost.entries[0]?.value, lost.entries.length]).toEqual([true, 0, LOG_PAGE]);
    // The second has gone, too; but nothing behind it has.
    const whole = await store.log.read({ ...CALL, after: second });
    expect([whole.gap, whole.entries[0]?.value]).toEqual([false, 0]);
    await store.close();
  });

  it('takes all of what it is given or, if one is no JSON, none', async () => {
    const store = await open(new FakeClock());
    await expect(store.log.append(['a', undefined], CALL)).rejects.toThrow(TypeError);
    await expect(store.log.append(['a', 1n], CALL)).rejects.toThrow(TypeError);
    await store.log.append(['b'], CALL);
    expect(await valuesOf(store)).toEqual(['b']);
    await store.close();
  });

  it('drops what is older than it is told, and shows all there is until then', async () => {
    const clock = new FakeClock();
    const store = await open(clock);
    const trim = () => store.log.trim({ ...CALL, keptMs: DAY_MS });
    expect(await trim()).toBe(0);
    await store.log.append(['old'], CALL);
    const old = await newest(store);
    await clock.advance(1_000);
    await store.log.append(['younger'], CALL);
    await clock.advance(DAY_MS - 500);
    expect(await valuesOf(store)).toEqual(['old', 'younger']);
    expect(await trim()).toBe(1);
    expect(await valuesOf(store)).toEqual(['younger']);
    await clock.advance(500);
    expect([await trim(), await trim()]).toEqual([1, 0]);
    expect(await valuesOf(store)).toEqual([]);
    expect((await store.log.recall(CALL)).entries).toEqual([]);
    expect(await store.log.read({ ...CALL, after: old })).toMatchObject({ gap: true, entries: [] });
    await store.log.append(['new'], CALL);
    expect(await valuesOf(store)).toEqual(['new']);
    await store.close();
  });

  it('has no gap for who has read everything, also when all of it was dropped since', async () => {
    const clock = new FakeClock();
    const store = await open(clock);
    await store.log.append(['a', 'b'], CALL);
    const after = await newest(store);
    await clock.advance(3 * DAY_MS);
    expect(await store.log.trim({ ...CALL, keptMs: DAY_MS })).toBe(2);
    expect(await store.log.read({ ...CALL, after })).toMatchObject({ gap: false, entries: [] });
    await store.log.append(['c'], CALL);
    const page = await store.log.read({ ...CALL, after });
    expect([page.gap, page.entries.map(({ value }) => value)]).toEqual([false, ['c']]);
    await store.close();
  });

  it('takes no position of another log for one of its own', async () => {
    const clock = new FakeClock();
    const lost = await open(clock);
    await lost.log.append(['a', 'b', 'c'], CALL);
    const after = await newest(lost);
    await lost.close();
    await clock.advance(1);
    const store = await open(clock);
    expect(await store.log.read({ ...CALL, after })).toMatchObject({ gap: true, entries: [] });
    await store.log.append(['d', 'e', 'f', 'g'], CALL);
    const page = await store.log.read({ ...CALL, after });
    expect([page.gap, page.entries.length]).toEqual([true, 4]);
    await store.close();
  });
});

describe('the log in a file', () => {
  it('outlives the process that wrote it, and is one for all that have the same prefix', async () => {
    const file = newFile();
    const one = await openSqliteStore(file);
    await one.log.append(['a'], CALL);
    await one.close();
    const [same, other] = [
      await openSqliteStore(file),
      await openSqliteStore(file, { prefix: 'other:' }),
    ];
    await other.log.append(['of another prefix'], CALL);
    expect(await valuesOf(same)).toEqual(['a']);
    expect(await valuesOf(other)).toEqual(['of another prefix']);
    await Promise.all([same.close(), other.close()]);
  });

  it('is added to a file that was made before there were logs', async () => {
    const file = newFile();
    const before = await openSqliteStore(file);
    await before.records.put('c', [{ id: 'id', value: 1 }], CALL);
    await before.close();
    const db = new SqliteConnection(file);
    db.exec('DROP TABLE log');
    db.close();
    const store = await openSqliteStore(file);
    await store.log.append(['a'], CALL);
    expect(await valuesOf(store)).toEqual(['a']);
    expect(await store.records.get('c', ['id'], CALL)).toMatchObject([{ value: 1 }]);
    await store.close();
  });

  it('is trimmed in steps, until nothing is left that is too old', async () => {
    const clock = new FakeClock();
    const store = await openSqliteStore(newFile(), { clock });
    const page = Array.from({ length: LOG_PAGE }, (_, n) => n);
    for (let i = 0; i < 6; i++) await store.log.append(page, CALL);
    await clock.advance(DAY_MS);
    await store.log.append(['new'], CALL);
    const trim = () => store.log.trim({ ...CALL, keptMs: DAY_MS });
    expect([await trim(), await trim(), await trim()]).toEqual([5_000, 1_000, 0]);
    expect(await valuesOf(store)).toEqual(['new']);
    await store.close();
  });
});
