import type { ConnectionOptions as TlsOptions } from 'node:tls';
import { ConfigError } from '../../core/errors.ts';
import {
  type AdoptablePgClient,
  type AdoptablePglite,
  type AdoptablePgPool,
  type AdoptablePostgres,
  isPglite,
  isPool,
  isPostgresJs,
} from './adoptable.ts';
import { isServerError } from './failures.ts';

/** One connection to a server. */
export interface PostgresLink {
  /**
   * Sends one message of the simple protocol, which the server executes as one transaction. Returns
   * the first column of the last statement's first row, or null.
   */
  query(text: string): Promise<string | null>;
  onLost(run: (error: Error) => void): void;
  onNotification(run: (channel: string, payload: string) => void): void;
  /** Ends it at once: the server rolls back what has not committed. */
  destroy(): void;
}

/** Makes connections. */
export interface PostgresDialer {
  /** `isListening`: for a connection that uses LISTEN, which may have an address of its own. */
  dial(timeoutMs: number, isListening: boolean): Promise<PostgresLink>;
  /** The database runs in this process: it has one connection, and no disk to examine. */
  readonly isEmbedded: boolean;
}

/** The part of a `Client` of `pg` that Holdfast uses. */
interface PgClient {
  connect(): Promise<unknown>;
  query(text: string | PgQuery): Promise<PgResult | PgResult[]>;
  on(event: string, listener: (...args: never[]) => void): unknown;
  readonly connection?: { readonly stream?: { destroy(): void } };
}
interface PgQuery {
  readonly text: string;
  readonly query_timeout: number;
}
interface PgResult {
  readonly rows: readonly object[];
}
type PgClientClass = new (config: object) => PgClient;

/** How often the kernel asks whether the server is still there. */
const KEEP_ALIVE_MS = 10_000;
const FIXED = {
  keepAlive: true,
  keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
  application_name: 'holdfast',
};

/** Connects by address: to the primary, where there are several hosts. Loads `pg`. */
export async function urlDialer(
  urls: readonly string[],
  listenUrl: string | null,
  tls: TlsOptions | undefined,
): Promise<PostgresDialer> {
  const Client = await loadPg();
  const ssl = tls === undefined ? {} : { ssl: tls };
  return {
    isEmbedded: false,
    dial: (timeoutMs, isListening) => {
      const to = isListening && listenUrl !== null ? [listenUrl] : urls;
      const configs = to.map((connectionString) => ({ connectionString, ...ssl }));
      const [first = {}] = configs;
      return configs.length > 1
        ? dialPrimary(Client, configs, timeoutMs)
        : dialPg(Client, first, timeoutMs);
    },
  };
}

/** Dials all hosts at once, so that one that hangs delays nothing, and takes the first primary. */
async function dialPrimary(
  Client: PgClientClass,
  configs: readonly object[],
  timeoutMs: number,
): Promise<PostgresLink> {
  let isDone = false;
  const attempts = configs.map(async (config) => {
    const link = await dialPg(Client, config, timeoutMs, true);
    if (isDone) link.destroy();
    isDone = true;
    return link;
  });
  return Promise.any(attempts).catch(({ errors }: { errors: readonly Error[] }) => {
    // One that the server sent says more: a wrong password, for example.
    const said = errors.find(isServerError);
    throw said ?? new Error(errors.map(({ message }) => message).join('; '));
  });
}

/** Connects as a client of the user does, with connections of our own. */
export async function adoptedDialer(from: AdoptablePostgres): Promise<PostgresDialer> {
  if (isPostgresJs(from)) {
    const { postgresJsDialer } = await import('./postgres-js-dialer.ts');
    return postgresJsDialer(from);
  }
  if (isPglite(from)) return pgliteDialer(from);
  const Client = classOf(from) ?? (await loadPg());
  const config = isPool(from) ? { ...from.options } : configOf(from);
  return { isEmbedded: false, dial: (timeoutMs) => dialPg(Client, config, timeoutMs) };
}

async function loadPg(): Promise<PgClientClass> {
  try {
    const { default: pg }: { default: { Client: unknown } } = await import('pg');
    return pg.Client as PgClientClass;
  } catch (error) {
    const rule = 'a postgres:// address needs the package pg: npm install pg';
    throw Object.assign(new ConfigError({ field: 'store', value: 'postgres:', rule }), {
      cause: error,
    });
  }
}

function classOf(from: AdoptablePgPool | AdoptablePgClient): PgClientClass | undefined {
  if (!isPool(from)) return from.constructor as PgClientClass;
  return (from as { Client?: PgClientClass }).Client;
}

/** The password is not enumerable there, so each setting is named. */
function configOf(client: AdoptablePgClient): object {
  const { user, database, host, port } = client;
  const { password, ssl } = client as { readonly password?: unknown; readonly ssl?: unknown };
  return { user, database, host, port, password, ssl };
}

async function dialPg(
  Client: PgClientClass,
  config: object,
  timeoutMs: number,
  mustBePrimary = false,
): Promise<PostgresLink> {
  const query_timeout = Math.ceil(timeoutMs);
  const client = new Client({ ...config, ...FIXED, connectionTimeoutMillis: query_timeout });
  let lost: ((error: Error) => void) | null = null;
  client.on('error', (error: Error) => lost?.(error));
  client.on('end', () => lost?.(new Error('the connection ended')));
  const destroy = () => client.connection?.stream?.destroy();
  try {
    await client.connect();
    const text = 'SELECT pg_is_in_recovery()::text';
    if (mustBePrimary && firstOf(await client.query({ text, query_timeout })) === 'true')
      throw new Error('the server is a standby in recovery');
  } catch (error) {
    destroy();
    throw error;
  }
  return {
    query: async (text) => firstOf(await client.query(text)),
    onLost: (run) => {
      lost = run;
    },
    onNotification: (run) => {
      client.on('notification', ({ channel, payload }: { channel: string; payload?: string }) =>
        run(channel, payload ?? ''),
      );
    },
    destroy,
  };
}

/** All connections of the store are this one: PGlite queues their messages itself. */
function pgliteDialer(db: AdoptablePglite): PostgresDialer {
  const dial = async (): Promise<PostgresLink> => {
    await db.waitReady;
    let forget = () => {};
    return {
      query: async (text) => firstOf(await db.exec(text)),
      onLost: () => {},
      onNotification: (run) => {
        forget = db.onNotification(run);
      },
      destroy: () => forget(),
    };
  };
  return { isEmbedded: true, dial };
}

function firstOf(result: PgResult | readonly PgResult[]): string | null {
  const last = 'rows' in result ? result : result.at(-1);
  const [value = null] = Object.values(last?.rows[0] ?? {}) as unknown[];
  return typeof value === 'string' ? value : null;
}
