import { ConfigError } from '../../core/errors.ts';

/** How to reach a database, and what Holdfast does there. */
export interface PostgresAddress {
  /** Without secrets. */
  readonly name: string;
  /** The address without the parameters below, as `pg` takes it. */
  readonly url: string;
  /** `listen`: where to LISTEN, if `url` leads to a pooler that swallows it. */
  readonly listenUrl: string | null;
  readonly schema: string;
  readonly standbys: 'any' | 'synchronous';
}

const SCHEMA_FORM = /^[a-z_][a-z0-9_]{0,47}$/;
export const DEFAULT_SCHEMA = 'holdfast';

/** Reads `postgres://user@host:port/database?schema=…&listen=…&standbys=synchronous`. */
export function parseAddress(text: string): PostgresAddress {
  const refuse = (rule: string) =>
    new ConfigError({ field: 'store', value: text.split('://', 1)[0], rule });
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw refuse(
      'after postgres:// come host, port and database, as in postgres://app@db:5432/app',
    );
  }
  const take = (name: string) => {
    const value = url.searchParams.get(name);
    url.searchParams.delete(name);
    return value;
  };
  const schema = take('schema') ?? DEFAULT_SCHEMA;
  if (!SCHEMA_FORM.test(schema))
    throw refuse('?schema= is a lower-case SQL name of at most 48 characters, such as holdfast');
  const standbys = take('standbys') ?? 'any';
  if (standbys !== 'any' && standbys !== 'synchronous')
    throw refuse("?standbys= is 'any', or 'synchronous' if no other standby is ever promoted");
  const listenUrl = take('listen');
  if (listenUrl !== null && !/^postgres(ql)?:\/\//.test(listenUrl))
    throw refuse('?listen= is a postgres:// address that leads to the server without a pooler');
  return { name: nameOf(url, schema), url: url.href, listenUrl, schema, standbys };
}

function nameOf(url: URL, schema: string): string {
  const place = url.host || decodeURIComponent(url.searchParams.get('host') ?? '');
  const shown = schema === DEFAULT_SCHEMA ? '' : `?schema=${schema}`;
  return `postgres://${place}${url.pathname}${shown}`;
}
