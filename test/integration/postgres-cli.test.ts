import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type PostgresServer,
  postgresPrograms,
  startPostgres,
} from '../support/postgres-server.ts';

const BIN = new URL('../../dist/cli/bin.js', import.meta.url).pathname;
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
      text: expect.stringMatching(/Installed version 1 in schema cli. Role app may use it/),
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
    expect(holdfast(admin, 'store', 'status', '--json').text).toMatch(/"version": ?1/);
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
});
