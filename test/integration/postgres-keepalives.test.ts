import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Store } from '../../src/store/port/store.ts';
import { uninstallStore } from '../../src/store/postgres/administration.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { advanceBy, MOVABLE_CLOCK } from '../support/postgres-clock.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';

// Transactions of two processes meet at the row of a keepalive. `other` is the process whose
// renewal is in flight: it has not committed.

const CALL = { timeoutMs: 5_000 };
const TTL_MS = 10_000;

let server: PostgresServer;
let store: Store;
let other: pg.Client;
let number = 0;
let key = '';
let fence = 0;
let id = '';

beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
  store = await openPostgresStore(server.url);
  await server.sql(MOVABLE_CLOCK());
  other = new pg.Client({ connectionString: server.url });
  await other.connect();
}, 60_000);
afterAll(async () => {
  await other.end();
  await store.close();
  await server[Symbol.asyncDispose]();
});

/** A lease that its keepalive alone keeps: its own time is over, and little of the other is left. */
beforeEach(async () => {
  key = `lease:k${++number}`;
  id = `keepalive-${number}`;
  const call = { ...CALL, ttlMs: TTL_MS, inbox: 'inbox' };
  const [reply] = await store.leases.acquire([{ key, holder: 'h' }], call);
  fence = reply?.kind === 'granted' ? reply.fence : 0;
  const attachTo = { id, isNew: true };
  const [renewed] = await store.leases.renew([{ key, holder: 'h', fence }], { ...call, attachTo });
  expect(renewed).toEqual({ kind: 'renewed', version: 1 });
  await server.sql(advanceBy(TTL_MS / 2));
  expect((await keepAlive()).kind).toBe('kept');
  await server.sql(advanceBy(TTL_MS / 2 + 1_000));
});

async function keepAlive() {
  const call = { ...CALL, ttlMs: TTL_MS, version: 1, acknowledged: [] };
  return (await store.leases.keepAlive?.(id, call)) ?? { kind: 'gone' as const };
}

async function beginKeepAlive(): Promise<void> {
  const request = { scope: '', id, ttl: TTL_MS, version: 1, acknowledged: [] };
  await other.query('BEGIN');
  await other.query('SELECT holdfast.lease_keep_alive($1)', [JSON.stringify(request)]);
}

it('B-25 a keepalive is told of each lease that leaves it, and of no other change', async () => {
  const told = async (change: string) => {
    const before = await server.sql('SELECT FROM holdfast.detachment');
    await server.sql(`${change} WHERE key = '${key}'`);
    return (await server.sql('SELECT FROM holdfast.detachment')).length - before.length;
  };
  const row = 'UPDATE holdfast.lease SET';
  expect(await told(`${row} until = until + 1, kept = kept + 1, revoked = true`)).toBe(0);
  expect(await told(`${row} holder = 'other'`)).toBe(1);
  expect(await told(`${row} fence = fence + 1`)).toBe(1);
  expect(await told(`${row} holder = NULL`)).toBe(1);
  expect(await told(`${row} keepalive = NULL`)).toBe(1);
  expect(await told(`${row} fence = fence + 1`)).toBe(0);
  expect(await told(`${row} keepalive = '${id}'`)).toBe(0);
  expect(await told('DELETE FROM holdfast.lease')).toBe(1);
});

it('B-25 a takeover is refused while a renewal of the keepalive is in flight, though a plain read says expired', async () => {
  await beginKeepAlive();
  await server.sql(advanceBy(TTL_MS));
  const [seen] = await store.leases.read([key], CALL);
  expect(seen?.kind).toBe('free');
  const ask = () =>
    store.leases.acquire([{ key, holder: 'o' }], { ...CALL, ttlMs: TTL_MS, inbox: 'inbox' });
  expect((await ask())[0]).toMatchObject({ kind: 'busy', holder: 'h', fence });
  await other.query('COMMIT');
  // The clock had moved on: the renewal counts from before.
  expect((await ask())[0]?.kind).toBe('granted');
  expect(await keepAlive()).toEqual({ kind: 'gone' });
});

it('B-25 a tombstone lasts as long as a renewal that was in flight lets the holder act', async () => {
  await beginKeepAlive();
  const revoked = store.leases.revoke(key, { ...CALL, force: false, fence });
  await other.query('SELECT pg_sleep(0.1)');
  await other.query('COMMIT');
  const reply = await revoked;
  expect(reply.kind === 'revoked' && reply.mayActForMs).toBeGreaterThan(TTL_MS * 0.8);
  expect(await keepAlive()).toMatchObject({ kind: 'kept', detached: [{ key }] });
});

it('B-25 a renewal that comes while a lease is detached waits, and is told', async () => {
  await other.query('BEGIN');
  await other.query(`SELECT holdfast.lease_release('', $1, '{h}', $2)`, [[key], [fence]]);
  const kept = keepAlive();
  await other.query('SELECT pg_sleep(0.1)');
  await other.query('COMMIT');
  expect(await kept).toMatchObject({ kind: 'kept', detached: [{ key }] });
});

it('B-25 a guarded transaction delays a handover, and no renewal of the keepalive', async () => {
  const second = `lease:z${number}`;
  const call = { ...CALL, ttlMs: TTL_MS, inbox: 'inbox' };
  const [granted] = await store.leases.acquire([{ key: second, holder: 'h' }], call);
  const guarded = granted?.kind === 'granted' ? granted.fence : 0;
  await other.query('BEGIN');
  await other.query('SELECT holdfast.guard($1, $2)', [second, guarded]);
  const given = [
    { key, holder: 'h', fence, successor: 's' },
    { key: second, holder: 'h', fence: guarded, successor: 's' },
  ];
  const transfer = store.leases.transfer(given, { ...CALL, windowMs: TTL_MS });
  for (let n = 0; n < 5; n++) {
    expect(await keepAlive()).toEqual({ kind: 'kept', detached: [] });
    await other.query('SELECT pg_sleep(0.05)');
  }
  await other.query('COMMIT');
  expect((await transfer).map(({ kind }) => kind)).toEqual(['transferred', 'transferred']);
  expect(await keepAlive()).toMatchObject({ kind: 'kept', detached: [{ key }] });
});

it('B-25 a row that a person deletes or changes is told to its keepalive', async () => {
  await server.sql(`UPDATE holdfast.lease SET holder = 'me' WHERE key = '${key}'`);
  await server.sql(`DELETE FROM holdfast.lease WHERE key = '${key}'`);
  expect(await keepAlive()).toMatchObject({ kind: 'kept', detached: [{ key }, { key }] });
});

it('B-25 B-21 a schema is not removed while a keepalive keeps a lease', async () => {
  await expect(uninstallStore(server.url)).rejects.toMatchObject({
    code: 'STORE_REFUSED',
    message: expect.stringContaining('leases are held'),
  });
});

it('B-25 no keepalive outlives a table of leases that a person truncates', async () => {
  await server.sql('TRUNCATE holdfast.lease');
  expect(await keepAlive()).toEqual({ kind: 'gone' });
});
