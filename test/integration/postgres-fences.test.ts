import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Holdfast, open } from '../../src/holdfast.ts';
import type { Lease } from '../../src/lease/lease.ts';
import { installStore } from '../../src/store/postgres/administration.ts';
import { addFence, listFences, removeFence } from '../../src/store/postgres/fences.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { advanceBy, MOVABLE_CLOCK } from '../support/postgres-clock.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { until } from '../support/until.ts';

let server: PostgresServer;
let pool: pg.Pool;
const opened: Holdfast[] = [];
const instance = async (name: string) => {
  const holdfast = await open(server.url, { name });
  opened.push(holdfast);
  return holdfast;
};
let keys = 0;
const newKey = () => `fenced ${keys++}: ? :7 '7'`;
const since = () => new Date(0);

beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
  // A role that may write the table, and has no right on the schema of Holdfast.
  const app = server.url.replace('postgres@', 'app@');
  pool = new pg.Pool({ connectionString: app });
  pool.on('error', () => {});
  await instance('first');
  await server.sql(`${MOVABLE_CLOCK()};
    CREATE ROLE app LOGIN;
    CREATE TABLE account (id int PRIMARY KEY, balance int);
    INSERT INTO account VALUES (1, 0);
    CREATE TABLE entry (account int REFERENCES account ON DELETE CASCADE);
    GRANT ALL ON account, entry TO app`);
  await addFence(server.url, { table: 'account', prefix: '' }, since);
});
afterAll(async () => {
  await Promise.all(opened.map((holdfast) => holdfast.close()));
  await pool.end();
  await server[Symbol.asyncDispose]();
});

const granted = async (holdfast: Holdfast, key: string) => {
  const result = await holdfast.acquire(key, { ttl: '20s' });
  if (!result.ok) throw new Error(`${key} is ${result.reason}`);
  return result.lease;
};
const expire = () => server.sql(advanceBy(21_000));
const isWaiting = async () =>
  (await server.sql(`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`)).length > 0;
const setting = (key: string, fence: number) =>
  `SELECT set_config('holdfast.lease', ${pg.escapeLiteral(`${key}:${fence}`)}, true)`;
const WRITE = 'UPDATE account SET balance = balance + 1';

const begun = new Set<pg.PoolClient>();
/** A test that has failed leaves a transaction open, which must not be in the way of the next. */
afterEach(() => {
  for (const tx of begun) tx.release(true);
  begun.clear();
});

/** Begins a transaction that presents a lease, as code that knows nothing of guard does. */
const begin = async (lease: Pick<Lease, 'key' | 'fence'>, how = 'BEGIN') => {
  const tx = await pool.connect();
  begun.add(tx);
  await tx.query(how);
  await tx.query(setting(lease.key, lease.fence));
  return tx;
};
const end = async (tx: pg.PoolClient, how: 'COMMIT' | 'ROLLBACK') => {
  begun.delete(tx);
  await tx.query(how);
  tx.release();
};

describe('a fenced table on PostgreSQL', () => {
  it('B-22 a takeover waits for the transaction that has written, and is granted after its commit', async () => {
    const [first, second, key] = [await instance('a'), await instance('b'), newKey()];
    const lease = await granted(first, key);
    const tx = await begin(lease);
    await tx.query(WRITE);
    await expire();
    let isTaken = false;
    const taking = second.acquire(key, { ttl: '20s', wait: '10s' }).then((result) => {
      isTaken = true;
      return result;
    });
    await until(isWaiting, { what: 'the takeover to wait', deadlineMs: 5_000 });
    expect(isTaken).toBe(false);
    await end(tx, 'COMMIT');
    const taken = await taking;
    expect(taken.ok && taken.lease.fence).toBeGreaterThan(lease.fence);
  });

  it('B-22 a renewal does not wait for a transaction that has written', async () => {
    const lease = await granted(await instance('a'), newKey());
    const tx = await begin(lease);
    await tx.query(WRITE);
    expect(await lease.renew()).toBe(true);
    expect(await isWaiting()).toBe(false);
    await end(tx, 'ROLLBACK');
  });

  it('B-22 after a takeover every write of the old holder fails with HF001, its fence and the holder', async () => {
    const [first, second, key] = [await instance('a'), await instance('b'), newKey()];
    const lease = await granted(first, key);
    const { fence } = lease;
    await expire();
    const taken = await granted(second, key);
    for (const write of [
      WRITE,
      'INSERT INTO account VALUES (9, 9)',
      'DELETE FROM account',
      'TRUNCATE account CASCADE',
      'WITH gone AS (DELETE FROM account RETURNING id) SELECT * FROM gone',
      'UPDATE account SET balance = 0 WHERE false',
    ]) {
      const tx = await begin({ key, fence });
      await expect(tx.query(write), write).rejects.toMatchObject({
        code: 'HF001',
        message: `FENCE_STALE ${taken.fence} ${taken.holder}`,
        detail: expect.stringContaining(`fenced ${keys - 1}`),
      });
      await end(tx, 'ROLLBACK');
    }
  });

  it('B-22 a released lease opens no fenced table', async () => {
    const lease = await granted(await instance('a'), newKey());
    const { key, fence } = lease;
    await lease.release();
    const tx = await begin({ key, fence });
    await expect(tx.query(WRITE)).rejects.toMatchObject({ code: 'HF001' });
    await end(tx, 'ROLLBACK');
  });

  it('B-22 under REPEATABLE READ a snapshot from before the takeover fails with 40001', async () => {
    const [first, second, key] = [await instance('a'), await instance('b'), newKey()];
    const lease = await granted(first, key);
    const tx = await begin(lease, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
    await tx.query('SELECT * FROM account');
    await expire();
    await granted(second, key);
    await expect(tx.query(WRITE)).rejects.toMatchObject({ code: '40001' });
    await end(tx, 'ROLLBACK');
  });

  it('B-22 many processes that take over from each other never commit out of the order of fences', async () => {
    await server.sql(`CREATE TABLE written (fence bigint); CREATE TABLE ledger (n serial, fence bigint);
      GRANT ALL ON written, ledger, ledger_n_seq TO app`);
    await addFence(server.url, { table: 'written', prefix: '' }, since);
    const key = newKey();
    const stores = await Promise.all([1, 2, 3].map(() => openPostgresStore(server.url)));
    let commits = 0;
    const work = async ({ leases }: (typeof stores)[number]) => {
      for (let n = 0; n < 30; n++) {
        // The same holder for all: each acquire takes the lease over from the one before.
        const call = { ttlMs: 20_000, inbox: 'x', timeoutMs: 5_000 };
        const [reply] = await leases.acquire([{ key: `lease:${key}`, holder: 'shared' }], call);
        if (reply?.kind !== 'granted') continue;
        const tx = await begin({ key, fence: reply.fence });
        try {
          await tx.query('INSERT INTO written VALUES ($1)', [reply.fence]);
          // Time for another process to take the lease over, if it could.
          await tx.query('SELECT pg_sleep(0.01)');
          // The row gets its number under a lock that is held until the commit.
          await tx.query('LOCK TABLE ledger IN EXCLUSIVE MODE');
          await tx.query('INSERT INTO ledger (fence) VALUES ($1)', [reply.fence]);
          await end(tx, 'COMMIT');
          commits++;
        } catch (error) {
          expect(error).toMatchObject({ code: 'HF001' });
          await end(tx, 'ROLLBACK');
        }
      }
    };
    await Promise.all(stores.map(work));
    await Promise.all(stores.map((store) => store.close()));
    expect(commits).toBeGreaterThan(5);
    const rows = await server.sql<{ fence: string }>('SELECT fence FROM ledger ORDER BY n');
    const fences = rows.map(({ fence }) => Number(fence));
    expect(fences).toEqual([...fences].sort((a, b) => a - b));
  });

  it('B-22 a transaction without a lease is refused, also one on a connection that had one before', async () => {
    // Even the owner of the table, on a new connection.
    await expect(server.sql(WRITE)).rejects.toMatchObject({ code: 'HF003' });
    const lease = await granted(await instance('a'), newKey());
    const tx = await begin(lease);
    await tx.query(WRITE);
    await tx.query('COMMIT');
    // The setting is empty now, and no longer absent.
    const refusal = { code: 'HF003', message: expect.stringMatching(/^FENCE_MISSING UPDATE/) };
    await expect(tx.query(WRITE)).rejects.toMatchObject(refusal);
    for (const text of ['', 'x', 'x:', ':', `${lease.fence}`, `${lease.key}:x`, `${lease.key}: 7`])
      await expect(
        tx.query(`SET holdfast.lease = ${pg.escapeLiteral(text)}; ${WRITE}`),
        text,
      ).rejects.toMatchObject({ code: 'HF003' });
    begun.delete(tx);
    tx.release();
    // A cascade writes the table as well as a statement that names it.
    await addFence(server.url, { table: 'entry', prefix: '' }, since);
    await server.sql(
      `ALTER TABLE account DISABLE TRIGGER holdfast_fence; INSERT INTO account VALUES (2, 0)`,
    );
    await expect(pool.query('DELETE FROM account WHERE id = 2')).rejects.toMatchObject(
      Object.assign({}, refusal, { message: expect.stringMatching(/DELETE on public.entry/) }),
    );
    await addFence(server.url, { table: 'account', prefix: '' }, since);
  });

  it('B-22 a transaction that guard has let pass may write, until a savepoint from before is rolled back to', async () => {
    const first = await instance('a');
    const leases = await first.acquireAll([newKey(), newKey()]);
    await server.sql('GRANT USAGE ON SCHEMA holdfast TO app');
    await server.sql('GRANT EXECUTE ON FUNCTION holdfast.guard TO app');
    const tx = await pool.connect();
    await tx.query('BEGIN');
    await tx.query('SAVEPOINT before');
    await leases.guard(tx);
    await tx.query(WRITE);
    await tx.query('ROLLBACK TO before');
    await expect(tx.query(WRITE)).rejects.toMatchObject({ code: 'HF003' });
    await end(tx, 'ROLLBACK');
    await leases.release();
  });

  it('B-22 a workflow and a target present the whole key of the store', async () => {
    const store = await openPostgresStore(server.url);
    const key = `workflow:lease:${newKey()}`;
    const call = { ttlMs: 20_000, inbox: 'x', timeoutMs: 5_000 };
    const [reply] = await store.leases.acquire([{ key, holder: 'tenure' }], call);
    const tx = await begin({ key, fence: reply?.kind === 'granted' ? reply.fence : 0 });
    await tx.query(WRITE);
    await end(tx, 'COMMIT');
    await store.close();
  });

  it('B-22 a table that needs a key, or keys with a prefix, refuses other leases', async () => {
    const first = await instance('a');
    await server.sql('CREATE TABLE invoice (id int); GRANT ALL ON invoice TO app');
    const insert = async (lease: Lease) => {
      const tx = await begin(lease);
      try {
        await tx.query('INSERT INTO invoice VALUES (1)');
      } finally {
        await end(tx, 'ROLLBACK');
      }
    };
    const [run, other] = [await granted(first, 'invoice:run'), await granted(first, 'invoice:x')];
    const refused = { code: 'HF003', detail: expect.stringMatching(/^Required: lease:invoice:r/) };
    const fence = (key?: string) =>
      addFence(server.url, { table: 'public.invoice', prefix: '', key }, since);
    await fence('invoice:run');
    await insert(run);
    await expect(insert(other)).rejects.toMatchObject(refused);
    await fence('invoice:r*');
    await insert(run);
    await expect(insert(other)).rejects.toMatchObject(refused);
    await fence('invoice:*');
    await insert(other);
    await fence();
    await insert(await granted(first, newKey()));
  });

  it('B-22 fences are added once, listed with their state, changed and removed', async () => {
    await server.sql('CREATE SCHEMA "Shop"; CREATE TABLE "Shop"."a.B""c" (id int)');
    const named = { schema: 'Shop', table: 'a.B"c', prefix: 'app:', key: `ä'\\000"` };
    const at = () => new Date(86_400_000);
    const made = await addFence(server.url, named, at);
    const fence = {
      table: 'Shop.a.B"c',
      key: `app:lease:ä'\\000"`,
      isPrefix: false,
      since: '1970-01-02T00:00:00.000Z',
      isEnabled: true,
    };
    expect(made).toEqual({ fence, isChanged: true });
    expect(await addFence(server.url, named, since)).toEqual({ fence, isChanged: false });
    expect(await listFences(server.url)).toContainEqual(fence);
    await server.sql('ALTER TABLE "Shop"."a.B""c" DISABLE TRIGGER ALL');
    expect(await listFences(server.url)).toContainEqual({ ...fence, isEnabled: false });
    expect(await addFence(server.url, named, at)).toEqual({ fence, isChanged: true });
    expect(await removeFence(server.url, named)).toEqual(fence);
    expect(await removeFence(server.url, named)).toBeNull();
  });

  it('B-22 a table that a fence could not cover is refused, with what to do', async () => {
    await server.sql(`CREATE TABLE parted (id int) PARTITION BY LIST (id);
      CREATE TABLE part PARTITION OF parted FOR VALUES IN (1);
      CREATE TABLE parent (id int); CREATE TABLE child () INHERITS (parent);
      CREATE VIEW viewed AS SELECT * FROM account; CREATE TABLE plain (id int)`);
    const refusals: readonly (readonly [string, RegExp])[] = [
      ['nothing', /public\.nothing.*there is no table of this name/],
      ['parted', /is partitioned.*use guard/],
      ['part', /is partitioned/],
      ['parent', /is inherited/],
      ['child', /is inherited/],
      ['viewed', /it is not a table/],
    ];
    for (const [table, message] of refusals)
      await expect(addFence(server.url, { table, prefix: '' }, since), table).rejects.toMatchObject(
        { code: 'CONFIG_INVALID', field: 'TABLE', message: expect.stringMatching(message) },
      );
    const app = server.url.replace('postgres@', 'app@');
    await expect(addFence(app, { table: 'plain', prefix: '' }, since)).rejects.toMatchObject({
      code: 'STORE_REFUSED',
      message: expect.stringMatching(/permission denied.*TRIGGER on it/),
    });
    const other = `${server.url}?schema=absent`;
    await expect(addFence(other, { table: 'plain', prefix: '' }, since)).rejects.toMatchObject({
      code: 'STORE_UNSUITABLE',
      message: expect.stringMatching(/store install/),
    });
    // With the right to do so, a role that does not own the table may fence it.
    await installStore(server.url, 'app');
    await server.sql('GRANT TRIGGER ON plain TO app');
    expect(await addFence(app, { table: 'plain', prefix: '' }, since)).toMatchObject({
      isChanged: true,
    });
  });
});
