/** A PostgreSQL server: that of DATABASE_URL, or a new one in a folder of this run. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { until } from '../staging/telling.mjs';

/** Where Debian has it, one folder for each version; elsewhere it is on the PATH. */
const DEBIAN = '/usr/lib/postgresql';

/** Its address, and what ends it; throws where there is no server and none can be started. */
export async function postgresFor(folder) {
  if (process.env.DATABASE_URL) return { url: process.env.DATABASE_URL, stop: () => {} };
  const programs = findPrograms();
  // The user that PostgreSQL runs as may be unable to enter our folder.
  const home = mkdtempSync(join(process.getuid() === 0 ? '/tmp' : folder, 'holdfast-postgres-'));
  let server;
  const remove = () => rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  const onExit = () => {
    server?.kill('SIGQUIT');
    remove();
  };
  process.once('exit', onExit);
  /** The folder is removed when no process of the server writes to it any more. */
  const stop = async () => {
    process.off('exit', onExit);
    const ended = once(server, 'exit');
    server.kill('SIGINT');
    await ended;
    remove();
  };
  chmodSync(home, 0o777);
  const data = join(home, 'data');
  const made = spawnSync(
    ...unprivileged([
      join(programs, 'initdb'),
      '-D',
      data,
      '-U',
      'postgres',
      '-A',
      'trust',
      '--no-sync',
      '--no-locale',
      '--encoding=UTF8',
    ]),
    { cwd: home },
  );
  if (made.status !== 0)
    throw new Error(
      `initdb failed, or is missing: install postgresql, or set DATABASE_URL. ${made.stderr ?? ''}`,
    );
  for (;;) {
    const port = await freePort();
    const flags = ['-D', data, '-p', String(port), '-k', home, '-c', 'listen_addresses=127.0.0.1'];
    const quietly = { cwd: home, stdio: 'ignore' };
    server = spawn(...unprivileged([join(programs, 'postgres'), ...flags]), quietly);
    const ready = [join(programs, 'pg_isready'), ['-h', '127.0.0.1', '-p', String(port), '-q']];
    // It ends at once if another program has taken the port meanwhile.
    const { seen } = await until('PostgreSQL to accept connections', () =>
      server.exitCode === null ? spawnSync(...ready).status === 0 && 'ready' : 'ended',
    );
    if (seen === 'ready') return { url: `postgres://postgres@127.0.0.1:${port}/postgres`, stop };
  }
}

function findPrograms() {
  try {
    const [newest] = readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a));
    return join(DEBIAN, newest, 'bin');
  } catch {
    return '';
  }
}

/** PostgreSQL refuses to run as root. */
function unprivileged([file, ...args]) {
  if (process.getuid() !== 0) return [file, args];
  return ['setpriv', ['--reuid=nobody', '--regid=nogroup', '--clear-groups', file, ...args]];
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
