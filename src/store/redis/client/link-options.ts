/** What an address of Redis cannot say: passwords that rotate, and servers behind NAT. */
import { ConfigError } from '../../../core/errors.ts';
import type { Endpoint } from './link.ts';

/** A user of Redis. Without `username` it is the one of the address, or the default user. */
export interface RedisLogin {
  readonly username?: string | undefined;
  readonly password: string;
}

/** Called before each connection. It has the time that the connection has. */
export type AskForLogin = () => RedisLogin | Promise<RedisLogin>;

/** Where to reach a server, by the `host:port` that sentinels or a Cluster announce. */
export type NatMap =
  | Readonly<Record<string, Endpoint>>
  | ((address: string) => Endpoint | null | undefined);

/** What Holdfast needs to reach a Redis beyond its address. */
export interface RedisLinkOptions {
  /** Called for user and password before each connection, for passwords that rotate. */
  credentials?: AskForLogin | undefined;
  /** The same for the sentinels. */
  sentinelCredentials?: AskForLogin | undefined;
  /**
   * Where to reach the servers of sentinels or of a Cluster, if not at the addresses that they
   * announce: `{ '10.0.0.5:6379': { host: 'redis.example.com', port: 7001 } }`, or a function of
   * `host:port`. An address that it does not have is used as it is.
   */
  natMap?: NatMap | undefined;
}

const KNOWN = new Set(['credentials', 'sentinelCredentials', 'natMap']);
const FIELD = 'redis';
const ENDPOINT_RULE = "it must be { host: 'name or address', port: 1 to 65535 }";
const LOGIN_RULE = 'its result must be { username, password }, in which username may be left out';
/** A password must not reach a message. */
const HIDDEN = '(not shown)';

/** Throws unless the value is `RedisLinkOptions`. */
export function checkLinkOptions(value: unknown): asserts value is RedisLinkOptions | undefined {
  if (value === undefined) return;
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ConfigError({ field: FIELD, value, rule: 'it must be an object' });
  for (const name of Object.keys(value)) {
    if (KNOWN.has(name)) continue;
    const rule = `unknown option. Known options: ${[...KNOWN].join(', ')}`;
    throw new ConfigError({ field: `${FIELD}.${name}`, value: HIDDEN, rule });
  }
  const { credentials, sentinelCredentials, natMap } = value as Record<string, unknown>;
  checkCallback(credentials, 'credentials');
  checkCallback(sentinelCredentials, 'sentinelCredentials');
  if (natMap === undefined || typeof natMap === 'function') return;
  const field = `${FIELD}.natMap`;
  if (typeof natMap !== 'object' || natMap === null || Array.isArray(natMap)) {
    const rule = "it must be a function, or an object such as { '10.0.0.5:6379': { host, port } }";
    throw new ConfigError({ field, value: natMap, rule });
  }
  for (const [address, at] of Object.entries(natMap)) {
    if (!/^.+:\d{1,5}$/.test(address)) {
      const rule = 'each name must be the host:port that a server announces';
      throw new ConfigError({ field, value: address, rule });
    }
    if (!isEndpoint(at))
      throw new ConfigError({ field: `${field}.${address}`, value: at, rule: ENDPOINT_RULE });
  }
}

/** The host and port of an announced `host:port`. */
export function readAddress(address: string): Endpoint {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}

/** Where to reach the server that announces an address. */
export function reachedAt(address: string, natMap: NatMap | undefined): Endpoint {
  const field = `${FIELD}.natMap`;
  let at: unknown;
  try {
    if (typeof natMap === 'function') at = natMap(address);
    else if (natMap !== undefined && Object.hasOwn(natMap, address)) at = natMap[address];
  } catch (error) {
    const rule = `it failed for ${address}: ${error instanceof Error ? error.message : error}`;
    throw new ConfigError({ field, value: natMap, rule }, { cause: error });
  }
  if (at === undefined || at === null) return readAddress(address);
  if (isEndpoint(at)) return at;
  throw new ConfigError({ field, value: at, rule: `for ${address} ${ENDPOINT_RULE}` });
}

/** Calls for user and password. Connections that are made at the same time share one call. */
export function sharedLogin(
  ask: AskForLogin,
  field: 'credentials' | 'sentinelCredentials',
): () => Promise<RedisLogin> {
  let asked: Promise<RedisLogin> | null = null;
  return () => {
    asked ??= loginFrom(ask, `${FIELD}.${field}`).finally(() => {
      asked = null;
    });
    return asked;
  };
}

async function loginFrom(ask: AskForLogin, field: string): Promise<RedisLogin> {
  let login: unknown;
  try {
    login = await ask();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${field}() failed: ${why}`, { cause: error });
  }
  if (isLogin(login)) return login;
  throw new ConfigError({ field: `${field}()`, value: HIDDEN, rule: LOGIN_RULE });
}

function checkCallback(value: unknown, name: string): void {
  if (value === undefined || typeof value === 'function') return;
  const rule = 'it must be a function that returns { username, password }';
  throw new ConfigError({ field: `${FIELD}.${name}`, value: HIDDEN, rule });
}

function isLogin(value: unknown): value is RedisLogin {
  if (typeof value !== 'object' || value === null) return false;
  const { username, password } = value as Record<string, unknown>;
  const isNamed = username === undefined || typeof username === 'string';
  return isNamed && typeof password === 'string' && password !== '';
}

function isEndpoint(value: unknown): value is Endpoint {
  if (typeof value !== 'object' || value === null) return false;
  const { host, port } = value as Record<string, unknown>;
  const isPort = Number.isInteger(port) && Number(port) >= 1 && Number(port) <= 65_535;
  return typeof host === 'string' && host !== '' && isPort;
}
