import { mkdtempSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { StoreRefusedError } from '../../src/core/errors.ts';
import { Emitter } from '../../src/core/events.ts';
import { seededRandom } from '../../src/core/random.ts';
import type { FileConnection } from '../../src/store/sqlite/file/file-connection.ts';
import { LockQueue } from '../../src/store/sqlite/file/lock-queue.ts';
import type { Tx } from '../../src/store/sqlite/file/sqlite-connection.ts';
import { SqliteConnection } from '../../src/store/sqlite/file/sqlite-connection.ts';
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { Kit } from '../../testing/conformance/kit.ts';
import { FakeClock } from '../../testing/fakes/fake-clock.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A clock that moves whenever it is read, so that work takes time; and tells when a transaction is over. */
class BusyClock extends FakeClock {
  stepMs = 0;
  onTurn = () => {};

  override monotonicMs(): number {
    this.block(this.stepMs);
    return super.monotonicMs();
  }

  override afterInput(run: () => void): void {
    this.onTurn();
    super.afterInput(run);
  }
}

const CALL = { timeoutMs: 2_000 };
const KEYS = Array.from({ length: 100 }, (_, n) => `lease:${n}`);
const CALL_60 = { ...CALL, ttlMs: 60_000 };

async function openHolding(name: string) {
  const path = join(folder, name);
  const clock = new BusyClock();
  const store = await openSqliteStore(path, { clock });
  const requests = KEYS.map((key) => ({ key, holder: 'a' }));
  const call = { ...CALL_60, inbox: '' };
  expect(await store.leases.acquire(requests, call)).toHaveLength(100);
  const holdings = KEYS.map((key) => ({ key, holder: 'a' }));
  return { path, clock, store, holdings };
}

it('K-03 a large batch is cut into short transactions, and gets all its replies', async () => {
  const { clock, store, holdings } = await openHolding('slices.db');
  let turns = 0;
  clock.stepMs = 1;
  clock.onTurn = () => turns++;
  const replies = await store.leases.renew(holdings, CALL_60);
  expect(replies).toEqual(Array(100).fill({ kind: 'renewed' }));
  expect(turns).toBeGreaterThan(3);
  clock.stepMs = 0;
  await store.close();
});

it('K-03 K-07 answers for each what became of it when the rest of a batch could not be done in time', async () => {
  const { path, clock, store, holdings } = await openHolding('partial.db');
  const locker = new SqliteConnection(path);
  clock.stepMs = 1;
  clock.onTurn = () => {
    clock.onTurn = () => {};
    locker.exec('BEGIN IMMEDIATE');
  };
  const asked = store.leases.renew(holdings, CALL_60);
  const tenures = holdings.map((holding) => ({ ...holding, fence: 1 }));
  const call = { ...CALL_60, forgotten: false };
  const reasserted = store.leases.reassert(tenures, call).catch((error) => error.code);
  await clock.advance(3_000);
  const kinds = (await asked).map(({ kind }) => kind);
  const renewed = kinds.filter((kind) => kind === 'renewed').length;
  expect(renewed).toBeGreaterThan(0);
  expect(kinds).toEqual([
    ...Array(renewed).fill('renewed'),
    ...Array(100 - renewed).fill('failed'),
  ]);
  expect((await asked).at(-1)).toMatchObject({ error: { code: 'STORE_UNREACHABLE' } });
  // Not begun: nothing happened.
  expect(await reasserted).toBe('STORE_UNREACHABLE');
  locker.exec('ROLLBACK');
  locker.close();
  clock.stepMs = 0;
  await store.close();
});

it('K-07 a value that is no JSON fails alone, beside others of its turn', async () => {
  const clock = new FakeClock();
  const store = await openSqliteStore(join(folder, 'json.db'), { clock });
  const kit = new Kit({ store, elapse: async () => {}, dispose: async () => {} });
  const circle: { self?: unknown } = {};
  circle.self = circle;
  const [bad, none, good] = await Promise.all([
    kit.put('a', circle),
    kit.put('b', undefined),
    kit.put('c', 1),
  ]);
  expect([bad.kind, none.kind, good.kind]).toEqual(['failed', 'failed', 'written']);
  await store.close();
});

it('K-07 a request that SQLite refuses fails alone and at once; renewals beside it are carried out', async () => {
  const { clock, store, holdings } = await openHolding('poison.db');
  const [bad, renewed, put] = await Promise.allSettled([
    store.members.beat({ id: null as unknown as string, attributes: {} }, CALL_60),
    store.leases.renew(holdings, CALL_60),
    store.records.put('c', [{ id: 'r', value: 1 }], CALL),
  ]);
  expect(bad).toMatchObject({
    reason: {
      ...{ code: 'STORE_REFUSED', operation: 'beat' },
      reply: expect.stringContaining('NOT NULL constraint failed'),
    },
  });
  expect(renewed).toMatchObject({ value: Array(100).fill({ kind: 'renewed' }) });
  expect(put).toMatchObject({ value: [{ kind: 'written' }] });
  // Of what was put: it is brought to the disk within a second. Nothing is tried again.
  expect(clock.pendingTimers).toBe(1);
  await store.close();
});

it('K-07 one bad request of a batch fails alone, and leaves nothing behind', async () => {
  const { store } = await openHolding('bad-one.db');
  const requests = [
    { key: 'lease:x', holder: 'x' },
    { key: 'lease:bad', holder: null as unknown as string },
    { key: 'lease:y', holder: 'y' },
  ];
  const call = { ...CALL_60, inbox: '' };
  const replies = await store.leases.acquire(requests, call);
  expect(replies).toMatchObject([
    { kind: 'granted' },
    { kind: 'failed', error: { code: 'STORE_REFUSED' } },
    { kind: 'granted' },
  ]);
  expect(await store.leases.read(['lease:bad'], CALL)).toEqual([{ kind: 'free', fence: 0 }]);
  await store.close();
});

it('K-07 where the disk has no room for all requests of a transaction, those that fit are carried out', async () => {
  const full = { store: 's', operation: 'o', reply: 'database or disk is full', advice: '' };
  let bytes = 0;
  const transaction = (_operation: string, _kind: string, work: (tx: Tx) => void) => {
    bytes = 0;
    work({} as Tx);
    if (bytes > 10) throw new StoreRefusedError(full);
  };
  const file = { transaction } as unknown as FileConnection;
  const clock = new FakeClock();
  const rt = { clock, random: seededRandom(1), events: new Emitter() };
  const queue = new LockQueue(rt, file, 's');
  const write = (size: number) =>
    queue.writeOne(`write ${size}`, CALL, () => {
      bytes += size;
      return size;
    });
  const ends = await Promise.allSettled([3, 20, 4, 2].map(write));
  expect(ends.map((end) => ('value' in end ? end.value : end.reason.code))).toEqual([
    3,
    'STORE_REFUSED',
    4,
    2,
  ]);
  queue.close();
});

it('K-07 waiting for the lock at the first opening uses one connection', async () => {
  const path = join(folder, 'locked.db');
  await (await openSqliteStore(path)).close();
  const locker = new SqliteConnection(path);
  locker.exec('BEGIN IMMEDIATE');
  const clock = new FakeClock();
  const before = openHandles(path);
  const opening = openSqliteStore(path, { clock }).catch((error) => error.code);
  await clock.advance(6_000);
  expect(await opening).toBe('STORE_UNREACHABLE');
  expect(openHandles(path) - before).toBeLessThanOrEqual(5);
  locker.exec('ROLLBACK');
  locker.close();
});

/** How many handles this process has on a file and what belongs to it; 0 where the system does not tell. */
function openHandles(path: string): number {
  if (process.platform !== 'linux') return 0;
  const links = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return '';
    }
  });
  return links.filter((link) => link.startsWith(path)).length;
}

it('finds what belongs to a file beside the file, not beside a link to it', async () => {
  const path = join(folder, 'real.db');
  await (await openSqliteStore(path)).close();
  symlinkSync(path, join(folder, 'link.db'));
  const store = await openSqliteStore(join(folder, 'link.db'));
  expect(store.name).toBe(`sqlite:${path}`);
  await store.close();
});
