import { readFileSync } from 'node:fs';
import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { ConfigError } from '../../../core/errors.ts';
import type { Credentials, Endpoint } from './link.ts';

/** A Redis URL, taken apart. */
export interface RedisAddress {
  readonly kind: 'single' | 'sentinel' | 'cluster';
  readonly endpoints: readonly Endpoint[];
  /** What the sentinels call the primary. */
  readonly primaryName: string;
  readonly credentials: Credentials;
  readonly sentinelCredentials: Credentials;
  /** The address as messages may show it: without user, password and query. */
  readonly name: string;
}

const SCHEMES: Readonly<
  Record<string, { kind: RedisAddress['kind']; port: number; tls: boolean }>
> = {
  'redis:': { kind: 'single', port: 6379, tls: false },
  'rediss:': { kind: 'single', port: 6379, tls: true },
  'redis+sentinel:': { kind: 'sentinel', port: 26379, tls: false },
  'rediss+sentinel:': { kind: 'sentinel', port: 26379, tls: true },
  'redis+cluster:': { kind: 'cluster', port: 6379, tls: false },
  'rediss+cluster:': { kind: 'cluster', port: 6379, tls: true },
};

/** The parameters behind the `?`. They name files, because a key does not belong in a URL. */
const QUERY = new Set(['ca', 'cert', 'key', 'servername', 'sentinelUsername', 'sentinelPassword']);

/**
 * `redis://[user[:password]@]host[:port][/db]`, for sentinels
 * `redis+sentinel://…@host:port,host:port/primary-name[/db]`, for a Cluster
 * `redis+cluster://…@host:port,host:port`; with `rediss` instead of `redis` everything is
 * encrypted.
 */
export function parseAddress(url: string, tls?: TlsOptions): RedisAddress {
  const found = /^([a-z+]+:)\/\/(?:([^@/?#]*)@)?([^@/?#]+)(\/[^?#]*)?(?:\?([^#]*))?$/.exec(url);
  const [, scheme = '', user = '', hosts = '', path = '', search = ''] = found ?? [];
  const form = SCHEMES[scheme];
  if (found === null || form === undefined) throw invalid('it is not the URL of a Redis');
  if (tls !== undefined && !form.tls)
    throw new ConfigError({
      field: 'tls',
      value: tls,
      rule: `it needs a rediss URL, not ${scheme}`,
    });
  const query = readQuery(search);
  const endpoints = hosts.split(',').map((host) => readEndpoint(host, form.port));
  if (form.kind === 'single' && endpoints.length > 1)
    throw invalid('several hosts are for redis+sentinel:// and redis+cluster://');
  const segments = path.split('/').slice(1).map(decode);
  const primaryName = form.kind === 'sentinel' ? (segments.shift() ?? '') : '';
  if (form.kind === 'sentinel' && primaryName === '')
    throw invalid('behind the hosts stands what the sentinels call the primary, such as /mymaster');
  const encryption = form.tls ? { tls: { ...tlsFrom(query), ...tls } } : {};
  const [username, password] = user.split(/:(.*)/s, 2).map(decode);
  return {
    kind: form.kind,
    endpoints,
    primaryName,
    credentials: {
      ...letIn(username, password),
      ...readDatabase(segments, form.kind),
      ...encryption,
    },
    sentinelCredentials: {
      ...letIn(query.get('sentinelUsername'), query.get('sentinelPassword')),
      ...encryption,
    },
    name: `${scheme}//${hosts}${path === '/' ? '' : path}`,
  };
}

function letIn(username: string | undefined, password: string | undefined): Credentials {
  return { ...(username && { username }), ...(password && { password }) };
}

function readEndpoint(text: string, defaultPort: number): Endpoint {
  const [, bracketed, plain, port] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const number = port === undefined ? defaultPort : Number(port);
  if (host === undefined || number < 1 || number > 65_535)
    throw invalid('each host is a name or an address, with a port from 1 to 65535 if you like');
  return { host, port: number };
}

function readDatabase([text = '', ...more]: readonly string[], kind: RedisAddress['kind']) {
  if (text === '' && more.length === 0) return {};
  if (!/^\d{1,5}$/.test(text) || more.length > 0)
    throw invalid('the path is the number of a database, such as /0');
  if (kind === 'cluster' && text !== '0') throw invalid('a Cluster has only database 0');
  return { database: Number(text) };
}

function readQuery(search: string): Map<string, string> {
  const query = new Map(new URLSearchParams(search));
  for (const name of query.keys()) {
    if (!QUERY.has(name)) throw invalid(`behind the ? may stand ${[...QUERY].join(', ')}`);
  }
  return query;
}

function tlsFrom(query: ReadonlyMap<string, string>): TlsOptions {
  const options: TlsOptions = {};
  for (const name of ['ca', 'cert', 'key'] as const) {
    const path = query.get(name);
    if (path !== undefined) options[name] = readPem(name, path);
  }
  const servername = query.get('servername');
  return servername === undefined ? options : { ...options, servername };
}

function readPem(field: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new ConfigError({
      field,
      value: path,
      rule: `it must be a file with a certificate or key: ${why}`,
    });
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw invalid('a % in it stands for nothing; write it as %25');
  }
}

function invalid(rule: string): ConfigError {
  return new ConfigError({ field: 'store', value: '(not shown: it may hold a password)', rule });
}
