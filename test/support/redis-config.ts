import { join } from 'node:path';
import { type Home, LOOPBACK } from './home.ts';
import type { RedisOptions } from './redis-server.ts';
import type { Credentials } from './resp.ts';

/** How redis-server is started: what it is told, and the file it reads and may rewrite. */
export interface RedisConfig {
  args: string[];
  file: { path: string; text: string } | undefined;
}

type Directive = readonly [name: string, ...values: string[]];

export function redisConfig(
  port: number,
  dir: string,
  options: RedisOptions,
  home = LOOPBACK,
): RedisConfig {
  const { sentinel, keepsConfig = false, credentials, args = [] } = options;
  const address: Directive[] = [['port', String(port)], ...bound(home), ['dir', dir]];
  const path = join(dir, 'redis.conf');
  if (sentinel !== undefined) {
    const directives = [...address, ...users(credentials), ...sentinel];
    return { args: [path, '--sentinel'], file: { path, text: asFile(directives) } };
  }
  const fixed = [...address, ...defaults(options), ...replication(credentials)];
  // What is said on the command line wins over the file: what Redis may rewrite stands there alone.
  const lasting = [...role(options), ...users(credentials)];
  if (!keepsConfig) return { args: [...asArgs([...fixed, ...lasting]), ...args], file: undefined };
  return { args: [path, ...asArgs(fixed), ...args], file: { path, text: asFile(lasting) } };
}

/** Beyond the loopback interface, Redis lets nobody in without a password, unless told to. */
function bound(home: Home): Directive[] {
  const bind: Directive = ['bind', home.address];
  return home === LOOPBACK ? [bind] : [bind, ['protected-mode', 'no']];
}

function defaults({ appendonly = false }: RedisOptions): Directive[] {
  return [
    ['save', ''],
    ['daemonize', 'no'],
    ['loglevel', 'notice'],
    // Every write is on the disk before its answer: a killed server forgets nothing it confirmed.
    ['appendonly', appendonly ? 'yes' : 'no'],
    ['appendfsync', 'always'],
    // A replica is served at once instead of after five seconds of waiting for more of them.
    ['repl-diskless-sync-delay', '0'],
  ];
}

function role({ replicaOf }: RedisOptions): Directive[] {
  return replicaOf === undefined
    ? []
    : [['replicaof', replicaOf.home.address, String(replicaOf.port)]];
}

function users(credentials: Credentials | undefined): Directive[] {
  if (credentials === undefined) return [];
  const { username, password } = credentials;
  if (username === undefined) return [['requirepass', password]];
  return [
    ['user', 'default', 'off'],
    ['user', username, 'on', `>${password}`, '~*', '&*', '+@all'],
  ];
}

/** Every server may become a replica of another one, which asks for the same password. */
function replication(credentials: Credentials | undefined): Directive[] {
  if (credentials === undefined) return [];
  const { username, password } = credentials;
  const user: Directive[] = username === undefined ? [] : [['masteruser', username]];
  return [...user, ['masterauth', password]];
}

function asArgs(directives: readonly Directive[]): string[] {
  return directives.flatMap(([name, ...values]) => [`--${name}`, ...values]);
}

function asFile(directives: readonly Directive[]): string {
  const lines = directives.map(([name, ...values]) =>
    [name, ...values.map((value) => JSON.stringify(value))].join(' '),
  );
  return lines.map((line) => `${line}\n`).join('');
}

/** What stands in front of the host in a URL. */
export function userInfo(credentials: Credentials | undefined): string {
  if (credentials === undefined) return '';
  const { username = '', password } = credentials;
  return `${encodeURIComponent(username)}:${encodeURIComponent(password)}@`;
}
