/**
 * The package libsql, an optional dependency. It is loaded by `require`: if its native part is
 * missing, an `import` rejects twice on Node 20, once for the caller, and once where no program can
 * catch it.
 */
import { createRequire } from 'node:module';
import type Libsql from 'libsql';
import type LibsqlPromise from 'libsql/promise';
import type { Database, Driver, Statement, Value } from './driver.ts';

const require = createRequire(import.meta.url);

export function libsqlDriver(): Driver {
  const Connection = require('libsql') as typeof Libsql;
  return {
    name: 'libsql',
    open: (path) => new LibsqlConnection(new Connection(path, { timeout: 0 })),
    execAside,
    shortLogBytes: 0,
  };
}

/** libsql has a thread of its own. */
async function execAside(path: string, sql: string, lockWaitMs: number): Promise<void> {
  const Connection = require('libsql/promise') as typeof LibsqlPromise;
  const connection = new Connection(path, { timeout: lockWaitMs });
  try {
    await connection.exec(sql);
  } finally {
    connection.close();
  }
}

class LibsqlConnection implements Database {
  readonly #db: Libsql.Database;

  constructor(db: Libsql.Database) {
    this.#db = db;
  }

  get inTransaction(): boolean {
    return this.#db.inTransaction;
  }

  prepare(sql: string): Statement {
    return prepared(this.#db.prepare(sql));
  }

  exec(sql: string): void {
    this.#db.exec(sql);
  }

  /** Closes the file only after the last statement was garbage-collected. */
  close(): void {
    this.#db.close();
  }
}

/** Only a statement that returns rows may be raw, which gives them as arrays. */
function prepared(statement: Libsql.Statement): Statement {
  let isRaw = false;
  const raw = () => {
    if (!isRaw) statement.raw();
    isRaw = true;
    return statement;
  };
  return {
    run: (values) => statement.run(values).changes,
    row: (values) => raw().get(values) as Value[] | undefined,
    rows: (values) => raw().all(values) as Value[][],
  };
}
