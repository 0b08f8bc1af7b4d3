/** pgbouncer in transaction mode, before a server of a test's own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { unprivileged } from './postgres-server.ts';
import { atExit, killAtExit } from './process.ts';
import { freePort } from './redis-server.ts';
import { requirePrograms, thisMachine } from './require-redis.ts';
import { until } from './until.ts';

export interface Pgbouncer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** SIGKILL, what is given, and a new start on the same port. */
  restart(meanwhile?: () => Promise<unknown>): Promise<void>;
}

export interface PgbouncerOptions {
  readonly poolSize?: number;
  readonly pickPort?: () => Promise<number>;
}

/** Debian has it where only root looks. */
const PROGRAM = '/usr/sbin/pgbouncer';

export async function startPgbouncer(
  serverPort: number,
  { poolSize = 3, pickPort = freePort }: PgbouncerOptions = {},
): Promise<Pgbouncer> {
  const { env } = thisMachine;
  requirePrograms({ ...thisMachine, env: { ...env, PATH: `${env.PATH}:/usr/sbin` } }, [
    'pgbouncer',
  ]);
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-pgb-'));
  const forget = atExit(() => rmSync(dir, { recursive: true, force: true }));
  chmodSync(dir, 0o777);
  const port = await pickPort();
  const settings = [
    '[databases]',
    `postgres = host=127.0.0.1 port=${serverPort} user=postgres`,
    '[pgbouncer]',
    'listen_addr = 127.0.0.1',
    `listen_port = ${port}`,
    'unix_socket_dir =',
    'auth_type = any',
    'pool_mode = transaction',
    `default_pool_size = ${poolSize}`,
    'max_client_conn = 500',
  ];
  const file = join(dir, 'pgbouncer.ini');
  writeFileSync(file, settings.join('\n'));
  let child = await serve(file, port);
  const kill = async () => {
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  };
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    async restart(meanwhile = async () => {}) {
      await kill();
      try {
        await meanwhile();
      } finally {
        child = await serve(file, port);
      }
    },
    async [Symbol.asyncDispose]() {
      await kill();
      rmSync(dir, { recursive: true, force: true });
      forget();
    },
  };
}

async function serve(file: string, port: number): Promise<ChildProcess> {
  const [program = '', ...args] = unprivileged([PROGRAM, file]);
  const child = spawn(program, args, { stdio: 'ignore' });
  killAtExit(child);
  await until(() => isOpen(port), { what: 'pgbouncer to listen', deadlineMs: 10_000, every: 20 });
  return child;
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const done = (is: boolean) => {
      socket.destroy();
      resolve(is);
    };
    socket.once('connect', () => done(true)).once('error', () => done(false));
  });
}
