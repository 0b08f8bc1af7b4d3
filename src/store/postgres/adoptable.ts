/**
 * The parts of a user's PostgreSQL client that Holdfast uses. They have a file of their own, so
 * that a process with another store does not load this one.
 */

/** A `Pool` of `pg`. Holdfast opens connections of its own with its options. */
export interface AdoptablePgPool {
  readonly options: object;
  readonly totalCount: number;
  connect(): Promise<unknown>;
}

/** A `Client` of `pg`. Holdfast opens connections of its own to the same database. */
export interface AdoptablePgClient {
  readonly host: string;
  readonly port: number;
  readonly user?: string | undefined;
  readonly database?: string | undefined;
  connect(): Promise<unknown>;
}

/** A PGlite database: for tests, in one process. */
export interface AdoptablePglite {
  readonly waitReady: Promise<void>;
  exec(text: string): Promise<{ readonly rows: readonly object[] }[]>;
  onNotification(listener: (channel: string, payload: string) => void): () => void;
}

/**
 * An instance of `postgres` (postgres.js). Holdfast opens connections of its own with its options.
 */
export interface AdoptablePostgresJs {
  readonly options: { readonly host: readonly string[]; readonly database: string };
  unsafe(text: string): PromiseLike<unknown>;
  begin(...work: never[]): PromiseLike<unknown>;
  reserve(): Promise<unknown>;
}

export type AdoptablePostgres =
  | AdoptablePgPool
  | AdoptablePgClient
  | AdoptablePglite
  | AdoptablePostgresJs;

export function isPool(value: object): value is AdoptablePgPool {
  return 'totalCount' in value && 'options' in value && 'connect' in value;
}

function isClient(value: object): value is AdoptablePgClient {
  return 'host' in value && 'port' in value && 'query' in value && 'connect' in value;
}

export function isPglite(value: object): value is AdoptablePglite {
  return 'waitReady' in value && 'exec' in value && 'onNotification' in value;
}

/** An instance is a function. A transaction of it has no `reserve`. */
export function isPostgresJs(value: unknown): value is AdoptablePostgresJs {
  return typeof value === 'function' && 'unsafe' in value && 'reserve' in value;
}

/** Whether a value looks like a client of PostgreSQL. */
export function isAdoptablePostgres(value: unknown): value is AdoptablePostgres {
  if (isPostgresJs(value)) return true;
  if (typeof value !== 'object' || value === null) return false;
  return isPool(value) || isClient(value) || isPglite(value);
}
