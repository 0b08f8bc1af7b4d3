import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Holdfast, open } from '../../src/holdfast.ts';
import { createMemoryStore } from '../../src/store/memory/memory-store.ts';
import type { CoordinationStore } from '../../src/store/port/store.ts';
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
/** An instance whose leases nobody renews: it lets the test decide when one expires. */
const instance = async (name: string) => {
  const holdfast = await open(server.url, { name });
  opened.push(holdfast);
  return holdfast;
};
let keys = 0;
const newKey = () => `guarded ${keys++}: ? :x $1 'ä'`;

beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
  pool = new pg.Pool({ connectionString: server.url });
  pool.on('error', () => {});
  await instance('first');
  await server.sql(
    `${MOVABLE_CLOCK()}; CREATE TABLE account (id int PRIMARY KEY, balance int); INSERT INTO account VALUES (1, 0)`,
  );
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
/** Asks until the key is granted, as a waiter does. */
const takeOver = (holdfast: Holdfast, key: string) =>
  holdfast.acquire(key, { ttl: '20s', wait: '10s' });

describe('guard on PostgreSQL', () => {
  it('B-22 a takeover waits for the transaction that was guarded before it, and is granted after its commit', async () => {
    const [first, second, key] = [await instance('a'), await instance('b'), newKey()];
    const lease = await granted(first, key);
    const tx = await pool.connect();
    await tx.query('BEGIN');
    await lease.guard(tx);
    await tx.query('UPDATE account SET balance = 1');
    await expire();
    let isTaken = false;
    const taking = takeOver(second, key).then((result) => {
      isTaken = true;
      return result;
    });
    await until(isWaiting, { what: 'the takeover to wait', deadlineMs: 5_000 });
    expect(isTaken).toBe(false);
    await tx.query('COMMIT');
    const taken = await taking;
    expect(taken.ok && taken.lease.fence).toBeGreaterThan(lease.fence);
    tx.release();
  });

  it('B-22 a renewal does not wait for a guarded transaction', async () => {
    const [first, key] = [await instance('a'), newKey()];
    const lease = await granted(first, key);
    const tx = await pool.connect();
    await tx.query('BEGIN');
    await lease.guard(tx);
    expect(await lease.renew()).toBe(true);
    expect(await isWaiting()).toBe(false);
    await tx.query('ROLLBACK');
    tx.release();
  });

  it('B-22 after a takeover the old holder is refused with FENCE_STALE, its fence and the holder', async () => {
    const [first, second, key] = [await instance('a'), await instance('b'), newKey()];
    const lease = await granted(first, key);
    const sql = lease.guardSql();
    await expire();
    const taken = await granted(second, key);
    const tx = await pool.connect();
    await tx.query('BEGIN');
    const refused = { code: 'FENCE_STALE', resource: key, fence: lease.fence, seen: taken.fence };
    await expect(lease.guard(tx)).rejects.toMatchObject({ ...refused, holder: taken.holder });
    await tx.query('ROLLBACK');
    await expect(tx.query(sql)).rejects.toThrow(`FENCE_STALE ${taken.fence} ${taken.holder}`);
    tx.release();
  });

  it('B-22 a released lease guards nothing any more', async () => {
    const [first, key] = [await instance('a'), newKey()];
    const lease = await granted(first, key);
    const sql = lease.guardSql();
    await lease.release();
    await expect(pool.query(sql)).rejects.toThrow(/FENCE_STALE/);
  });

  it('B-22 under REPEATABLE READ a snapshot from before the takeover fails with 40001', async () => {
    const [first, second, key] = [await instance('a'), await instance('b'), newKey()];
    const lease = await granted(first, key);
    const tx = await pool.connect();
    await tx.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await tx.query('SELECT * FROM account');
    await expire();
    await granted(second, key);
    // A plain read says that the lease is still the first holder's.
    const seen = await tx.query(
      `SELECT FROM holdfast.lease WHERE key LIKE '%' || $1 AND fence = $2`,
      [key, lease.fence],
    );
    expect(seen.rowCount).toBe(1);
    await expect(tx.query(lease.guardSql())).rejects.toMatchObject({ code: '40001' });
    await tx.query('ROLLBACK');
    tx.release();
  });

  it('B-22 a revocation of a workflow waits for a guarded transaction, too: every change of fence does', async () => {
    const store = await openPostgresStore(server.url);
    const [id, call] = [newKey(), { timeoutMs: 600 }];
    const key = `workflow:lease:${id}`;
    const acquire = { ...call, ttlMs: 20_000, inbox: 'x' };
    const [reply] = await store.leases.acquire([{ key, holder: 'tenure' }], acquire);
    const fence = reply?.kind === 'granted' ? reply.fence : 0;
    const request = { leaseId: 'tenure', fence, inbox: 'x', resume: false };
    await store.workflows.begin(id, request, call);
    const tx = await pool.connect();
    await tx.query('BEGIN');
    await tx.query(store.guard?.sql(key, fence) ?? '');
    const revoking = store.workflows.revoke('tenure', { ...call, reason: 'test' });
    await expect(revoking).rejects.toMatchObject({ code: 'STORE_REFUSED' });
    await tx.query('COMMIT');
    expect(await store.workflows.revoke('tenure', { ...call, reason: 'test' })).toMatchObject({
      kind: 'revoked',
    });
    tx.release();
    await store.close();
  });

  it.each(['transfer', 'revoke'] as const)(
    'B-22 a %s waits for a guarded transaction, too',
    async (verb) => {
      const store = await openPostgresStore(server.url);
      const [key, holder, call] = [`lease:${newKey()}`, 'holder', { timeoutMs: 600 }];
      const [reply] = await store.leases.acquire([{ key, holder }], {
        ...{ ...call, ttlMs: 20_000, inbox: 'x' },
      });
      const fence = reply?.kind === 'granted' ? reply.fence : 0;
      const end = async () => {
        if (verb === 'revoke') return store.leases.revoke(key, { ...call, force: false, fence });
        const handover = { key, holder, fence, successor: 'successor' };
        return (await store.leases.transfer([handover], { ...call, windowMs: 5_000 }))[0];
      };
      const tx = await pool.connect();
      await tx.query('BEGIN');
      await tx.query(store.guard?.sql(key, fence) ?? '');
      await expect(end()).rejects.toMatchObject({ code: 'STORE_REFUSED' });
      await tx.query('COMMIT');
      expect(await end()).toMatchObject({ kind: verb === 'revoke' ? 'revoked' : 'transferred' });
      await expect(tx.query(store.guard?.sql(key, fence) ?? '')).rejects.toThrow(/FENCE_STALE/);
      tx.release();
      await store.close();
    },
  );

  it('B-22 many processes that take over from each other never commit out of the order of fences', async () => {
    await server.sql('CREATE TABLE written (n serial, fence bigint)');
    const key = `lease:${newKey()}`;
    const stores = await Promise.all([1, 2, 3].map(() => openPostgresStore(server.url)));
    let commits = 0;
    const work = async ({ leases, guard }: CoordinationStore, rounds: number) => {
      for (let n = 0; n < rounds; n++) {
        // The same holder for all: each acquire takes the lease over from the one before.
        const call = { ttlMs: 20_000, inbox: 'x', timeoutMs: 5_000 };
        const [reply] = await leases.acquire([{ key, holder: 'shared' }], call);
        if (reply?.kind !== 'granted') continue;
        const tx = await pool.connect();
        try {
          await tx.query('BEGIN');
          await tx.query(guard?.sql(key, reply.fence) ?? '');
          // Time for another process to take the lease over, if it could.
          await tx.query('SELECT pg_sleep(0.01)');
          // The row gets its number under a lock that is held until the commit.
          await tx.query('LOCK TABLE written IN EXCLUSIVE MODE');
          await tx.query('INSERT INTO written (fence) VALUES ($1)', [reply.fence]);
          await tx.query('COMMIT');
          commits++;
        } catch (error) {
          expect(error).toMatchObject({ code: 'HF001' });
          await tx.query('ROLLBACK');
        } finally {
          tx.release();
        }
      }
    };
    await Promise.all(stores.map((store) => work(store, 30)));
    await Promise.all(stores.map((store) => store.close()));
    expect(commits).toBeGreaterThan(5);
    const rows = await server.sql<{ fence: string }>('SELECT fence FROM written ORDER BY n');
    const fences = rows.map(({ fence }) => Number(fence));
    expect(fences).toEqual([...fences].sort((a, b) => a - b));
  });

  it('B-22 guards through a function, and as withLease gives it', async () => {
    const [first, key] = [await instance('a'), newKey()];
    const statements: string[] = [];
    await first.withLease(key, async ({ guard, lease }) => {
      await guard(async (sql) => {
        statements.push(sql);
        await pool.query(sql);
      });
      expect(statements).toEqual([lease.guardSql()]);
    });
  });

  it('B-22 refuses a transaction that it cannot run a statement in', async () => {
    const first = await instance('a');
    const builder = Object.assign(() => Promise.resolve(), { raw: () => {} });
    // A pool would run the statement in a transaction of its own.
    for (const transaction of [{}, null, 'tx', { query: {} }, builder, pool])
      await expect(
        first.withLease(newKey(), ({ guard }) => guard(transaction as never)),
      ).rejects.toMatchObject({ code: 'CONFIG_INVALID', field: 'transaction' });
  });

  it('B-22 on another store guard throws GUARD_NOT_OFFERED, with what to do', async () => {
    const holdfast = await open(createMemoryStore());
    await holdfast.withLease('x', async ({ guard, lease }) => {
      const refusal = { code: 'GUARD_NOT_OFFERED', store: 'memory:', key: 'x' };
      await expect(guard({ query: async () => {} })).rejects.toMatchObject(refusal);
      expect(() => lease.guardSql()).toThrow(/fenceSql/);
    });
    await holdfast.close();
  });
});
