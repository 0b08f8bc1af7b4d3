import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { LeaseStore } from '../../src/store/port/lease-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { advanceBy, MOVABLE_CLOCK } from '../support/postgres-clock.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { until } from '../support/until.ts';

// What happens while rows are locked. Another transaction has them, so that the test decides when
// waiting verbs continue; and verbs are patient enough to run into a deadlock, if there is one.

const CALL = { timeoutMs: 8_000 };
const TTL_MS = 20_000;
const ACQUIRE = { ...CALL, ttlMs: TTL_MS, inbox: 'inbox' };
const PATIENT = `CREATE OR REPLACE FUNCTION holdfast.patience_us() RETURNS bigint LANGUAGE sql IMMUTABLE AS
  'SELECT 5000000::bigint'`;

let server: PostgresServer;
let stores: readonly [Store, Store];
let other: pg.Client;
/** Has the second row, while `other` has the first. */
let second: pg.Client;
let number = 0;
/** In the order of the keys, and in the other. */
let keys: readonly [string, string] = ['', ''];
let fences: number[] = [];

beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
  stores = [await openPostgresStore(server.url), await openPostgresStore(server.url)];
  await server.sql(`${MOVABLE_CLOCK()}; ${PATIENT}`);
  other = new pg.Client({ connectionString: server.url });
  second = new pg.Client({ connectionString: server.url });
  await Promise.all([other.connect(), second.connect()]);
}, 60_000);
afterAll(async () => {
  await Promise.all([other.end(), second.end()]);
  await Promise.all(stores.map((store) => store.close()));
  await server[Symbol.asyncDispose]();
});
beforeEach(() => {
  number++;
  keys = [`lease:${number}-a`, `lease:${number}-b`];
});

const hold = async () => {
  const [{ leases }] = stores;
  const replies = await leases.acquire(askedBy(keys), ACQUIRE);
  fences = replies.map((reply) => (reply.kind === 'granted' ? reply.fence : 0));
};
const askedBy = (order: readonly string[], holder = 'h') => order.map((key) => ({ key, holder }));
const heldBy = (order: readonly string[]) =>
  order.map((key) => ({ key, holder: 'h', fence: fences[keys.indexOf(key)] ?? 0 }));
const list = (order: readonly string[]) => order.map((key) => `'${key}'`).join();
const untilWaiting = (count: number) =>
  until(
    async () => {
      const sql = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'`;
      return (await server.sql(sql)).length === count;
    },
    { what: `${count} verbs to wait`, deadlineMs: 5_000 },
  );
const lockLeases = () =>
  other.query(`BEGIN; SELECT FROM holdfast.lease WHERE key IN (${list(keys)}) FOR UPDATE`);

interface Case {
  readonly verb: string;
  /** Makes what the verb is about. */
  readonly prepare?: () => Promise<unknown>;
  /** How another transaction gets in the way at a key: SQL. */
  readonly block?: (key: string) => string;
  readonly run: (leases: LeaseStore, order: readonly string[]) => Promise<readonly unknown[]>;
  readonly unblock?: string;
}

const lapse = async () => {
  await hold();
  await server.sql(advanceBy(TTL_MS + 1_000));
};
const lockLease = (key: string) =>
  `BEGIN; SELECT FROM holdfast.lease WHERE key = '${key}' FOR UPDATE`;
const CASES: readonly Case[] = [
  {
    verb: 'acquire of taken keys',
    prepare: lapse,
    run: (leases, order) => leases.acquire(askedBy(order), ACQUIRE),
  },
  {
    verb: 'acquire of new keys',
    prepare: async () => {},
    block: (key) =>
      `BEGIN; INSERT INTO holdfast.lease (key, fence, until, kept) VALUES ('${key}', 1, 0, 0)`,
    run: (leases, order) => leases.acquire(askedBy(order), ACQUIRE),
    unblock: 'ROLLBACK',
  },
  {
    verb: 'renew',
    run: (leases, order) => leases.renew(askedBy(order), { ...CALL, ttlMs: TTL_MS }),
  },
  { verb: 'release', run: (leases, order) => leases.release(heldBy(order), CALL) },
  {
    verb: 'transfer',
    run: (leases, order) => {
      const handovers = heldBy(order).map((one) => ({ ...one, successor: 's' }));
      return leases.transfer(handovers, { ...CALL, windowMs: 1_000 });
    },
  },
  {
    verb: 'reassert',
    prepare: lapse,
    run: (leases, order) => leases.reassert(heldBy(order), { ...ACQUIRE, forgotten: false }),
  },
  {
    verb: 'wakeNext',
    prepare: async () => {
      await hold();
      const asks = askedBy(keys, 'waiter').map((ask) => ({ ...ask, waitedMs: 0 }));
      await stores[0].leases.acquire(asks, ACQUIRE);
    },
    block: (key) => `BEGIN; SELECT FROM holdfast.line WHERE key = '${key}' FOR UPDATE`,
    run: (leases, order) =>
      leases.wakeNext(order, { ...CALL, leaving: 'inbox', most: 1, apartMs: 0 }),
  },
];

describe('batches on PostgreSQL that wait for the same rows in opposite orders', () => {
  // Each batch gets its first row before it waits for its second one: unless both begin with the
  // same row, each then has what the other needs.
  it.each(CASES)('B-21 $verb: none of them fails', async (one) => {
    const { prepare = hold, block = lockLease, run, unblock = 'COMMIT' } = one;
    await prepare();
    await other.query(block(keys[0]));
    await second.query(block(keys[1]));
    const forwards = run(stores[0].leases, keys);
    const backwards = run(stores[1].leases, [...keys].reverse());
    await untilWaiting(2);
    await other.query(unblock);
    await untilPast(other);
    await second.query(unblock);
    const replies = (await Promise.all([forwards, backwards])).flat();
    expect(replies).toHaveLength(4);
    expect(replies.filter((reply) => (reply as { kind?: string }).kind === 'failed')).toEqual([]);
  });
});

/** Until two verbs wait, and neither for what this client had. */
async function untilPast(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const sql = `SELECT FROM pg_stat_activity, pg_blocking_pids(pid) AS blocking
    WHERE wait_event_type = 'Lock' AND cardinality(blocking) > 0 AND ${rows[0]?.pid} <> ALL (blocking)`;
  const what = 'the first row to be taken';
  await until(async () => (await server.sql(sql)).length === 2, { what, deadlineMs: 5_000 });
}

describe('a verb on PostgreSQL that waited for a row', () => {
  it('B-21 judges by the time after the wait: a holder whose lease expired meanwhile gets another fence', async () => {
    await hold();
    await lockLeases();
    const [{ leases }] = stores;
    const [key] = keys;
    const again = leases.acquire([{ key, holder: 'h', fence: fences[0] ?? 0 }], ACQUIRE);
    await untilWaiting(1);
    await server.sql(advanceBy(TTL_MS + 1_000));
    await other.query('COMMIT');
    const [reply] = await again;
    expect(reply?.kind === 'granted' && reply.fence).toBeGreaterThan(fences[0] ?? 0);
  });

  it('B-21 does not renew a lease that expired meanwhile', async () => {
    await hold();
    await lockLeases();
    const renewal = stores[0].leases.renew(askedBy(keys), { ...CALL, ttlMs: TTL_MS });
    await untilWaiting(1);
    await server.sql(advanceBy(TTL_MS + 1_000));
    await other.query('COMMIT');
    expect((await renewal).map(({ kind }) => kind)).toEqual(['vanished', 'vanished']);
  });

  it('B-21 does not transfer a lease that expired meanwhile', async () => {
    await hold();
    await lockLeases();
    const [key] = keys;
    const handover = { key, holder: 'h', fence: fences[0] ?? 0, successor: 's' };
    const transfer = stores[0].leases.transfer([handover], { ...CALL, windowMs: 1_000 });
    await untilWaiting(1);
    await server.sql(advanceBy(TTL_MS + 1_000));
    await other.query('COMMIT');
    expect(await transfer).toEqual([{ kind: 'not-held', holder: null, fence: fences[0] }]);
  });

  it('B-25 does not revive a keepalive that lapsed meanwhile', async () => {
    await hold();
    const [{ leases }] = stores;
    const attachTo = { id: `k${number}`, isNew: true };
    const tenures = heldBy(keys);
    await leases.renew(tenures, { ...CALL, ttlMs: TTL_MS, attachTo });
    await other.query(`BEGIN; SELECT FROM holdfast.keepalive WHERE id = 'k${number}' FOR UPDATE`);
    const call = { ...CALL, ttlMs: TTL_MS, version: 1, acknowledged: [] };
    const kept = leases.keepAlive?.(attachTo.id, call);
    await untilWaiting(1);
    await server.sql(advanceBy(TTL_MS + 1_000));
    await other.query('COMMIT');
    expect(await kept).toEqual({ kind: 'gone' });
    const seen = await leases.read(keys, CALL);
    expect(seen.map(({ kind }) => kind)).toEqual(['free', 'free']);
  });
});

describe('a verb on PostgreSQL that takes too long', () => {
  it('B-21 is stopped by the server before its caller gives up, and commits nothing', async () => {
    const [key] = keys;
    await server.sql(`CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN IF NEW.key = '${key}' THEN PERFORM pg_sleep(30); END IF; RETURN NEW; END $$;
      CREATE TRIGGER slow BEFORE INSERT ON holdfast.lease FOR EACH ROW EXECUTE FUNCTION public.slow()`);
    const acquire = stores[0].leases.acquire(askedBy([key]), { ...ACQUIRE, timeoutMs: 500 });
    const refusal = { code: 'STORE_REFUSED', reply: expect.stringMatching(/57014/) };
    await expect(acquire).rejects.toMatchObject(refusal);
    const active = `SELECT FROM pg_stat_activity WHERE state = 'active' AND application_name = 'holdfast'`;
    // A session counts as active for a moment after its answer.
    await until(async () => (await server.sql(active)).length === 0, { what: 'idle sessions' });
    expect(await server.sql(`SELECT FROM holdfast.lease WHERE key = '${key}'`)).toEqual([]);
    await server.sql('DROP TRIGGER slow ON holdfast.lease; DROP FUNCTION public.slow');
  });
});
