import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Health, judgeHealth } from '../../src/store/postgres/health.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { startPgbouncer } from '../support/pgbouncer.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
}, 60_000);
afterAll(() => server?.[Symbol.asyncDispose]());

const HEALTHY: Health = {
  version: 170_000,
  seesAll: true,
  synchronousCommit: 'on',
  transactionTimeoutMs: 60_000,
  transactions: [{ pid: 1, ageS: 1, application: 'api', state: 'active' }],
  standbys: [{ name: 'b', behindBytes: 0 }],
  slots: [{ name: 's', isActive: true, retainedBytes: 0 }],
  tables: [{ name: 'lease', live: 10, dead: 10, bytes: 8_192 }],
};
const warned = (health: Partial<Health>) =>
  judgeHealth({ ...HEALTHY, ...health })
    .filter(({ level }) => level === 'warn')
    .map(({ fact, advice }) => `${fact} ${advice}`);

describe('the health of a PostgreSQL server', () => {
  it('is read from a real server, and is fine when it is new', async () => {
    const store = await openPostgresStore(server.url);
    const { findings } = await store.examine();
    await store.close();
    expect(findings.filter(({ subject }) => subject === 'bloat')).toMatchObject([
      { level: 'ok', fact: expect.stringMatching(/tables of Holdfast have \d+/) },
    ]);
    expect(findings.filter(({ level }) => level === 'refuse')).toEqual([]);
  });

  it('says of a role without pg_monitor that it does not see others', async () => {
    const store = await openPostgresStore(server.url);
    await server.sql(`CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA holdfast TO app;
      GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA holdfast TO app`);
    const facts = async () => {
      const app = await openPostgresStore(server.url.replace('postgres@', 'app@'));
      const { findings } = await app.examine();
      await app.close();
      return findings.map(({ fact, advice }) => `${fact} ${advice}`);
    };
    const blind = expect.stringMatching(/sees neither the transactions .*GRANT pg_monitor/);
    expect(await facts()).toContainEqual(blind);
    await server.sql('GRANT pg_monitor TO app');
    expect(await facts()).not.toContainEqual(blind);
    await store.close();
  });

  it('B-23 names a pooler that swallows LISTEN, before anything has subscribed', async () => {
    await using pooler = await startPgbouncer(server.port);
    const topology = async (url: string) => {
      const store = await openPostgresStore(url);
      const { findings } = await store.examine();
      await store.close();
      return findings.filter(({ subject }) => subject === 'topology');
    };
    expect(await topology(server.url)).toMatchObject([
      { level: 'ok', fact: 'Hints arrive by LISTEN.' },
    ]);
    expect(await topology(pooler.url)).toMatchObject([
      { level: 'warn', advice: expect.stringContaining('?listen=postgres://') },
    ]);
    expect(await topology(`${pooler.url}?listen=${server.url}`)).toMatchObject([{ level: 'ok' }]);
  });

  it('names each thing that is wrong, with its value and what to do', () => {
    expect(warned({})).toEqual([]);
    const open = { pid: 42, ageS: 900, application: 'report', state: 'idle in transaction' };
    expect(warned({ transactions: [open] })).toEqual([
      expect.stringMatching(/Connection 42 of 'report' \(idle in .* 900 s\..*backend\(42\)/),
    ]);
    expect(warned({ transactionTimeoutMs: 0 })).toEqual([
      expect.stringMatching(/transaction_timeout is off\. .* 5min/),
    ]);
    expect(warned({ transactionTimeoutMs: 0, version: 160_000 })).toEqual([]);
    expect(warned({ synchronousCommit: 'off' })).toEqual([
      expect.stringMatching(/synchronous_commit is off.*Set it to on/),
    ]);
    expect(warned({ standbys: [{ name: 'b', behindBytes: 2 ** 30 }] })).toEqual([
      expect.stringMatching(/Standby 'b' is 1\.0 GiB behind/),
    ]);
    expect(warned({ slots: [{ name: 's', isActive: false, retainedBytes: 2 ** 31 }] })).toEqual([
      expect.stringMatching(/slot 's' \(not active\) retains 2\.0 GiB.*pg_drop_replication_slot/),
    ]);
    const bloated = { name: 'lease', live: 10, dead: 200_000, bytes: 1 };
    expect(warned({ tables: [bloated] })).toEqual([
      expect.stringMatching(/lease \(200000 dead, 10 live\).*VACUUM/),
    ]);
  });
});
