/** A PostgreSQL server of a test's own: a new cluster in a private folder, on a port that the kernel chose. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { atExit, isGone, isStopped, killAtExit } from './process.ts';
import { freePort } from './redis-server.ts';
import { install, pathOf, thisMachine } from './require-redis.ts';
import { until } from './until.ts';

/** Where Debian has it, one folder for each version. */
const DEBIAN = '/usr/lib/postgresql';
const START_DEADLINE_MS = 30_000;
/** A frozen process does not notice that its server is gone. */
const GONE_DEADLINE_MS = 3_000;
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

export interface PostgresOptions {
  /** Further settings, as `name=value`. */
  readonly settings?: readonly string[];
  /** Fit for leases: `fsync` and `full_page_writes` are on. */
  readonly isDurable?: boolean;
  /** A copy of this server, which follows it as a standby. */
  readonly standbyOf?: PostgresServer;
  readonly pickPort?: () => Promise<number>;
}

export interface PostgresServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** The folder of its socket. */
  readonly dir: string;
  readonly pid: number;
  /** What users have made: schemas that are neither PostgreSQL's own nor `public`. */
  schemas(): Promise<string[]>;
  /** Runs statements over a connection of its own, and returns the rows of the last one. */
  sql<Row extends object = Record<string, unknown>>(text: string): Promise<Row[]>;
  /** Its process and those that it has started, each of which serves a connection or the disk. */
  processes(): number[];
  /** SIGKILL to the server. Its other processes notice, and are gone when this returns. */
  kill(): Promise<void>;
  /** SIGSTOP to all its processes. */
  freeze(): Promise<void>;
  /** SIGCONT to all its processes. */
  thaw(): Promise<void>;
  /** Ends it in order, unless it was killed, and starts it again on the same port. */
  restart(settings?: readonly string[]): Promise<void>;
  /** Makes a standby a primary. */
  promote(): Promise<void>;
}

export async function startPostgres(
  programs: string,
  { settings = [], isDurable = false, standbyOf, pickPort = freePort }: PostgresOptions = {},
): Promise<PostgresServer> {
  const dir = mkdtempSync(join(inMemory(), 'holdfast-pg-'));
  const remove = () => rmSync(dir, { recursive: true, force: true });
  const forget = atExit(remove);
  chmodSync(dir, 0o777);
  const data = join(dir, 'data');
  if (standbyOf === undefined) {
    const locale = ['--no-locale', '--encoding', 'UTF8'];
    const how = ['-D', data, '-U', 'postgres', '-A', 'trust', '--no-sync', ...locale];
    execute([join(programs, 'initdb'), ...how]);
  } else {
    const from = ['-d', standbyOf.url, '-D', data, '--no-sync', '-c', 'fast', '-R'];
    execute([join(programs, 'pg_basebackup'), ...from]);
  }
  const port = await pickPort();
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const durable = isDurable ? [] : ['fsync=off', 'full_page_writes=off'];
  // Not in /dev/shm, where a server that is killed leaves it behind.
  const shared = 'dynamic_shared_memory_type=mmap';
  const all = [...durable, shared, 'listen_addresses=127.0.0.1', ...settings];
  let server = await serve(programs, { data, dir, port }, all);
  const stop = async (signal: NodeJS.Signals) => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, 'exit');
    server.kill(signal);
    await gone;
  };
  return {
    url,
    port,
    dir,
    get pid() {
      return server.pid ?? 0;
    },
    schemas: () => schemasOf(url),
    sql: (text) => rowsOf(url, text),
    processes: () => familyOf(server.pid ?? 0),
    async kill() {
      const family = familyOf(server.pid ?? 0);
      await stop('SIGKILL');
      await untilGone(family);
    },
    async freeze() {
      await freezeAll(familyOf(server.pid ?? 0));
    },
    async thaw() {
      await thawAll(familyOf(server.pid ?? 0));
    },
    async restart(other = []) {
      await stop('SIGINT');
      server = await serve(programs, { data, dir, port }, [...all, ...other]);
    },
    async promote() {
      await rowsOf(url, 'SELECT pg_promote()');
    },
    async [Symbol.asyncDispose]() {
      // SIGQUIT: at once, with all its processes. What it has is thrown away.
      await stop('SIGQUIT');
      remove();
      forget();
    },
  };
}

/** Waits until a standby has all that its primary has now. */
export async function caughtUp(primary: PostgresServer, standby: PostgresServer): Promise<void> {
  const [at] = await primary.sql<{ lsn: string }>('SELECT pg_current_wal_lsn()::text AS lsn');
  await until(
    async () => {
      const [row] = await standby.sql<{ done: boolean }>(
        `SELECT pg_last_wal_replay_lsn() >= '${at?.lsn}'::pg_lsn AS done`,
      );
      return row?.done === true;
    },
    { what: 'the standby to catch up', deadlineMs: 10_000 },
  );
}

/** A process and its children. */
export function familyOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return [pid, ...children.split(' ').filter(Boolean).map(Number)];
  } catch {
    return [];
  }
}

/** SIGSTOP to processes of which some may end at this moment. Returns when all stand still. */
export function freezeAll(pids: readonly number[]): Promise<void> {
  return signalAll(pids, 'SIGSTOP', isStopped);
}

/** SIGCONT to processes of which some may have ended. */
export function thawAll(pids: readonly number[]): Promise<void> {
  return signalAll(pids, 'SIGCONT', (pid) => !isStopped(pid));
}

async function signalAll(
  pids: readonly number[],
  signal: NodeJS.Signals,
  isDone: (pid: number) => boolean,
): Promise<void> {
  const there = pids.filter((pid) => !isGone(pid));
  for (const pid of there) process.kill(pid, signal);
  const what = `${there.length} processes to heed ${signal}`;
  await until(() => there.every((pid) => isGone(pid) || isDone(pid)), { what, every: 1 });
}

/** A server that starts while a process of the old one lives finds its memory in use. */
export async function untilGone(family: readonly number[]): Promise<void> {
  const areGone = () => family.every(isGone);
  const how = { what: 'the server to end', deadlineMs: GONE_DEADLINE_MS, every: 5 };
  await until(areGone, how).catch(() => {
    for (const pid of family) if (!isGone(pid)) process.kill(pid, 'SIGKILL');
  });
  await until(areGone, how);
}

/** A folder in memory, where there is one: `fsync` costs nothing there. */
export function inMemory(): string {
  return existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
}

function execute(command: readonly string[]): void {
  const [file = '', ...args] = unprivileged(command);
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command[0]} failed:\n${stdout}${stderr}`);
}

async function serve(
  programs: string,
  { data, dir, port }: { data: string; dir: string; port: number },
  settings: readonly string[],
): Promise<ChildProcess> {
  const flags = settings.flatMap((setting) => ['-c', setting]);
  const [file = '', ...args] = unprivileged([
    ...[join(programs, 'postgres'), '-D', data, '-p', String(port), '-k', dir],
    ...flags,
  ]);
  const server = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  server.stderr.on('data', (text) => (output = (output + text).slice(-4_000)));
  killAtExit(server);
  await until(
    () => {
      if (server.exitCode !== null) throw new Error(`postgres ended:\n${output}`);
      return isReady(programs, port);
    },
    { what: 'PostgreSQL to accept connections', deadlineMs: START_DEADLINE_MS, every: 50 },
  );
  return server;
}

export async function rowsOf<Row extends object>(url: string, text: string): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  // The query rejects as well.
  client.on('error', () => {});
  await client.connect();
  try {
    const result = (await client.query(text)) as pg.QueryResult | pg.QueryResult[];
    return ((Array.isArray(result) ? result.at(-1) : result)?.rows ?? []) as Row[];
  } finally {
    await client.end();
  }
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
export function unprivileged(command: readonly string[]): readonly string[] {
  if (process.getuid?.() !== 0) return command;
  const who = [`--reuid=${UNPRIVILEGED}`, '--regid=nogroup', '--clear-groups'];
  return ['setpriv', ...who, ...command];
}
