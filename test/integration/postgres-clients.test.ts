import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Holdfast, open } from '../../src/holdfast.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { until } from '../support/until.ts';

let server: PostgresServer;
let sql: postgres.Sql;
let holdfast: Holdfast;
beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
  sql = postgres(server.url, { max: 2, onnotice: () => {} });
  holdfast = await open(sql, { name: 'adopted' });
  await sql`CREATE TABLE account (balance int)`;
});
afterAll(async () => {
  await holdfast.close();
  await sql.end();
  await server[Symbol.asyncDispose]();
});

const connections = async () =>
  (await server.sql(`SELECT FROM pg_stat_activity WHERE application_name = 'holdfast'`)).length;

describe('postgres (postgres.js)', () => {
  it('B-21 open takes an instance, opens connections of its own, and ends them', async () => {
    const before = await connections();
    const other = await open(sql, { name: 'other' });
    const acquired = await other.acquire('key');
    expect(acquired.ok && acquired.lease.fence).toBeGreaterThan(0);
    expect(await connections()).toBeGreaterThan(before);
    await other.close();
    await until(async () => (await connections()) === before, { what: 'its connections to end' });
    expect(await sql`SELECT 1 AS one`).toEqual([{ one: 1 }]);
  });

  it('B-21 hints reach a waiter of another instance', async () => {
    const other = await open(sql, { name: 'waiter' });
    const held = await holdfast.acquire('hinted', { ttl: '30s' });
    const waiting = other.acquire('hinted', { wait: '20s' });
    await until(async () => (await server.sql('SELECT FROM holdfast.line')).length > 0, {
      what: 'the waiter to be in line',
    });
    if (held.ok) await held.lease.release();
    expect(await waiting).toMatchObject({ ok: true });
    await other.close();
  });

  it('B-21 a connection that is lost is made again', async () => {
    await server.sql(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'`,
    );
    const again = () =>
      holdfast.acquire('again').then(
        ({ ok }) => ok,
        () => false,
      );
    await until(again, { what: 'a lease after the connections were lost' });
  });

  it('B-22 guard takes a transaction of it, and refuses the instance itself', async () => {
    await holdfast.withLease('guarded', async ({ guard, lease }) => {
      await sql.begin(async (tx) => {
        await guard(tx);
        await tx`INSERT INTO account VALUES (1)`;
      });
      await expect(guard(sql)).rejects.toMatchObject({
        code: 'CONFIG_INVALID',
        message: expect.stringMatching(/the transaction that the client has begun/),
      });
      const { fence } = lease;
      await holdfast.revoke('guarded', { reason: 'test', force: true });
      const refused = sql.begin(async (tx) => {
        await tx.unsafe(lease.guardSql());
        await tx`INSERT INTO account VALUES (2)`;
      });
      await expect(refused).rejects.toMatchObject({ code: 'HF001' });
      expect(await sql`SELECT balance FROM account`).toEqual([{ balance: 1 }]);
      expect(fence).toBeGreaterThan(0);
    });
  });
});
