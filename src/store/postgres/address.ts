import { ConfigError } from '../../core/errors.ts';

/** How to reach a database, and what Holdfast does there. */
export interface PostgresAddress {
  /** Without secrets. */
  readonly name: string;
  /** One address for each host, without the parameters below, as `pg` takes it. */
  readonly urls: readonly string[];
  /** `listen`: where to LISTEN, if `url` leads to a pooler that swallows it. */
  readonly listenUrl: string | null;
  readonly schema: string;
  readonly standbys: 'any' | 'synchronous';
}

const SCHEMA_FORM = /^[a-z_][a-z0-9_]{0,47}$/;
export const DEFAULT_SCHEMA = 'holdfast';

/** Scheme and login, hosts, and the rest. */
const PARTS = /^([^/]*:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/;
/** What libpq calls a session that can write. Holdfast needs one, whatever the address says. */
const WRITABLE = ['read-write', 'primary', 'any'];

/**
 * Reads `postgres://user@host:port/database?schema=…&listen=…&standbys=synchronous`, also with
 * several hosts: `postgres://user@a:5432,b:5432/database?target_session_attrs=read-write`.
 */
export function parseAddress(text: string): PostgresAddress {
  // The address may have a password.
  const refuse = (rule: string, value = text.split('://', 1)[0]) =>
    new ConfigError({ field: 'store', value, rule });
  const [, login = '', hosts = '', rest = ''] = PARTS.exec(text) ?? [];
  let all: [URL, ...URL[]];
  try {
    all = hosts.split(',').map((host) => new URL(login + host + rest)) as [URL, ...URL[]];
  } catch {
    throw refuse(
      'after postgres:// come host, port and database, as in postgres://app@db:5432/app',
    );
  }
  const take = (name: string) => {
    const value = all[0].searchParams.get(name);
    for (const url of all) url.searchParams.delete(name);
    return value;
  };
  const schema = take('schema') ?? DEFAULT_SCHEMA;
  if (!SCHEMA_FORM.test(schema))
    throw refuse('it is a lower-case SQL name of at most 48 characters', `?schema=${schema}`);
  const standbys = take('standbys') ?? 'any';
  if (standbys !== 'any' && standbys !== 'synchronous')
    throw refuse(
      "it is 'any', or 'synchronous' if no other standby is ever promoted",
      `?standbys=${standbys}`,
    );
  const listenUrl = take('listen');
  if (listenUrl !== null && !/^postgres(ql)?:\/\//.test(listenUrl))
    throw refuse('?listen= is a postgres:// address that leads to the server without a pooler');
  const session = take('target_session_attrs') ?? 'read-write';
  if (!WRITABLE.includes(session))
    throw refuse(
      `leases need a primary: it is ${WRITABLE.join(', ')}`,
      `?target_session_attrs=${session}`,
    );
  const urls = all.map((url) => url.href);
  return { name: nameOf(all, schema), urls, listenUrl, schema, standbys };
}

function nameOf(urls: readonly [URL, ...URL[]], schema: string): string {
  const [first] = urls;
  const hosts = urls.map(({ host }) => host).join(',');
  const place = hosts || decodeURIComponent(first.searchParams.get('host') ?? '');
  const shown = schema === DEFAULT_SCHEMA ? '' : `?schema=${schema}`;
  return `postgres://${place}${first.pathname}${shown}`;
}
