import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Holdfast, open } from '../../src/holdfast.ts';
import type { GuardableTransaction } from '../../src/lease/guard.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { until } from '../support/until.ts';

let server: PostgresServer;
let pool: pg.Pool;
let holdfast: Holdfast;

/** Guards one transaction, and writes down which leases the transaction presents. */
const presented: Record<string, string> = {};
const write = async (who: string, guard: (tx: GuardableTransaction) => Promise<void>) => {
  const tx = await pool.connect();
  await tx.query('BEGIN');
  await guard(tx);
  const { rows } = await tx.query(`SELECT current_setting('holdfast.lease') AS lease`);
  await tx.query('COMMIT');
  tx.release();
  presented[who] = rows[0].lease;
};
const presentedBy = (who: string) =>
  until(() => presented[who] !== undefined, { what: `${who} to write`, deadlineMs: 20_000 });

beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
  pool = new pg.Pool({ connectionString: server.url });
  pool.on('error', () => {});
  holdfast = await open(server.url, {
    name: 'a',
    kinds: {
      report: {
        pool: 'desks',
        run: async (_, { guard }) => write('session', guard),
      },
    },
  });
});
afterAll(async () => {
  await holdfast.close();
  await pool.end();
  await server[Symbol.asyncDispose]();
});

describe('guard on PostgreSQL, where Holdfast calls you', () => {
  it('B-22 a poll is guarded by the lease of its target', async () => {
    await holdfast.targets.add({ id: 'polled', url: 'http://127.0.0.1:1' });
    const poller = holdfast.poller({ poll: ({ id }, { guard }) => write(id, guard) });
    await poller.start();
    await presentedBy('polled');
    await poller.stop();
    await holdfast.targets.remove('polled');
    expect(presented.polled).toMatch(/^poll:lease:polled:\d{16}$/);
  });

  it('B-22 a task is guarded by the lease of its target', async () => {
    await holdfast.targets.add({ id: 'task', url: 'http://127.0.0.1:1' });
    const runner = holdfast.runner({
      run: async ({ id }, { guard, signal }) => {
        await write(id, guard);
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
      },
    });
    await runner.start();
    await presentedBy('task');
    await runner.stop();
    await holdfast.targets.remove('task');
    expect(presented.task).toMatch(/^poll:lease:task:\d{16}$/);
  });

  it('B-22 a session is guarded by its own lease and by that of its slot', async () => {
    const worker = holdfast.worker({ pools: { desks: 1 } });
    await worker.start();
    const intent = { type: 'start', kind: 'report', params: {} } as const;
    await holdfast.intents().submit(intent, { tenant: null, client: 'test' });
    await presentedBy('session');
    await worker.stop();
    expect(presented.session?.split('\n')).toEqual([
      expect.stringMatching(/^lease:.*:\d{16}$/),
      expect.stringMatching(/^lease:.*desks.*:\d{16}$/),
    ]);
  });
});
