import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from './redis.mjs';

/** Where Debian has it, one folder for each version. */
const DEBIAN = '/usr/lib/postgresql';
const START_DEADLINE_MS = 30_000;

/**
 * Starts a PostgreSQL that nobody else uses, with its defaults, on a disk: `{ url, version, sql(text), stop() }`. `sql` gives
 * the first column of the first row.
 */
export async function startPostgres() {
  const programs = findPrograms();
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  chmodSync(dir, 0o777);
  const data = join(dir, 'data');
  const how = ['-U', 'postgres', '-A', 'trust', '--no-locale', '--encoding', 'UTF8'];
  const [initdb, ...args] = unprivileged([join(programs, 'initdb'), '-D', data, ...how]);
  const made = spawnSync(initdb, args, { encoding: 'utf8' });
  if (made.status !== 0) throw new Error(`initdb failed:\n${made.stdout}${made.stderr}`);
  const port = await freePort();
  const settings = ['-p', String(port), '-k', dir, '-c', 'listen_addresses=127.0.0.1'];
  const command = unprivileged([join(programs, 'postgres'), '-D', data, ...settings]);
  const server = spawn(command[0], command.slice(1), { stdio: 'ignore' });
  const remove = () => {
    // SIGQUIT: at once, with all its processes.
    server.kill('SIGQUIT');
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  process.once('exit', remove);
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const client = await connected(url);
  const sql = async (text) => Object.values((await client.query(text)).rows[0] ?? {})[0];
  return {
    url,
    version: await sql('SHOW server_version'),
    sql,
    async stop() {
      await client.end();
      const isRunning = server.exitCode === null && server.signalCode === null;
      if (isRunning && server.kill('SIGQUIT')) await once(server, 'exit');
      process.off('exit', remove);
      remove();
    },
  };
}

function findPrograms() {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN) : [];
  const [newest] = versions.sort((a, b) => Number(b) - Number(a));
  if (newest === undefined) throw new Error('there is no PostgreSQL: apt-get install postgresql');
  return join(DEBIAN, newest, 'bin');
}

/** It refuses to run as root. */
function unprivileged(command) {
  if (process.getuid() !== 0) return command;
  const who = ['--reuid=nobody', '--regid=nogroup', '--clear-groups'];
  return ['setpriv', ...who, ...command];
}

async function connected(connectionString) {
  const untilMs = Date.now() + START_DEADLINE_MS;
  for (;;) {
    const client = new pg.Client({ connectionString });
    // The server ends before its clients when the bench is stopped.
    client.on('error', () => {});
    try {
      await client.connect();
      return client;
    } catch (error) {
      if (Date.now() > untilMs) throw error;
      await sleep(50);
    }
  }
}
