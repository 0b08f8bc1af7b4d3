import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { postgresPrograms, startPostgres } from '../support/postgres-server.ts';
import { install, thisMachine } from '../support/require-redis.ts';
import { until } from '../support/until.ts';
import { startApi, WRITER } from './support/api.ts';
import { Running } from './support/cli.ts';

const WORKER = fileURLToPath(new URL('../../examples/python/worker.py', import.meta.url));
/** Debian's, for which its package has psycopg2. */
const PYTHON = '/usr/bin/python3';
const PACKAGE = '/usr/lib/python3/dist-packages/psycopg2';
const SLOW = { timeout: 120_000 };

describe('the example in Python (examples/python)', () => {
  it('B-26 B-22 a frozen worker cannot commit once another has its lease', SLOW, async () => {
    if (!existsSync(PACKAGE)) install(thisMachine, ['python3', 'python3-psycopg2']);
    await using postgres = await startPostgres(postgresPrograms() ?? '', { isDurable: true });
    await postgres.sql('CREATE TABLE payments (worker text)');
    await using api = await startApi({ url: postgres.url });
    const env = {
      HOLDFAST_URL: api.url,
      HOLDFAST_TOKEN: WRITER.token,
      DATABASE_URL: postgres.url,
      PATH: process.env.PATH,
    };
    const start = (...args: string[]) =>
      new Running(spawn(PYTHON, [WORKER, ...args], { env, stdio: 'pipe' }));
    const ana = start('ana', '--slow');
    await until(() => ana.stdout.includes('ana has the lease'), {
      what: 'ana',
      deadlineMs: 30_000,
    });
    const ben = await start('ben').end();
    expect(ben.stdout, ben.stderr).toMatch(/ben has the lease, fence \d+\nben has paid\n/);
    ana.signal('SIGCONT');
    const { stdout, stderr } = await ana.end();
    expect(stdout, stderr).toMatch(/ana could not commit: .*FENCE_STALE/);
    expect(await postgres.sql('SELECT worker FROM payments')).toEqual([{ worker: 'ben' }]);
  });
});
