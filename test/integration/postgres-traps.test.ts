import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import { open } from '../../src/holdfast.ts';
import type { AcquireReply } from '../../src/store/port/lease-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import { judge, readFacts } from '../../src/store/postgres/examination.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { startPgbouncer } from '../support/pgbouncer.ts';
import { advanceBy, MOVABLE_CLOCK } from '../support/postgres-clock.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { until } from '../support/until.ts';

let server: PostgresServer;
const stores: Store[] = [];
const opened = async (from: Parameters<typeof openPostgresStore>[0] = server.url, options = {}) => {
  const store = await openPostgresStore(from, options);
  stores.push(store);
  return store;
};
const CALL = { timeoutMs: 5_000 };
const acquireCall = (ttlMs = 20_000) => ({ ...CALL, ttlMs, inbox: 'inbox' });
const fenceOf = (reply: AcquireReply | undefined) => {
  expect(reply).toMatchObject({ kind: 'granted' });
  return reply?.kind === 'granted' ? reply.fence : 0;
};
const acquire = async (store: Store, key: string, holder: string, ttlMs?: number) =>
  fenceOf((await store.leases.acquire([{ key, holder }], acquireCall(ttlMs)))[0]);
let keys = 0;
const newKey = () => `lease:trap-${keys++}`;

beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
  await opened();
}, 60_000);
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await server[Symbol.asyncDispose]();
});

describe('a verb on PostgreSQL', () => {
  it('B-21 batches of the same keys in any order do not deadlock', async () => {
    const [one, two] = [await opened(), await opened()];
    const names = Array.from({ length: 40 }, () => newKey());
    for (const key of names) await acquire(one, key, 'x');
    const before = await deadlocks();
    const rounds = async (store: Store, order: readonly string[]) => {
      for (let n = 0; n < 25; n++) {
        const asks = order.map((key) => ({ key, holder: 'x' }));
        const replies = await store.leases.acquire(asks, acquireCall());
        expect(replies.every(({ kind }) => kind !== 'failed')).toBe(true);
        await store.leases.renew(asks, { ...CALL, ttlMs: 20_000 });
        const tenures = asks.map((ask, i) => ({
          ...ask,
          fence: Number((replies[i] as { fence?: number }).fence ?? 0),
        }));
        await store.leases.release(tenures, CALL);
      }
    };
    await Promise.all([rounds(one, names), rounds(two, [...names].reverse())]);
    expect(await deadlocks()).toBe(before);
  });

  it('B-21 a plan that was made for an empty table looks up each key of a large one by itself', async () => {
    const schema = 'emptyplan';
    const { leases } = await opened(`${server.url}?schema=${schema}`);
    await leases.read([newKey()], CALL);
    const session = new pg.Client(server.url);
    await session.connect();
    const call = async (count: number) => {
      const names = Array.from({ length: count }, () => newKey());
      const holders = names.map(() => 'h');
      const acquired = await session.query(
        `SELECT ${schema}.lease_acquire($1, $2, 20000000, 'any', 'inbox', '{0}', '{}', '{}', '{}') AS reply`,
        [names, holders],
      );
      const { replies } = JSON.parse(acquired.rows[0].reply);
      await session.query(`SELECT ${schema}.lease_release('', $1, $2, $3)`, [
        names,
        holders,
        replies,
      ]);
    };
    try {
      await session.query(`ANALYZE ${schema}.lease`);
      await call(2);
      await session.query(`INSERT INTO ${schema}.lease (key, fence, until, kept)
        SELECT 'old-' || n, n, 0, 0 FROM generate_series(1, 5000) AS n`);
      await session.query('BEGIN');
      await call(50);
      const { rows } = await session.query(
        `SELECT (idx_tup_fetch + seq_tup_read)::int AS read FROM pg_stat_xact_user_tables
         WHERE schemaname = '${schema}' AND relname = 'lease'`,
      );
      expect(rows[0].read).toBeLessThan(1_000);
      await session.query('ROLLBACK');
    } finally {
      await session.end();
    }
  });

  it('B-21 releases of the same leases in opposite orders do not deadlock', async () => {
    // So that rows are found in the order in which they are asked for.
    await server.sql(`ALTER DATABASE postgres SET enable_hashjoin = off; ALTER DATABASE postgres SET enable_mergejoin = off;
      ALTER DATABASE postgres SET enable_seqscan = off`);
    const [one, two] = [await opened(), await opened()];
    const names = Array.from({ length: 500 }, () => newKey());
    const asks = names.map((key) => ({ key, holder: 'x' }));
    const before = await deadlocks();
    for (let n = 0; n < 6; n++) {
      const replies = await one.leases.acquire(asks, acquireCall());
      const tenures = asks.map((ask, i) => ({ ...ask, fence: fenceOf(replies[i]) }));
      const released = await Promise.all([
        one.leases.release(tenures, CALL),
        two.leases.release([...tenures].reverse(), CALL),
      ]);
      const kinds = released.flat().map(({ kind }) => kind);
      expect(kinds.filter((kind) => kind === 'released')).toHaveLength(names.length);
    }
    await server.sql('ALTER DATABASE postgres RESET ALL');
    expect(await deadlocks()).toBe(before);
  });

  it('B-21 grants of processes that race are in the order of their fences', async () => {
    const racers = await Promise.all([1, 2, 3].map(() => opened()));
    const key = newKey();
    const grants: number[] = [];
    const race = async (store: Store, name: string) => {
      for (let n = 0; n < 40; n++) {
        const [reply] = await store.leases.acquire([{ key, holder: name }], acquireCall());
        if (reply?.kind !== 'granted') continue;
        // Only the holder is here, so this is the order of the grants.
        grants.push(reply.fence);
        await store.leases.release([{ key, holder: name, fence: reply.fence }], CALL);
      }
    };
    await Promise.all(racers.map((store, n) => race(store, `racer-${n}`)));
    expect(grants.length).toBeGreaterThan(10);
    expect(grants).toEqual([...grants].sort((a, b) => a - b));
    expect(new Set(grants).size).toBe(grants.length);
  });

  it('B-21 a plan that was made for an empty table does not read all of a large one', async () => {
    const reads = async () => {
      const sql = `SELECT seq_scan, idx_scan FROM pg_stat_all_tables WHERE schemaname = 'plans' AND relname = 'lease'`;
      const [row] = await server.sql<{ seq_scan: string; idx_scan: string }>(sql);
      return { whole: Number(row?.seq_scan), byIndex: Number(row?.idx_scan) };
    };
    const store = await openPostgresStore(`${server.url}?schema=plans`);
    for (let n = 0; n < 10; n++) {
      const asks = Array.from({ length: 20 }, () => ({ key: newKey(), holder: 'x' }));
      const replies = await store.leases.acquire(asks, acquireCall());
      const tenures = asks.map((ask, i) => ({ ...ask, fence: fenceOf(replies[i]) }));
      await store.leases.release(tenures, CALL);
      await store.leases.acquire(asks, acquireCall());
    }
    // A session tells of its reads when it ends.
    await store.close();
    await until(async () => (await reads()).byIndex >= 400, { what: 'the sessions to end' });
    // Two for the indexes, when the table was made.
    expect((await reads()).whole).toBe(2);
  });

  it('B-21 a grant waits for the disk, and a release does not', async () => {
    await server.sql(`CREATE TABLE public.written (key text, holder text, how text);
      CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN INSERT INTO public.written VALUES (NEW.key, NEW.holder, current_setting('synchronous_commit')); RETURN NULL; END $$;
      CREATE TRIGGER note AFTER INSERT OR UPDATE ON holdfast.lease FOR EACH ROW EXECUTE FUNCTION public.note()`);
    const store = await opened();
    const key = newKey();
    const fence = await acquire(store, key, 'x');
    await store.leases.release([{ key, holder: 'x', fence }], CALL);
    await acquire(store, key, 'y');
    const sql = `SELECT holder, how FROM public.written WHERE key = '${key}'`;
    expect(await server.sql(sql)).toEqual([
      { holder: 'x', how: 'on' },
      { holder: null, how: 'off' },
      { holder: 'y', how: 'on' },
    ]);
    await server.sql(
      'DROP TRIGGER note ON holdfast.lease; DROP FUNCTION public.note; DROP TABLE public.written',
    );
  });

  it('B-21 a crash of the server undoes no grant that came after a release', async () => {
    await using own = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
    const store = await openPostgresStore(own.url);
    const key = newKey();
    const fence = await acquire(store, key, 'x');
    await store.leases.release([{ key, holder: 'x', fence }], CALL);
    const second = await acquire(store, key, 'y');
    await own.kill();
    await own.restart();
    const again = await openPostgresStore(own.url);
    const [found] = await again.leases.read([key], CALL);
    expect(found).toMatchObject({ kind: 'held', holder: 'y', fence: second });
    await store.close();
    await again.close();
  }, 60_000);

  it('B-21 a late renewal does not revive a lease that has expired, though its row is there', async () => {
    const store = await opened();
    const key = newKey();
    const fence = await acquire(store, key, 'a', 700);
    await until(async () => (await store.leases.read([key], CALL))[0]?.kind === 'free', {
      what: 'the lease to expire',
      deadlineMs: 5_000,
    });
    const [renewed] = await store.leases.renew([{ key, holder: 'a' }], { ...CALL, ttlMs: 20_000 });
    expect(renewed).toEqual({ kind: 'vanished', fence, revoked: false });
    expect(await server.sql(`SELECT FROM holdfast.lease WHERE key = '${key}'`)).toHaveLength(1);
  });

  it('B-21 a renewal of a row that stays locked is refused, and not carried out later', async () => {
    const store = await opened();
    const key = newKey();
    await acquire(store, key, 'a', 700);
    const other = new pg.Client({ connectionString: server.url });
    await other.connect();
    await other.query(`BEGIN; SELECT FROM holdfast.lease WHERE key = '${key}' FOR UPDATE`);
    // Refused while the row is locked, and not carried out later.
    const [locked] = await store.leases.renew([{ key, holder: 'a' }], { ...CALL, ttlMs: 20_000 });
    expect(locked).toMatchObject({ kind: 'failed', error: { code: 'STORE_REFUSED' } });
    await other.query('COMMIT');
    await other.end();
    await until(async () => (await store.leases.read([key], CALL))[0]?.kind === 'free', {
      what: 'the lease to expire',
      deadlineMs: 5_000,
    });
  });

  it('B-21 a row that stays locked is in the way of its own key only', async () => {
    const store = await opened();
    const [free, locked] = [newKey(), newKey()];
    for (const key of [free, locked]) await acquire(store, key, 'a');
    const other = new pg.Client({ connectionString: server.url });
    await other.connect();
    await other.query(`BEGIN; SELECT FROM holdfast.lease WHERE key = '${locked}' FOR UPDATE`);
    const asks = [free, locked].map((key) => ({ key, holder: 'a' }));
    const replies = await store.leases.acquire(asks, acquireCall());
    expect(replies.map(({ kind }) => kind)).toEqual(['granted', 'busy']);
    const renewed = await store.leases.renew(asks, { ...CALL, ttlMs: 20_000 });
    expect(renewed.map(({ kind }) => kind)).toEqual(['renewed', 'failed']);
    await other.query('COMMIT');
    await other.end();
  });

  it('B-21 a verb that is given up on does not commit later', async () => {
    const store = await opened();
    const collection = 'given-up';
    await store.records.put(collection, [{ id: 'a', value: 1 }], CALL);
    const other = new pg.Client({ connectionString: server.url });
    await other.connect();
    await other.query(
      `BEGIN; SELECT FROM holdfast.collection WHERE name = '${collection}' FOR UPDATE`,
    );
    const late = store.records.put(collection, [{ id: 'a', value: 2 }], { timeoutMs: 300 });
    await expect(late).rejects.toMatchObject({
      code: 'STORE_REFUSED',
      reply: expect.stringMatching(/55P03/),
    });
    await other.query('COMMIT');
    await other.end();
    const [found] = await store.records.get(collection, ['a'], CALL);
    expect(found).toMatchObject({ value: 1, revision: 1 });
    expect(
      await server.sql(
        `SELECT FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND application_name = 'holdfast'`,
      ),
    ).toEqual([]);
  });

  it("B-21 works under a DBA's serializable, read-only default, with other string rules and a short timeout", async () => {
    await server.sql(`ALTER DATABASE postgres SET default_transaction_isolation = 'serializable';
      ALTER DATABASE postgres SET default_transaction_read_only = on;
      ALTER DATABASE postgres SET standard_conforming_strings = off;
      ALTER DATABASE postgres SET synchronous_commit = off;
      ALTER DATABASE postgres SET statement_timeout = '5ms'`);
    try {
      const racers = await Promise.all([opened(), opened()]);
      const key = newKey();
      const race = async (store: Store, holder: string) => {
        for (let n = 0; n < 20; n++) {
          const [reply] = await store.leases.acquire([{ key, holder }], acquireCall());
          expect(reply?.kind).not.toBe('failed');
          if (reply?.kind === 'granted')
            await store.leases.release([{ key, holder, fence: reply.fence }], CALL);
        }
      };
      await Promise.all(racers.map((store, n) => race(store, `it's \\ ${n}`)));
    } finally {
      await server.sql(
        `SET TRANSACTION READ WRITE; SET LOCAL statement_timeout = 0; ALTER DATABASE postgres RESET ALL`,
      );
    }
  });

  it('B-21 a long transaction elsewhere is seen, and named with what to do', async () => {
    const other = new pg.Client({ connectionString: server.url });
    await other.connect();
    await other.query('BEGIN; SELECT 1');
    const facts = await until(
      async () => {
        const query = async (text: string) => {
          const [row] = await server.sql(text);
          return String(Object.values(row ?? {})[0]);
        };
        const found = await readFacts({ query });
        return found.oldestTransactionS > 0.1 && found;
      },
      { what: 'the age of the transaction' },
    );
    await other.end();
    const around = { isEmbedded: false, offset: null, hints: null, health: null };
    const named = (oldestTransactionS: number) =>
      judge({ ...facts, oldestTransactionS }, around).find(({ subject }) => subject === 'eviction');
    expect(named(facts.oldestTransactionS)).toMatchObject({ level: 'ok' });
    expect(named(400)).toMatchObject({
      level: 'warn',
      fact: expect.stringMatching(/^The oldest open transaction .*is 400 s old\.$/),
      advice: expect.stringMatching(/holdfast doctor names it/),
    });
  });

  it('B-21 reads fences and positions as numbers, though pg gives bigint as text', async () => {
    const store = await opened();
    const key = newKey();
    const fence = await acquire(store, key, 'a');
    expect(typeof fence).toBe('number');
    const [row] = await server.sql<{ fence: unknown }>(
      `SELECT fence FROM holdfast.lease WHERE key = '${key}'`,
    );
    expect(row?.fence).toBe(String(fence));
  });

  it('B-21 a connection that the server ends in mid-lease costs no lease', async () => {
    const holdfast = await open(server.url);
    const result = await holdfast.acquire('recycled');
    if (!result.ok) throw new Error(result.reason);
    await server.sql(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'`,
    );
    await until(() => result.lease.renew().catch(() => false), {
      what: 'a renewal',
      deadlineMs: 5_000,
    });
    expect(result.lease.isHeld()).toBe(true);
    await result.lease.release();
    await holdfast.close();
  });

  it('B-21 a clock of the server that is set back mints no fence again', async () => {
    const url = `${server.url}?schema=clock`;
    const store = await opened(url);
    await server.sql(MOVABLE_CLOCK('clock'));
    const key = newKey();
    const fence = await acquire(store, key, 'a');
    await store.leases.release([{ key, holder: 'a', fence }], CALL);
    await server.sql(advanceBy(-3_600_000, 'clock'));
    const second = await acquire(store, key, 'b');
    expect(second).toBe(fence + 1);
    // Also where the row is gone: it was removed for its age, and the clock is set back after that.
    await store.leases.release([{ key, holder: 'b', fence: second }], CALL);
    await server.sql(`${advanceBy(3 * 86_400_000, 'clock')}; SELECT "clock".server_sweep('')`);
    expect(await server.sql(`SELECT FROM "clock".lease WHERE key = '${key}'`)).toEqual([]);
    await server.sql(advanceBy(-4 * 86_400_000, 'clock'));
    expect(await acquire(store, key, 'c')).toBeGreaterThan(second);
  });
});

describe('hints on PostgreSQL', () => {
  it('B-23 no verb notifies: only hint_send does, in a transaction of its own', async () => {
    const rows = await server.sql<{ name: string }>(
      `SELECT proname AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
       WHERE nspname = 'holdfast' AND prosrc ~* 'notify'`,
    );
    expect(rows).toEqual([{ name: 'hint_send' }]);
  });

  it('B-23 a hundred releases wake a hundred waiters in another process', async () => {
    const [one, two] = [await opened(), await opened()];
    const names = Array.from({ length: 100 }, () => newKey());
    const woken = new Set<string>();
    await two.signals.subscribe('waiter', {
      onMessage: (key) => {
        woken.add(key);
      },
      onGap: () => {},
    });
    const fences = await Promise.all(names.map((key) => acquire(one, key, 'a')));
    const call = { ...acquireCall(), inbox: 'waiter' };
    await two.leases.acquire(
      names.map((key) => ({ key, holder: 'b', waitedMs: 0 })),
      call,
    );
    await Promise.all(
      names.map((key, i) =>
        one.leases.release([{ key, holder: 'a', fence: fences[i] ?? 0 }], CALL),
      ),
    );
    await until(() => woken.size === names.length, {
      what: 'every waiter to be woken',
      deadlineMs: 5_000,
    });
  });

  it('B-23 a waiter whose hint is lost has the key within about a second', async () => {
    const [first, second] = [await open(server.url), await open(server.url)];
    const held = await first.acquire('lost-hint', { ttl: '20s' });
    if (!held.ok) throw new Error(held.reason);
    const waiting = second.acquire('lost-hint', { ttl: '20s', wait: '15s' });
    await until(
      async () =>
        (await server.sql(`SELECT FROM holdfast.line WHERE key = 'lease:lost-hint'`)).length > 0,
      {
        what: 'the waiter to be in the line',
        deadlineMs: 5_000,
      },
    );
    const { fence, holder } = held.lease;
    // The releaser dies between its release and its hint.
    await server.sql(
      `SELECT holdfast.lease_release('', '{lease:lost-hint}', '{"${holder}"}', '{${fence}}')`,
    );
    const startedAt = performance.now();
    const result = await waiting;
    expect(result.ok).toBe(true);
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    await Promise.all([first.close(), second.close()]);
  });

  it('B-23 behind a pooler that swallows LISTEN it says so, and looks instead', async () => {
    await using pgbouncer = await startPgbouncer(server.port);
    const events = new Emitter();
    const warnings: string[] = [];
    events.on('store.warned', ({ finding }) => warnings.push(finding));
    const pooled = await opened(pgbouncer.url, { events });
    const direct = await opened();
    const messages: string[] = [];
    await pooled.signals.subscribe('topic', {
      onMessage: (text) => messages.push(text),
      onGap: () => {},
    });
    expect(warnings.some((text) => /pooler swallows LISTEN/.test(text))).toBe(true);
    await direct.signals.publish('topic', 'hello');
    await until(() => messages.includes('hello'), { what: 'the hint', deadlineMs: 5_000 });
    const { findings } = await pooled.examine();
    expect(findings.find(({ subject }) => subject === 'topology')).toMatchObject({ level: 'warn' });
    await pooled.close();
    const listening = await opened(`${pgbouncer.url}?listen=${encodeURIComponent(server.url)}`);
    await listening.signals.subscribe('topic', { onMessage: () => {}, onGap: () => {} });
    const after = await listening.examine();
    expect(after.findings.find(({ subject }) => subject === 'topology')).toMatchObject({
      level: 'ok',
    });
    await listening.close();
  });
});

describe('rights on PostgreSQL', () => {
  const as = (role: string, schema: string) =>
    `${server.url.replace('postgres@', `${role}@`)}?schema=${schema}`;

  it('B-21 a role with USAGE and EXECUTE alone does everything, and touches no table', async () => {
    await opened(`${server.url}?schema=least`);
    await server.sql(
      `CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA least TO app; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA least TO app`,
    );
    const store = await opened(as('app', 'least'));
    const key = newKey();
    const fence = await acquire(store, key, 'a');
    await store.members.beat({ id: 'm', attributes: {} }, { ...CALL, ttlMs: 1_000 });
    await store.records.put('c', [{ id: 'a', value: 1 }], CALL);
    await store.streams.append('s', [{ lane: 'a', priority: 5, value: 1 }], CALL);
    await store.signals.subscribe('t', { onMessage: () => {}, onGap: () => {} });
    const client = new pg.Client({ connectionString: as('app', 'least').split('?')[0] });
    await client.connect();
    await client.query(store.guard?.sql(key, fence) ?? '');
    await expect(client.query('SELECT * FROM least.lease')).rejects.toMatchObject({
      code: '42501',
    });
    await client.end();
  });

  it('B-21 a role that may not install is told what to run', async () => {
    await server.sql('CREATE ROLE nobody_here LOGIN');
    const opening = openPostgresStore(as('nobody_here', 'absent'));
    await expect(opening).rejects.toMatchObject({ code: 'STORE_UNSUITABLE' });
    await expect(openPostgresStore(as('nobody_here', 'absent'))).rejects.toThrow(
      /holdfast store install/,
    );
  });

  it('B-21 row security, a hostile search_path and tables of the same name change nothing', async () => {
    await opened(`${server.url}?schema=rls`);
    await server.sql(`CREATE ROLE tenant LOGIN; GRANT USAGE ON SCHEMA rls TO tenant;
      GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA rls TO tenant; ALTER TABLE rls.lease ENABLE ROW LEVEL SECURITY;
      CREATE SCHEMA tenant AUTHORIZATION tenant; CREATE TABLE tenant.lease (key text); CREATE TABLE tenant.marker (id int);
      CREATE FUNCTION tenant.clock_us() RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
      ALTER ROLE tenant SET search_path = tenant, pg_catalog; ALTER ROLE tenant SET row_security = off`);
    const store = await opened(as('tenant', 'rls'));
    const key = newKey();
    expect(await acquire(store, key, 'a')).toBeGreaterThan(1_600_000_000_000_000);
    const [reply] = await store.leases.acquire([{ key, holder: 'b' }], acquireCall());
    expect(reply).toMatchObject({ kind: 'busy', holder: 'a' });
  });
});

async function deadlocks(): Promise<number> {
  const [row] = await server.sql<{ n: string }>(
    `SELECT pg_stat_force_next_flush(), (SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres') AS n`,
  );
  return Number(row?.n ?? 0);
}
