import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SCHEMA_VERSION } from '../../src/store/postgres/installation.ts';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';

const BIN = new URL('../../dist/lib/cli/bin.js', import.meta.url).pathname;
let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
}, 60_000);
afterAll(() => server[Symbol.asyncDispose]());

/** Runs the command line on a store, and returns its exit code and what it printed. */
function holdfast(store: string, ...args: string[]): { code: number | null; text: string } {
  const env = { ...process.env, HOLDFAST_STORE: store };
  const run = spawnSync(process.execPath, [BIN, ...args], { env, encoding: 'utf8' });
  return { code: run.status, text: run.stdout + run.stderr };
}

describe('the command line on PostgreSQL', () => {
  it('B-21 installs, grants a role its rights, shows and removes the schema', async () => {
    await server.sql('CREATE ROLE app LOGIN');
    const admin = `${server.url}?schema=cli`;
    const app = admin.replace('postgres@', 'app@');
    expect(holdfast(admin, 'store', 'status')).toMatchObject({
      code: 1,
      text: expect.stringMatching(/not installed/),
    });
    expect(holdfast(app, 'run', 'job', '--', 'true')).toMatchObject({
      code: 78,
      text: expect.stringMatching(/store install/),
    });
    expect(holdfast('', 'store', 'install', admin, '--grant', 'app')).toMatchObject({
      code: 0,
      text: expect.stringContaining(
        `Installed version ${SCHEMA_VERSION} in schema cli. Role app may use it`,
      ),
    });
    expect(holdfast(admin, 'store', 'install')).toMatchObject({ code: 0 });
    expect(
      holdfast(
        app,
        'run',
        'job',
        '--',
        process.execPath,
        '-e',
        'console.log(process.env.HOLDFAST_FENCE)',
      ),
    ).toMatchObject({ code: 0, text: expect.stringMatching(/^\d{16}\n$/) });
    expect(holdfast(app, 'ls').code).toBe(0);
    expect(holdfast(app, 'targets', 'ls').code).toBe(0);
    expect(holdfast(app, 'doctor').text).toMatch(/idle_in_transaction_session_timeout is off/);
    const status = JSON.parse(holdfast(admin, 'store', 'status', '--json').text);
    expect(status).toMatchObject({ version: SCHEMA_VERSION, known: SCHEMA_VERSION });
    expect(holdfast(admin, 'store', 'uninstall')).toMatchObject({
      code: 64,
      text: expect.stringMatching(/--yes/),
    });
    expect(holdfast(admin, 'store', 'uninstall', '--yes').code).toBe(0);
    expect(await server.schemas()).not.toContain('cli');
    expect(holdfast('', 'store', 'install', 'redis://x')).toMatchObject({
      code: 78,
      text: expect.stringMatching(/need no installation/),
    });
  }, 120_000);

  it('B-22 fences a table for a command that knows nothing of leases', async () => {
    const { url } = server;
    await server.sql('CREATE TABLE report (at timestamptz DEFAULT now())');
    const insert = ['psql', url, '-qc', 'INSERT INTO report DEFAULT VALUES'];
    const present = 'PGOPTIONS="-c holdfast.lease=$HOLDFAST_LEASE_KEY:$HOLDFAST_FENCE" exec "$@"';
    const runs = (key: string) =>
      holdfast(url, 'run', key, '--', 'sh', '-c', present, 'sh', ...insert);
    expect(holdfast(url, 'fence', 'ls')).toMatchObject({
      code: 78,
      text: expect.stringMatching(/there is no schema 'holdfast'/),
    });
    expect(holdfast(url, 'store', 'install').code).toBe(0);
    expect(holdfast(url, 'fence', 'ls')).toMatchObject({ code: 0, text: 'No table is fenced.\n' });
    const add = ['fence', 'add', 'report', '--key', 'nightly:*'];
    expect(holdfast(url, ...add)).toMatchObject({
      code: 0,
      text: 'Fenced: writes to public.report need the live lease lease:nightly:*.\n',
    });
    expect(holdfast(url, ...add).text).toMatch(/^Fenced already/);
    expect(holdfast(url, 'fence', 'ls').text).toMatch(
      /^TABLE +KEY +SINCE +STATE\npublic.report +lease:nightly:\* +\d{4}-\d\d-\d\dT\S+Z +on\n$/,
    );
    expect(JSON.parse(holdfast(url, 'fence', 'ls', '--json').text)).toMatchObject([
      { table: 'public.report', key: 'lease:nightly:', isPrefix: true, isEnabled: true },
    ]);
    expect(runs('nightly:1')).toMatchObject({ code: 0 });
    expect(runs('hourly')).toMatchObject({ code: 1, text: expect.stringMatching(/FENCE_MISSING/) });
    expect(await server.sql('SELECT FROM report')).toHaveLength(1);
    expect(holdfast(url, 'store', 'uninstall', '--yes')).toMatchObject({
      code: 69,
      text: expect.stringMatching(/table public.report is fenced/),
    });
    expect(holdfast(url, 'fence', 'rm', 'report').code).toBe(0);
    expect(holdfast(url, 'fence', 'rm', 'report').code).toBe(1);
    expect(holdfast(url, 'fence', 'add', 'absent')).toMatchObject({
      code: 64,
      text: expect.stringMatching(/TABLE is .*public\.absent.*there is no table of this name/),
    });
    expect(holdfast(url, 'store', 'uninstall', '--yes').code).toBe(0);
    expect(holdfast('redis://x', 'fence', 'ls').code).toBe(78);
  }, 120_000);
});
