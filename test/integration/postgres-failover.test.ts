import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Emitter } from '../../src/core/events.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import {
  caughtUp,
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';
import { until } from '../support/until.ts';

const CALL = { timeoutMs: 5_000 };
const ACQUIRE = { ...CALL, ttlMs: 20_000, inbox: 'inbox' };
const key = 'lease:failover';
const programs = postgresPrograms() ?? '';
const servers: PostgresServer[] = [];
const start = async (options: Parameters<typeof startPostgres>[1] = {}) => {
  const server = await startPostgres(programs, { isDurable: true, ...options });
  servers.push(server);
  return server;
};
const acquire = async (store: Store, name: string) =>
  (await store.leases.acquire([{ key: name, holder: 'a' }], ACQUIRE))[0];
let primary: PostgresServer;
beforeAll(async () => {
  primary = await start();
}, 60_000);
afterAll(() => Promise.all(servers.map((server) => server[Symbol.asyncDispose]())));

describe('a PostgreSQL server', () => {
  it('B-24 makes grants at once after a plain restart, and after a crash', async () => {
    const events = new Emitter();
    const forgot: string[] = [];
    events.on('store.forgot', ({ why }) => forgot.push(why));
    const store = await openPostgresStore(primary.url, { events });
    const granted = await acquire(store, key);
    expect(granted).toMatchObject({ kind: 'granted' });
    for (const end of [
      () => primary.restart(),
      () => primary.kill().then(() => primary.restart()),
    ]) {
      await end();
      const [found] = await store.leases
        .read([key], CALL)
        .catch(() => store.leases.read([key], CALL));
      expect(found).toMatchObject({
        kind: 'held',
        holder: 'a',
        fence: (granted as { fence: number }).fence,
      });
      expect(await acquire(store, `${key}-${forgot.length}-${Math.random()}`)).toMatchObject({
        kind: 'granted',
      });
    }
    expect(forgot).toEqual([]);
    await store.close();
  });

  it('B-24 makes grants at once after a crash that lost commits of others who did not wait for the disk', async () => {
    await using server = await startPostgres(programs, {
      ...{ isDurable: true, settings: ['wal_writer_delay=10s', 'bgwriter_delay=10s'] },
    });
    const store = await openPostgresStore(server.url);
    await acquire(store, key);
    await server.sql('CREATE TABLE elsewhere (text text)');
    await server.sql(`SET synchronous_commit = off;
      INSERT INTO elsewhere SELECT repeat('x', 100) FROM generate_series(1, 500)`);
    // A new connection is examined now, and writes nothing that would wait for the disk.
    await ended(server);
    await until(() => store.leases.read([key], CALL), { what: 'a new connection' });
    await server.kill();
    await server.restart();
    expect(await server.sql('SELECT FROM elsewhere')).toEqual([]);
    await until(() => store.leases.read([key], CALL), { what: 'a connection to the new server' });
    expect(await acquire(store, `${key}-later`)).toMatchObject({ kind: 'granted' });
    await store.close();
  }, 60_000);

  it('B-24 has a grant on its disk when it answers, though commits wait for no disk by default', async () => {
    const settings = ['wal_writer_delay=10s', 'bgwriter_delay=10s', 'synchronous_commit=off'];
    await using server = await startPostgres(programs, { isDurable: true, settings });
    const store = await openPostgresStore(server.url);
    const granted = await acquire(store, key);
    await server.kill();
    await server.restart();
    const [found] = await until(() => store.leases.read([key], CALL), { what: 'an answer' });
    expect(granted).toMatchObject({ kind: 'granted' });
    expect(found).toMatchObject({ kind: 'held', fence: (granted as { fence: number }).fence });
    await store.close();
  }, 60_000);

  it.each([
    [
      'an earlier state of its disk is back',
      'an earlier state of its data is back',
      async (server: PostgresServer, store: Store) => {
        const putBack = await snapshot(server);
        await until(() => acquire(store, `${key}-forgotten`), { what: 'a grant to forget' });
        await server.kill();
        putBack();
        await server.restart();
      },
    ],
    [
      'its tables were dropped',
      'its tables are new: dropped, or replaced',
      async (server: PostgresServer) => {
        await server.sql('DROP SCHEMA holdfast CASCADE');
        await ended(server);
      },
    ],
    [
      'its data came from another server',
      'its data is a copy from another server',
      async (server: PostgresServer) => {
        await server.sql(`UPDATE holdfast.marker SET system = 'another'`);
        await ended(server);
      },
    ],
  ])(
    'B-24 makes no grants for the bound if %s',
    async (_, why, forget) => {
      await using server = await startPostgres(programs, { isDurable: true });
      const events = new Emitter();
      const forgot: string[] = [];
      events.on('store.forgot', (event) => forgot.push(event.why));
      const store = await openPostgresStore(server.url, { events });
      await acquire(store, key);
      await forget(server, store);
      // A read may still be answered over the old connection.
      const isNoticed = async () => (await store.leases.read([key], CALL)) && forgot.length > 0;
      await until(isNoticed, { what: 'the loss, over a new connection' });
      expect(forgot).toEqual([why]);
      const reply = await acquire(store, `${key}-new`);
      expect(reply).toMatchObject({ kind: 'busy', reason: 'quarantine' });
      await ended(server);
      await until(() => store.leases.read([key], CALL), { what: 'another connection' });
      expect(forgot).toHaveLength(1);
      await store.close();
    },
    60_000,
  );

  it('B-24 is refused with fsync off, with full_page_writes off, and in recovery, with what to do', async () => {
    for (const setting of ['fsync', 'full_page_writes']) {
      await primary.restart([`${setting}=off`]);
      const opening = openPostgresStore(primary.url);
      await expect(opening).rejects.toMatchObject({ code: 'STORE_UNSUITABLE' });
      await expect(openPostgresStore(primary.url)).rejects.toThrow(
        new RegExp(`${setting} is off.*Set ${setting} = on`),
      );
    }
    await primary.restart();
    const standby = await start({ standbyOf: primary });
    await expect(openPostgresStore(standby.url)).rejects.toThrow(
      /standby in recovery.*Use the address of the primary/,
    );
  }, 60_000);

  it('B-24 makes no grants for the bound after an asynchronous standby was promoted, and renews what is held', async () => {
    const store = await openPostgresStore(primary.url);
    const granted = await acquire(store, 'lease:kept');
    await store.close();
    const standby = await start({ standbyOf: primary });
    await caughtUp(primary, standby);
    await standby.promote();
    const events = new Emitter();
    const forgot: string[] = [];
    events.on('store.forgot', ({ why }) => forgot.push(why));
    const promoted = await openPostgresStore(standby.url, { events });
    expect(await acquire(promoted, 'lease:new')).toMatchObject({
      kind: 'busy',
      reason: 'quarantine',
    });
    expect(forgot).toEqual([expect.stringMatching(/timeline/)]);
    const [renewed] = await promoted.leases.renew([{ key: 'lease:kept', holder: 'a' }], {
      ...CALL,
      ttlMs: 20_000,
    });
    expect(renewed).toEqual({ kind: 'renewed' });
    expect(granted).toMatchObject({ kind: 'granted' });
    await promoted.close();
  }, 60_000);

  it('B-24 makes grants at once after a synchronous standby was promoted, if the address promises no other', async () => {
    const standby = await start({ standbyOf: primary });
    await primary.sql(`ALTER SYSTEM SET synchronous_standby_names = '*'`);
    await primary.sql('SELECT pg_reload_conf()');
    const query = '?standbys=synchronous';
    const store = await openPostgresStore(primary.url + query);
    await until(
      async () => (await acquire(store, `lease:sync-${Math.random()}`))?.kind === 'granted',
      { what: 'a grant', deadlineMs: 10_000 },
    );
    const [row] = await primary.sql<{ synchronous: boolean }>(
      'SELECT synchronous FROM holdfast.marker',
    );
    expect(row?.synchronous).toBe(true);
    await store.close();
    await primary.kill();
    await standby.promote();
    const promoted = await openPostgresStore(standby.url + query);
    expect(await acquire(promoted, 'lease:new')).toMatchObject({ kind: 'granted' });
    await promoted.close();
  }, 60_000);

  it('B-24 makes no grants for the bound if the address promises synchronous standbys, and grants waited for none', async () => {
    await using server = await startPostgres(programs, { isDurable: true });
    const query = '?standbys=synchronous';
    const store = await openPostgresStore(server.url + query);
    await acquire(store, key);
    await store.close();
    await using standby = await startPostgres(programs, { isDurable: true, standbyOf: server });
    await standby.promote();
    const promoted = await openPostgresStore(standby.url + query);
    expect(await acquire(promoted, 'lease:new')).toMatchObject({
      ...{ kind: 'busy', reason: 'quarantine' },
    });
    await promoted.close();
  }, 60_000);

  it('B-24 answers no grant that its synchronous standby has not, and cancels none', async () => {
    await using server = await startPostgres(programs, { isDurable: true });
    await using standby = await startPostgres(programs, { isDurable: true, standbyOf: server });
    const store = await openPostgresStore(server.url);
    await server.sql(`ALTER SYSTEM SET synchronous_standby_names = '*'`);
    await server.sql('SELECT pg_reload_conf()');
    await until(async () => (await acquire(store, key))?.kind === 'granted', { what: 'a grant' });
    const [row] = await server.sql<{ is_sync: boolean }>(
      `SELECT bool_or(sync_state = 'sync') AS is_sync FROM pg_stat_replication`,
    );
    expect(row?.is_sync).toBe(true);
    await standby.freeze();
    try {
      const asks = [{ key: `${key}-unseen`, holder: 'a' }];
      const unseen = store.leases.acquire(asks, { ...ACQUIRE, timeoutMs: 600 });
      await expect(unseen).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' });
      // A cancelled wait would show the grant to others, who could not know that it may be lost.
      const shown = `SELECT key FROM holdfast.lease WHERE key LIKE '%-unseen' AND holder IS NOT NULL`;
      expect(await server.sql(shown)).toEqual([]);
    } finally {
      // A frozen server cannot be stopped.
      await standby.thaw();
    }
    const isSeen = async () =>
      (await store.leases.read([`${key}-unseen`], CALL).catch(() => []))[0]?.kind === 'held';
    await until(isSeen, { what: 'the commit to end' });
    await store.close();
  }, 60_000);
});

/** Ends the connections of stores. */
async function ended(server: PostgresServer): Promise<void> {
  await server.sql(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'holdfast'`,
  );
}

/** Copies a server's disk as it is now. The function returned puts the copy in its place. */
async function snapshot(server: PostgresServer) {
  const [data, copy] = [join(server.dir, 'data'), join(server.dir, 'copy')];
  await server.kill();
  execFileSync('cp', ['-a', data, copy]);
  await server.restart();
  return () => {
    execFileSync('rm', ['-rf', data]);
    execFileSync('mv', [copy, data]);
  };
}
