import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Holdfast, open } from '../../src/holdfast.ts';
import { RUN_STEPS_MOST } from '../../src/store/port/run-store.ts';
import { stepViews } from '../../src/workflow/kept-step.ts';
import type { Orchestrator } from '../../src/workflow/orchestrator.ts';
import type { StepContext } from '../../src/workflow/workflow-run.ts';
import { spawnChild } from '../support/child.ts';
import { advanceBy, MOVABLE_CLOCK } from '../support/postgres-clock.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { until } from '../support/until.ts';

// A step that keeps its result in the transaction of its rows: both are there, or neither.

/** A busy machine takes long to start a process. */
const START_MS = 60_000;

let server: PostgresServer;
let pool: pg.Pool;
let holdfast: Holdfast;
let other: Holdfast;
let number = 0;
let id = '';

beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
  pool = new pg.Pool({ connectionString: server.url });
  pool.on('error', () => {});
  holdfast = await open(server.url, { name: 'one' });
  other = await open(server.url, { name: 'other' });
  await server.sql(`${MOVABLE_CLOCK()}; CREATE TABLE shelf (workflow text, item text)`);
}, 60_000);
afterAll(async () => {
  await Promise.all([holdfast.close(), other.close()]);
  await pool.end();
  await server[Symbol.asyncDispose]();
});
beforeEach(() => {
  id = `order-${++number}`;
});

/** Claims the workflow, as an instance that continues it does. */
const claimed = (by = holdfast) => by.workflows.claim(id, { ttl: '2m', wait: '10s' });
/** How many rows of the user there are. */
const rows = async () => (await server.sql(`SELECT FROM shelf WHERE workflow = '${id}'`)).length;
const insert = (tx: pg.PoolClient) => tx.query('INSERT INTO shelf VALUES ($1, $2)', [id, 'tea']);
const isWaiting = async () =>
  (await server.sql(`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`)).length > 0;

type Work = (tx: pg.PoolClient) => Promise<unknown>;
/** A transaction as users write it. */
async function transaction(work: Work, begin = 'BEGIN'): Promise<unknown> {
  const tx = await pool.connect();
  try {
    await tx.query(begin);
    const result = await work(tx);
    await tx.query('COMMIT');
    return result;
  } catch (error) {
    await tx.query('ROLLBACK');
    throw error;
  } finally {
    tx.release();
  }
}

/** One row, and the result `{ shelf: tries }`. */
const reserve = ({ keep, tries }: StepContext) =>
  transaction(async (tx) => {
    await insert(tx);
    return keep(tx, { shelf: tries });
  });

/** What the next tenure finds: it must not run the step again. */
async function replayed(): Promise<unknown> {
  await using order = await claimed(other);
  return await order.step('reserve', () => 'it ran again');
}

/** Runs the step in a tenure of its own, and then looks from another. */
async function stepped(run: Parameters<Orchestrator['step']>[1], options = {}): Promise<unknown> {
  await using order = await claimed();
  return await order.step('reserve', run, options);
}

describe('a step that keeps its result in a transaction on PostgreSQL', () => {
  it('B-16 B-22 commits rows and result together, once', async () => {
    expect(await stepped(reserve)).toEqual({ shelf: 1 });
    expect(await replayed()).toEqual({ shelf: 1 });
    expect(await rows()).toBe(1);
  });

  it('B-16 B-22 rolls both back with the transaction, and runs again with the next try', async () => {
    const run = (context: StepContext) =>
      transaction(async (tx) => {
        await insert(tx);
        const result = await context.keep(tx, { shelf: context.tries });
        if (context.tries < 3) throw new Error('constraint');
        return result;
      });
    const retry = { tries: 3, backoff: '1ms..1ms' } as const;
    expect(await stepped(run, { retry })).toEqual({ shelf: 3 });
    expect(await replayed()).toEqual({ shelf: 3 });
    expect(await rows()).toBe(1);
  });

  it('B-16 B-22 whose transaction was rolled back behind its back has failed, and has no rows', async () => {
    await using order = await claimed();
    const run = ({ keep }: StepContext) =>
      transaction(async (tx) => {
        await insert(tx);
        await keep(tx, 'kept');
        throw new Error('swallowed');
      }).catch(() => 'as if it had committed');
    await expect(order.step('reserve', run)).rejects.toMatchObject({
      code: 'WORKFLOW_STEP_FAILED',
      cause: { code: 'STEP_TRANSACTION', reason: 'uncommitted', step: 'reserve' },
    });
    expect(await rows()).toBe(0);
  });

  it('B-16 B-22 whose COMMIT got no answer has what the database has, and no other try', async () => {
    let tries = 0;
    const run = async (context: StepContext) => {
      tries++;
      await reserve(context);
      throw new Error('Connection terminated unexpectedly');
    };
    expect(await stepped(run, { retry: { tries: 3 } })).toEqual({ shelf: 1 });
    expect(tries).toBe(1);
    expect(await replayed()).toEqual({ shelf: 1 });
    expect(await rows()).toBe(1);
  });

  it('B-16 B-22 whose transaction is open when it throws has the outcome of that transaction', async () => {
    await using order = await claimed();
    const tx = await pool.connect();
    const step = order.step('reserve', async ({ keep }) => {
      await tx.query('BEGIN');
      await insert(tx);
      await keep(tx, 'of the transaction');
      throw new Error('gave up waiting');
    });
    await until(isWaiting, { what: 'the failure to wait for the transaction' });
    await tx.query('COMMIT');
    tx.release();
    expect(await step).toBe('of the transaction');
    expect(await rows()).toBe(1);
  });

  it('B-16 B-22 cannot commit when another tenure has the workflow', async () => {
    const order = await claimed();
    let result: unknown;
    const run = async (context: StepContext) => {
      let statement = '';
      const listen = async (sql: string) => {
        statement = sql;
      };
      await context.keep(listen, 'stale');
      // As a process that is frozen here, and has not heard of it.
      await other.workflows.revokeLease(order.leaseId, 'test');
      await using next = await claimed(other);
      result = await next.step('reserve', reserve);
      const late = transaction(async (tx) => {
        await insert(tx);
        await tx.query(statement);
      });
      await expect(late).rejects.toThrow(`STEP_REFUSED not-held ${next.leaseId}`);
      // Before that, it would be given what the next tenure has kept.
      await until(() => context.signal.aborted, { what: 'the process to hear of it' });
      throw new Error('stale');
    };
    await expect(order.step('reserve', run)).rejects.toMatchObject({
      code: expect.stringMatching(/^LEASE_/),
    });
    expect(result).toEqual({ shelf: 1 });
    expect(await replayed()).toEqual({ shelf: 1 });
    expect(await rows()).toBe(1);
  });

  it('B-16 B-22 is refused with LEASE_VIOLATION when the store has given its lease away', async () => {
    const order = await claimed();
    let refused: unknown;
    const run = async (context: StepContext) => {
      await server.sql(
        `UPDATE holdfast.lease SET holder = 'next', fence = fence + 1 WHERE key = 'workflow:lease:${id}'`,
      );
      refused = await reserve(context).catch((error: unknown) => error);
      throw refused;
    };
    await expect(order.step('reserve', run)).rejects.toMatchObject({
      code: expect.stringMatching(/^LEASE_/),
    });
    const context = { workflow_id: id, expected_lease: 'next', received_lease: order.leaseId };
    expect(refused).toMatchObject({ code: 'LEASE_VIOLATION', context });
    expect(await rows()).toBe(0);
  });

  it('B-16 B-22 keeps the next tenure waiting until its transaction has ended', async () => {
    const order = await claimed();
    const tx = await pool.connect();
    let replay: Promise<unknown> | undefined;
    const run = async ({ keep }: StepContext) => {
      await tx.query('BEGIN');
      await insert(tx);
      await keep(tx, 'in time');
      await server.sql(advanceBy(121_000));
      replay = replayed();
      await until(isWaiting, { what: 'the takeover to wait', deadlineMs: 5_000 });
      await tx.query('COMMIT');
      return null;
    };
    const step = order.step('reserve', run).catch(() => {});
    await step;
    tx.release();
    expect(await replay).toBe('in time');
    expect(await rows()).toBe(1);
    await order.release();
  });

  it('B-16 refuses a second result of the same step, with its transaction', async () => {
    const run = async (context: StepContext) => {
      await reserve(context);
      const second = { code: 'STEP_TRANSACTION', reason: 'kept', step: 'reserve' };
      await expect(reserve(context)).rejects.toMatchObject(second);
    };
    expect(await stepped(run)).toEqual({ shelf: 1 });
    expect(await rows()).toBe(1);
  });

  it('B-16 B-22 is refused by PostgreSQL if its snapshot is older than another step', async () => {
    await using order = await claimed();
    const run = ({ keep }: StepContext) =>
      transaction(async (tx) => {
        await insert(tx);
        await order.step('meanwhile', () => 1);
        return keep(tx, 1);
      }, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
    await expect(order.step('reserve', run)).rejects.toMatchObject({ cause: { code: '40001' } });
    expect(await rows()).toBe(0);
  });

  it('B-16 counts to the limits of a workflow, and is refused beyond them', async () => {
    await using order = await claimed();
    await order.step('first', () => 1);
    await server.sql(`UPDATE holdfast.run SET steps = ${RUN_STEPS_MOST} WHERE workflow =
      (SELECT number FROM holdfast.workflow WHERE id = '${id}')`);
    const full = { code: 'WORKFLOW_STEPS_FULL', steps: RUN_STEPS_MOST, signals: 0 };
    let refused: unknown;
    const run = (context: StepContext) =>
      reserve(context).catch((error: unknown) => {
        refused = error;
        throw error;
      });
    await expect(order.step('reserve', run)).rejects.toMatchObject(full);
    expect(refused).toMatchObject(full);
    expect(await rows()).toBe(0);
  });

  it('B-16 refuses a result that is not JSON, before it reaches the transaction', async () => {
    await using order = await claimed();
    const run = ({ keep }: StepContext) => transaction((tx) => keep(tx, 1n));
    await expect(order.step('reserve', run)).rejects.toMatchObject({ code: 'CONFIG_INVALID' });
  });

  it('B-16 B-22 keeps any text through postgres.js and through a function', async () => {
    const text = '? ?? :name $1 % \\ \' " ` {} \n \0 ä 😀 \ud800 -- /* */ ;';
    const sql = postgres(server.url, { max: 1, onnotice: () => {} });
    await using order = await claimed();
    const first = await order.step('a', ({ keep }) => sql.begin((tx) => keep(tx, { text })));
    const second = await order.step('b', ({ keep }) =>
      sql.begin((tx) => keep((q) => tx.unsafe(q), [text])),
    );
    await sql.end();
    await order.release();
    await using next = await claimed(other);
    const read = [await next.step('a', () => null), await next.step('b', () => null)];
    expect(read).toEqual([{ text }, [text]]);
    expect([first, second]).toEqual(read);
  });

  it('B-16 B-20 is in the history and in the list of steps like any other', async () => {
    const retry = { tries: 2, backoff: '1ms..1ms' } as const;
    const run = (context: StepContext) => {
      if (context.tries === 1) throw new Error('first try');
      return reserve(context);
    };
    await stepped(run, { retry });
    const kept = await holdfast.workflows.steps(id);
    const [step] = stepViews(id, kept ?? { run: null, steps: [] }, []);
    expect(step).toMatchObject({ name: 'reserve', state: 'done', tries: 2, value: { shelf: 2 } });
    expect(step?.failed).toMatchObject([{ tries: 1, error: 'first try' }]);
  });

  it.each(['rows', 'keep', 'commit'])(
    'B-16 B-22 of a process that is killed with -9 after %s, rows and result are there once',
    async (point) => {
      const child = spawnChild('step-transaction.mjs', { args: [server.url, id, point] });
      const { signal } = await child.exit(START_MS);
      expect(signal).toBe('SIGKILL');
      const isCommitted = point === 'commit';
      await until(async () => (await rows()) === (isCommitted ? 1 : 0), { what: 'the rows' });
      await server.sql(advanceBy(11_000));
      const next = spawnChild('step-transaction.mjs', { args: [server.url, id, 'never'] });
      const { result, ran } = await next.next('done', START_MS);
      await next.kill();
      // By the process that was killed, if it came to its COMMIT.
      expect(ran).toBe(!isCommitted);
      expect(result).toEqual({ by: isCommitted ? child.pid : next.pid });
      expect(await rows()).toBe(1);
    },
    2 * START_MS,
  );
});
