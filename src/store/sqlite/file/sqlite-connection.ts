import type Libsql from 'libsql';
import { libsql } from './libsql.ts';

export type Value = string | number | null;
type Statement = ReturnType<Libsql.Database['prepare']>;

/** A transaction under way. It begins and ends within one turn of the event loop. */
export interface Tx {
  readonly session: SqliteConnection;
  /** The store's time, read when the lock was had. */
  readonly nowMs: number;
  readonly wallMs: number;
  /** The time for a new fence, another one at each call. */
  readonly fenceTime: () => number;
  /** What to do once it is committed. */
  readonly after: (() => void)[];
}

/**
 * One connection and its prepared statements. Nothing here ever waits: the busy timeout is 0, so a lock that somebody
 * else holds is an error at once, and whoever gets it may try again later without stopping the event loop.
 */
export class SqliteConnection {
  readonly #db: Libsql.Database;
  #statements = new Map<string, Statement>();

  constructor(path: string) {
    const Database = libsql();
    this.#db = new Database(path, { timeout: 0 });
  }

  /** Runs a statement; says how many rows it changed. */
  run(sql: string, ...values: Value[]): number {
    return this.#statement(sql, false).run(values).changes;
  }

  /** The first row, as an array of its columns. */
  row<Row extends Value[]>(sql: string, ...values: Value[]): Row | undefined {
    return this.#statement(sql, true).get(values) as Row | undefined;
  }

  rows<Row extends Value[]>(sql: string, ...values: Value[]): Row[] {
    return this.#statement(sql, true).all(values) as Row[];
  }

  /** What a PRAGMA or an expression says, prepared for this once. */
  look(sql: string): Value | undefined {
    return (this.#db.prepare(sql).raw().get([]) as Value[] | undefined)?.[0];
  }

  /** For what gives no rows; and for BEGIN and COMMIT: a prepared BEGIN that met a lock would count as under way ever after. */
  exec(sql: string): void {
    this.#db.exec(sql);
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction;
  }

  /** With whatever was under way rolled back. */
  atRest(): this {
    try {
      if (this.inTransaction) this.exec('ROLLBACK');
    } catch {
      // A file that is past rolling back has no lock to give up, either.
    }
    return this;
  }

  /**
   * libsql gives the file back only when the garbage collector has taken the last statement. So we let go of all of them,
   * and of any lock first: a transaction left open would keep everybody else out until then.
   */
  close(): void {
    this.atRest();
    this.#statements = new Map();
    this.#db.close();
  }

  #statement(sql: string, isQuery: boolean): Statement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const made = this.#db.prepare(sql);
    if (isQuery) made.raw();
    this.#statements.set(sql, made);
    return made;
  }
}
