import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import { open } from '../../src/holdfast.ts';
import type { Store } from '../../src/store/port/store.ts';
import { logSyncer } from '../../src/store/sqlite/file/durable-queue.ts';
import { openSqliteStore, type SqliteStoreOptions } from '../../src/store/sqlite/sqlite-store.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-sync-'));
afterAll(() => rmSync(folder, { recursive: true }));

const CALL = { timeoutMs: 2_000 };
let files = 0;

/** A store on a clock that is stepped, and a disk that is as fast as the test says. */
async function opened({ sync = 'everysec' }: Pick<SqliteStoreOptions, 'sync'> = {}) {
  const clock = new FakeClock();
  const events = new Emitter();
  const warned: string[] = [];
  events.on('store.warned', ({ finding }) => warned.push(finding));
  const disk = { atMs: [] as number[], isSlow: false, error: null as Error | null };
  const waiting: (() => void)[] = [];
  const syncLog = async () => {
    disk.atMs.push(clock.monotonicMs());
    if (disk.isSlow) await new Promise<void>((resolve) => waiting.push(resolve));
    if (disk.error !== null) throw disk.error;
  };
  const path = join(folder, `${++files}.db`);
  const store = await openSqliteStore(path, { clock, events, sync, syncLog });
  const finish = () => {
    for (const resolve of waiting.splice(0)) resolve();
  };
  return { clock, store, disk, warned, finish };
}

const put = (store: Store, id: string) => store.records.put('notes', [{ id, value: id }], CALL);

const start = { id: 's', tenant: 'acme', keys: ['k'], client: 'ann', priority: 5 };

/** One write of each kind that has to outlive a loss of power. */
const DURABLE: Record<string, (store: Store) => Promise<unknown>> = {
  record: (store) => put(store, 'a'),
  'log entry': (store) => store.log.append(['a'], CALL),
  'stream entry': (store) =>
    store.streams.append('mails', [{ lane: 'l', priority: 5, value: 1 }], CALL),
  workflow: (store) =>
    store.workflows.begin('w', { leaseId: 'l', fence: 1, inbox: 'i', resume: false }, CALL),
  intent: (store) =>
    store.intents.start({ ...start, kind: 'live', label: 'l', body: '{}', status: '{}' }, CALL),
};

describe('a file that syncs every second', () => {
  for (const [kind, write] of Object.entries(DURABLE))
    it(`W-03 has each ${kind} on the disk within a second`, async () => {
      const { clock, store, disk } = await opened();
      await write(store);
      const wroteMs = clock.monotonicMs();
      expect(disk.atMs).toEqual([]);
      await clock.advance(1_000);
      expect(disk.atMs).toHaveLength(1);
      expect((disk.atMs[0] ?? 0) - wroteMs).toBeLessThan(900);
      await store.close();
    });

  it('W-03 syncs once for all that was written meanwhile, and again for what comes later', async () => {
    const { clock, store, disk } = await opened();
    for (let n = 0; n < 50; n++) {
      await put(store, `a${n}`);
      await clock.advance(100);
    }
    await clock.advance(2_000);
    expect(disk.atMs.length).toBeGreaterThanOrEqual(8);
    expect(disk.atMs.length).toBeLessThanOrEqual(11);
    await store.close();
  });

  it('K-03 syncs nothing for leases, members and signals', async () => {
    const { clock, store, disk } = await opened();
    const call = { ...CALL, ttlMs: 10_000, inbox: 'i' };
    await store.leases.acquire([{ key: 'lease:a', holder: 'a' }], call);
    await store.members.beat({ id: 'a', attributes: {} }, call);
    await store.signals.publish('topic', 'message');
    await clock.advance(5_000);
    await store.close();
    expect(disk.atMs).toEqual([]);
  });

  it('W-03 syncs what is left when it is closed', async () => {
    const { store, disk, clock } = await opened();
    await put(store, 'a');
    await store.close();
    expect(disk.atMs).toHaveLength(1);
    expect(clock.pendingTimers).toBe(0);
  });

  it('says once that the disk fails, and tries again with what is written next', async () => {
    const { clock, store, disk, warned } = await opened();
    disk.error = new Error('EIO');
    for (const id of ['a', 'b']) {
      await put(store, id);
      await clock.advance(1_000);
    }
    expect(disk.atMs).toHaveLength(2);
    expect(warned).toEqual(['The log could not be synced to the disk: EIO.']);
    await store.close();
  });
});

describe('a file that syncs always', () => {
  it('I-01 answers when what was written is on the disk, with one sync for all who wait', async () => {
    const { clock, store, disk, finish } = await opened({ sync: 'always' });
    disk.isSlow = true;
    const answered: string[] = [];
    const write = (id: string) => put(store, id).then(() => answered.push(id));
    const writes = ['a', 'b', 'c'].map(write);
    await clock.advance(100);
    writes.push(...['d', 'e'].map(write));
    await clock.advance(100);
    // The second sync begins when the first is over: what was written meanwhile waits for it.
    expect([answered, disk.atMs.length]).toEqual([[], 1]);
    finish();
    await clock.advance(100);
    expect([answered, disk.atMs.length]).toEqual([['a', 'b', 'c'], 2]);
    finish();
    await Promise.all(writes);
    await store.close();
  });

  it('I-01 does not call done what the disk did not take, or not in time', async () => {
    const { clock, store, disk, finish } = await opened({ sync: 'always' });
    disk.error = new Error('EIO');
    await expect(put(store, 'a')).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
    disk.error = null;
    disk.isSlow = true;
    const late = put(store, 'b');
    const code = late.catch((error: { code: string }) => error.code);
    await clock.advance(CALL.timeoutMs + 100);
    expect(await code).toBe('OUTCOME_UNKNOWN');
    disk.isSlow = false;
    finish();
    await store.close();
  });
});

it('what is no way to sync, or no store that syncs, is refused', async () => {
  const path = join(folder, `${++files}.db`);
  for (const [store, sync] of [
    [`sqlite:${path}`, 'sometimes'],
    ['memory:', 'always'],
    ['redis://127.0.0.1:1', 'always'],
  ] as const)
    await expect(open(store, { sync: sync as 'always' })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      field: 'sync',
    });
});

it('W-03 a real file is synced, also before it has a log, and after it was closed', async () => {
  const path = join(folder, `${++files}.db`);
  const sync = logSyncer();
  await sync(path);
  const store = await openSqliteStore(path, { sync: 'always' });
  await put(store, 'a');
  await sync(path);
  await store.close();
  await sync(path);
  const again = await openSqliteStore(path);
  expect(await again.records.get('notes', ['a'], CALL)).toMatchObject([{ value: 'a' }]);
  await again.close();
});
