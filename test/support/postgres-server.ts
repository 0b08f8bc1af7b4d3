/** A PostgreSQL server of a test's own: a new cluster in a private folder, on a port that the kernel chose. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { atExit, killAtExit } from './process.ts';
import { freePort } from './redis-server.ts';
import { install, pathOf, thisMachine } from './require-redis.ts';
import { until } from './until.ts';

/** Where Debian has it, one folder for each version. */
const DEBIAN = '/usr/lib/postgresql';
const START_DEADLINE_MS = 30_000;
/** It refuses to run as root; this user owns nothing. */
const UNPRIVILEGED = 'nobody';

/** Where its programs are, installed if that is ours to do; null where there are none. */
export function postgresPrograms(): string | null {
  const found = findPrograms();
  const { isRoot, env } = thisMachine;
  if (found !== null || !isRoot || pathOf('apt-get', env.PATH) === undefined) return found;
  thisMachine.say('not installed: postgresql; installing with apt-get …');
  install(thisMachine, ['postgresql']);
  return findPrograms();
}

function findPrograms(): string | null {
  try {
    const versions = readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a));
    const [folder] = versions
      .map((version) => join(DEBIAN, version, 'bin'))
      .filter((bin) => pathOf('initdb', bin) !== undefined);
    return folder ?? null;
  } catch {
    return null;
  }
}

export interface PostgresServer extends AsyncDisposable {
  readonly url: string;
  /** What users have made: schemas that are neither PostgreSQL's own nor `public`. */
  schemas(): Promise<string[]>;
}

export async function startPostgres(programs: string): Promise<PostgresServer> {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-pg-'));
  const remove = () => rmSync(dir, { recursive: true, force: true });
  const forget = atExit(remove);
  chmodSync(dir, 0o777);
  const data = join(dir, 'data');
  const locale = ['--no-locale', '--encoding', 'UTF8'];
  const how = ['-D', data, '-U', 'postgres', '-A', 'trust', '--no-sync', ...locale];
  const [file = '', ...args] = unprivileged([join(programs, 'initdb'), ...how]);
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`initdb failed:\n${stdout}${stderr}`);
  const port = await freePort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const server = serve(programs, { data, dir, port });
  await until(() => isReady(programs, port), {
    what: 'PostgreSQL to accept connections',
    deadlineMs: START_DEADLINE_MS,
    every: 50,
  });
  return {
    url,
    schemas: () => schemasOf(url),
    async [Symbol.asyncDispose]() {
      // SIGQUIT: at once, with all its processes. What it has is thrown away.
      const gone = once(server, 'exit');
      server.kill('SIGQUIT');
      await gone;
      remove();
      forget();
    },
  };
}

function serve(
  programs: string,
  { data, dir, port }: { data: string; dir: string; port: number },
): ChildProcess {
  const settings = ['fsync=off', 'full_page_writes=off', 'listen_addresses=127.0.0.1'];
  const flags = settings.flatMap((setting) => ['-c', setting]);
  const [file = '', ...args] = unprivileged([
    ...[join(programs, 'postgres'), '-D', data, '-p', String(port), '-k', dir],
    ...flags,
  ]);
  const server = spawn(file, args, { stdio: 'ignore' });
  killAtExit(server);
  return server;
}

async function schemasOf(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ name: string }>(
    `SELECT nspname AS name FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema|public)'`,
  );
  await client.end();
  return rows.map(({ name }) => name);
}

function isReady(programs: string, port: number): boolean {
  const args = ['-h', '127.0.0.1', '-p', String(port), '-q'];
  return spawnSync(join(programs, 'pg_isready'), args).status === 0;
}

/** `setpriv` becomes what it starts, so that a signal to it is one to that. */
function unprivileged(command: readonly string[]): readonly string[] {
  if (process.getuid?.() !== 0) return command;
  const who = [`--reuid=${UNPRIVILEGED}`, '--regid=nogroup', '--clear-groups'];
  return ['setpriv', ...who, ...command];
}
