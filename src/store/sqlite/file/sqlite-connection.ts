import { type Database, type Statement, sqliteDriver, type Value } from '../driver/driver.ts';

/** A transaction. It begins and ends within one turn of the event loop. */
export interface Tx {
  readonly connection: SqliteConnection;
  /** The store's prefix. Keys, collections and topics begin with it; other tables have a column. */
  readonly scope: string;
  /** The store's time, read after the lock was acquired. */
  readonly nowMs: number;
  readonly wallMs: number;
  /** The time for a new fence. Each call returns another one. */
  readonly fenceTime: () => number;
  /** Callbacks that run after COMMIT. */
  readonly afterCommit: (() => void)[];
}

/** Sends hints from within a transaction. Subscribers get them after COMMIT. */
export interface TxSignals {
  send(tx: Tx, topic: string, message: string): void;
}

/**
 * One connection and its prepared statements. No method waits. The busy timeout is 0, so a lock of
 * another connection is an error at once. The lock queue tries again, and the event loop continues.
 */
export class SqliteConnection {
  readonly #db: Database;
  #statements = new Map<string, Statement>();

  constructor(path: string) {
    this.#db = sqliteDriver().open(path);
  }

  /** Runs a statement and returns how many rows it changed. */
  run(sql: string, ...values: Value[]): number {
    return this.#statement(sql).run(values);
  }

  /** Returns the first row as an array of its columns. */
  row<Row extends Value[]>(sql: string, ...values: Value[]): Row | undefined {
    return this.#statement(sql).row(values) as Row | undefined;
  }

  rows<Row extends Value[]>(sql: string, ...values: Value[]): Row[] {
    return this.#statement(sql).rows(values) as Row[];
  }

  /** Returns the first column of a PRAGMA or an expression. The statement is not kept. */
  value(sql: string): Value | undefined {
    return this.#db.prepare(sql).row([])?.[0];
  }

  /**
   * Runs statements that return no rows, such as BEGIN and COMMIT. A prepared BEGIN that met a lock
   * would count as running from then on.
   */
  exec(sql: string): void {
    this.#db.exec(sql);
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction;
  }

  /** Rolls back an open transaction, and returns the connection. */
  rolledBack(): this {
    try {
      if (this.inTransaction) this.exec('ROLLBACK');
    } catch {
      // Where ROLLBACK fails, the connection has no lock to release.
    }
    return this;
  }

  /**
   * A driver may close the file only after the last statement was garbage-collected. So the
   * statements are dropped. The lock is released first: an open transaction would block other
   * processes until then.
   */
  close(): void {
    this.rolledBack();
    this.#statements = new Map();
    this.#db.close();
  }

  #statement(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#db.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}
