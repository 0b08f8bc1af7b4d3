/** Connects with `postgres` (postgres.js), as an instance of the user does. */
import { ConfigError } from '../../core/errors.ts';
import type { AdoptablePostgresJs } from './adoptable.ts';
import type { PostgresDialer, PostgresLink } from './dialer.ts';

/** The part of an instance that Holdfast uses. */
interface Sql {
  unsafe(text: string): PromiseLike<readonly unknown[]>;
  end(options: { readonly timeout: number }): Promise<void>;
}
type MakeSql = (options: object) => Sql;

/** Each connection is an instance of its own, with one connection that is never made again. */
export async function postgresJsDialer(from: AdoptablePostgresJs): Promise<PostgresDialer> {
  const make = await load();
  // Without what the instance keeps for itself: with `shared`, it would share its connections.
  const { shared: _, ...options } = from.options as { shared?: unknown; connection?: object };
  return { isEmbedded: false, dial: (timeoutMs) => dial(make, options, timeoutMs) };
}

async function load(): Promise<MakeSql> {
  try {
    const { default: make }: { default: unknown } = await import('postgres');
    return make as MakeSql;
  } catch (error) {
    const rule = 'an instance of postgres needs the package postgres beside holdfast';
    throw Object.assign(new ConfigError({ field: 'store', value: 'postgres', rule }), {
      cause: error,
    });
  }
}

async function dial(
  make: MakeSql,
  options: { readonly connection?: object },
  timeoutMs: number,
): Promise<PostgresLink> {
  let isLost = false;
  let lost: (error: Error) => void = () => {};
  let notified: (channel: string, payload: string) => void = () => {};
  const sql = make({
    ...options,
    max: 1,
    fetch_types: false,
    prepare: false,
    idle_timeout: null,
    max_lifetime: null,
    backoff: 0,
    connect_timeout: timeoutMs / 1_000,
    connection: { ...options.connection, application_name: 'holdfast' },
    transform: {},
    types: {},
    onnotice: () => {},
    onparameter: () => {},
    onnotify: (channel: string, payload: string) => notified(channel, payload),
    onclose: () => {
      isLost = true;
      destroy();
      lost(new Error('the connection ended'));
    },
  });
  const destroy = () => void sql.end({ timeout: 0 }).catch(() => {});
  try {
    await sql.unsafe('SELECT 1');
  } catch (error) {
    destroy();
    throw error;
  }
  return {
    query: async (text) => {
      // It would connect again by itself, to a server that has not been examined.
      if (isLost) throw new Error('the connection ended');
      return firstOf(await sql.unsafe(text));
    },
    onLost: (run) => {
      lost = run;
    },
    onNotification: (run) => {
      notified = run;
    },
    destroy,
  };
}

/** Rows of one statement, or such a list for each of several. */
function firstOf(result: readonly unknown[]): string | null {
  const last = result.at(-1);
  const [row] = (Array.isArray(last) ? last : result) as readonly object[];
  const [value = null] = Object.values(row ?? {}) as unknown[];
  return typeof value === 'string' ? value : null;
}
