/** One guarded transaction with each client: `guard` is its first statement, and then come your own. */
import { sql as drizzleSql } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/node-postgres';
import { integer, pgTable } from 'drizzle-orm/pg-core';
import knex from 'knex';
import { CompiledQuery, Kysely, sql as kyselySql, PostgresDialect } from 'kysely';
import pg from 'pg';
import postgres from 'postgres';

/** What each of them writes: `withdraw(guard, amount)`. */
export function clientsOf(url) {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  const sql = postgres(url, { max: 2, onnotice: () => {} });
  const orm = drizzle(pool);
  const account = pgTable('guard_account', { id: integer(), balance: integer() });
  const kysely = new Kysely({ dialect: new PostgresDialect({ pool }) });
  const queryBuilder = knex({ client: 'pg', connection: url, pool: { min: 0, max: 2 } });

  const withdraw = {
    async pg(guard, amount) {
      const tx = await pool.connect();
      try {
        await tx.query('BEGIN');
        await guard(tx);
        await tx.query('UPDATE guard_account SET balance = balance - $1', [amount]);
        await tx.query('COMMIT');
      } catch (error) {
        await tx.query('ROLLBACK');
        throw error;
      } finally {
        tx.release();
      }
    },

    postgres: (guard, amount) =>
      sql.begin(async (tx) => {
        await guard(tx);
        await tx`UPDATE guard_account SET balance = balance - ${amount}`;
      }),

    Drizzle: (guard, amount) =>
      orm.transaction(async (tx) => {
        await guard((statement) => tx.execute(drizzleSql.raw(statement)));
        await tx.update(account).set({ balance: drizzleSql`balance - ${amount}` });
      }),

    Kysely: (guard, amount) =>
      kysely.transaction().execute(async (tx) => {
        await guard((statement) => tx.executeQuery(CompiledQuery.raw(statement)));
        await tx
          .updateTable('guard_account')
          .set({ balance: kyselySql`balance - ${amount}` })
          .execute();
      }),

    Knex: (guard, amount) =>
      queryBuilder.transaction(async (tx) => {
        await guard((statement) => tx.raw(statement));
        await tx('guard_account').decrement('balance', amount);
      }),
  };

  const close = () => Promise.all([pool.end(), sql.end(), queryBuilder.destroy()]);
  return { withdraw, pool, sql, close };
}
