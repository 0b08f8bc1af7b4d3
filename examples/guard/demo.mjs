#!/usr/bin/env node
/** A process that has lost its lease cannot commit: one guarded transaction with each of five clients of PostgreSQL. */
import { randomBytes } from 'node:crypto';
import { open } from 'holdfast';
import { stage } from '../staging/stage.mjs';
import { claim, tell, title } from '../staging/telling.mjs';
import { clientsOf } from './clients.mjs';
import { postgresFor } from './server.mjs';

const ABOUT = `The lease and the rows are in one database. A transaction that guard has let pass commits; a process that has lost its lease
gets FENCE_STALE, and its transaction is rolled back. With pg, postgres, Drizzle, Kysely and Knex.
A workflow step commits its result with its rows, and so writes them once.
PostgreSQL is a new server in a folder of this run, or with DATABASE_URL=postgres://… yours: the example makes a
schema and a table there, and drops both. --store is not used.`;

await stage({ name: 'guard', about: ABOUT }, async ({ folder }) => {
  const { url, stop } = await postgresFor(folder);
  const schema = `guard_${randomBytes(4).toString('hex')}`;
  const address = new URL(url);
  address.searchParams.set('schema', schema);
  const { withdraw, pool, sql, close } = clientsOf(url);
  const [ana, ben] = await Promise.all(['ana', 'ben'].map((name) => open(address.href, { name })));
  try {
    await pool.query('CREATE TABLE guard_account (id int, balance int)');
    await pool.query('INSERT INTO guard_account VALUES (7, 100)');
    for (const [client, run] of Object.entries(withdraw))
      await play(client, run, { ana, ben, pool });
    await playStep({ ana, ben, pool, sql });
    // It would make the schema holdfast, which stays.
    if (!process.env.DATABASE_URL) await adopt(sql);
  } finally {
    await Promise.all([ana.close(), ben.close()]);
    await pool.query(`DROP TABLE IF EXISTS guard_account; DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await close();
    await stop();
  }
});

/** ana withdraws 10 under its lease, loses the lease, and tries again. */
async function play(client, run, { ana, ben, pool }) {
  title(client);
  const key = `account-7/${client}`;
  const { lease } = await ana.acquire(key);
  const guard = (tx) => lease.guard(tx);
  const before = await balanceOf(pool);
  await run(guard, 10);
  const after = await balanceOf(pool);
  claim(after === before - 10, `ana has the lease, and its transaction commits: ${after}`);

  await ben.revoke(key, { reason: 'for the example', force: true });
  const { lease: next } = await ben.acquire(key);
  tell('ben', `has the lease, fence ${next.fence}`);
  // As a process that was frozen and has not heard of it: it presents the fence that it had.
  const stale = await run((tx) => presentOld(tx, lease), 10).then(
    () => null,
    (error) => error,
  );
  claim(/FENCE_STALE/.test(allOf(stale)), 'ana has lost it, and gets FENCE_STALE');
  claim((await balanceOf(pool)) === after, `nothing of its transaction is there: ${after}`);
  await next.release();
}

/** A step of a workflow commits its rows and its result in one transaction. */
async function playStep({ ana, ben, pool, sql }) {
  title('a workflow step');
  const before = await balanceOf(pool);
  const pay = ({ keep }) =>
    sql.begin(async (tx) => {
      await tx`UPDATE guard_account SET balance = balance - 10`;
      return keep(tx, { paid: 10 });
    });
  const order = await ana.workflows.claim('order-7');
  await order.step('pay', async (context) => {
    await pay(context);
    throw new Error('the connection broke before the answer to COMMIT');
  });
  const after = await balanceOf(pool);
  claim(after === before - 10, `ana loses the answer to COMMIT, and the step is done: ${after}`);
  await order.release();

  const next = await ben.workflows.claim('order-7');
  const { paid } = await next.step('pay', pay);
  claim(paid === 10, 'ben continues, and finds the result of the step');
  claim((await balanceOf(pool)) === after, `nothing is paid twice: ${after}`);
  await next.release();
}

/** The statement as `guardSql` gave it when the lease was held. */
function presentOld(tx, lease) {
  const run = tx.unsafe ?? tx.query ?? tx;
  return run.call(tx, lease.guardSql());
}

function allOf(error) {
  return error === null ? '' : `${error.message} ${error.cause?.message ?? ''}`;
}

async function balanceOf(pool) {
  const { rows } = await pool.query('SELECT balance FROM guard_account');
  return rows[0].balance;
}

/** Holdfast on an instance of postgres.js: it copies the settings, and opens its own connections. */
async function adopt(sql) {
  title('open(sql)');
  const holdfast = await open(sql, { prefix: 'guard-example:' });
  const isGuarded = await holdfast.withLease('account-7', ({ guard }) =>
    sql.begin(async (tx) => {
      await guard(tx);
      return true;
    }),
  );
  claim(isGuarded, 'a lease through an instance of postgres guards its transactions');
  await holdfast.close();
}
