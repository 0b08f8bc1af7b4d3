/** SQLite as it comes with Node: 22.13 and later have it without a flag. */
import { Worker } from 'node:worker_threads';
import type { Database, Driver, Statement, Value } from './driver.ts';

/** What is used of `node:sqlite`. The types of Node 20 do not know it. */
interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => NodeDatabaseSync;
}

interface NodeDatabaseSync {
  /** Since Node 22.16. */
  readonly isTransaction?: boolean;
  prepare(sql: string): NodeStatementSync;
  exec(sql: string): void;
  close(): void;
}

interface NodeStatementSync {
  run(...values: readonly Value[]): { readonly changes: number | bigint };
  get(...values: readonly Value[]): unknown;
  all(...values: readonly Value[]): unknown[];
  /** Since Node 22.16. */
  setReturnArrays?(isOn: boolean): void;
}

/** A thread takes longer to start than so much is written in. */
const SHORT_LOG_BYTES = 256 * 1_024;

/** Returns null on a Node without it. */
export function nodeDriver(): Driver | null {
  const sqlite = quietly(() => process.getBuiltinModule?.('node:sqlite') as NodeSqlite | undefined);
  if (sqlite === undefined) return null;
  return {
    name: 'node',
    open: (path) => new NodeConnection(new sqlite.DatabaseSync(path)),
    execAside,
    shortLogBytes: SHORT_LOG_BYTES,
  };
}

/** Node 22 warns that the module is experimental. The output of a command is for its results. */
function quietly<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** `node:sqlite` runs on the thread of its caller. So another thread runs this text. */
const ASIDE = `
const { workerData } = require('node:worker_threads');
process.emitWarning = () => {};
const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
const connection = new DatabaseSync(workerData.path);
try {
  connection.exec(workerData.sql);
} finally {
  connection.close();
}
`;

function execAside(path: string, sql: string, lockWaitMs: number): Promise<void> {
  const patient = `PRAGMA busy_timeout = ${lockWaitMs};${sql}`;
  const thread = new Worker(ASIDE, {
    eval: true,
    execArgv: [],
    workerData: { path, sql: patient },
  });
  // Like any write to the disk, it keeps no process from ending.
  thread.unref();
  return new Promise((resolve, reject) => {
    thread.once('error', reject);
    thread.once('exit', () => resolve());
  });
}

class NodeConnection implements Database {
  readonly #db: NodeDatabaseSync;
  /** What Node before 22.16 cannot say. SQLite itself may have rolled back since. */
  #hasBegun = false;

  constructor(db: NodeDatabaseSync) {
    this.#db = db;
  }

  get inTransaction(): boolean {
    return this.#db.isTransaction ?? this.#hasBegun;
  }

  prepare(sql: string): Statement {
    return prepared(this.#db.prepare(sql));
  }

  exec(sql: string): void {
    this.#db.exec(sql);
    if (sql.startsWith('BEGIN')) this.#hasBegun = true;
    else if (sql === 'COMMIT' || sql === 'ROLLBACK') this.#hasBegun = false;
  }

  close(): void {
    this.#db.close();
  }
}

/** Node before 22.16 returns objects. Two columns of one name would be one there. */
function prepared(statement: NodeStatementSync): Statement {
  statement.setReturnArrays?.(true);
  const columns =
    statement.setReturnArrays === undefined
      ? (row: unknown) => Object.values(row as Record<string, Value>)
      : (row: unknown) => row as Value[];
  return {
    run: (values) => Number(statement.run(...values).changes),
    row: (values) => {
      const row = statement.get(...values);
      return row === undefined ? undefined : columns(row);
    },
    rows: (values) => statement.all(...values).map(columns),
  };
}
