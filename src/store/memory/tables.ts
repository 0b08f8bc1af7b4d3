import type { Clock } from '../../core/clock.ts';
import { fenceTime } from '../fence-time.ts';
import type { IntentStore } from '../port/intent-store.ts';
import type { RunStore } from '../port/run-store.ts';
import type { StreamStore } from '../port/stream-store.ts';
import type { WorkflowStore } from '../port/workflow-store.ts';
import { checkDriver } from '../sqlite/driver/driver.ts';
import type { Batch, Transactions } from '../sqlite/file/lock-queue.ts';
import { SqliteConnection, type Tx } from '../sqlite/file/sqlite-connection.ts';
import { WORK_TABLES } from '../sqlite/tables/work-tables.ts';
import { SqliteIntents } from '../sqlite/verbs/intents.ts';
import type { LeaseHandover } from '../sqlite/verbs/orchestrator-steps.ts';
import { SqliteRunStore } from '../sqlite/verbs/run-store.ts';
import { sqliteStreams } from '../sqlite/verbs/streams.ts';
import { SqliteWorkflows } from '../sqlite/verbs/workflows.ts';
import type { MemoryLeases } from './leases.ts';
import type { MemorySignals } from './signals.ts';

/** Opens the streams, workflows, runs and intents of a memory store: those of SQLite, in memory. */
export function openTables(
  clock: Clock,
  leases: MemoryLeases,
  signals: MemorySignals,
): {
  readonly streams: StreamStore;
  readonly workflows: WorkflowStore;
  readonly intents: IntentStore;
  readonly runs: RunStore;
} {
  checkDriver('memory:');
  const transactions = new MemoryConnection(clock);
  const txSignals = {
    send: (tx: Tx, topic: string, message: string) =>
      void tx.afterCommit.push(() => signals.deliver(topic, message)),
  };
  const txLeases = {
    look: (_: Tx, key: string) => ({ ...leases.look(key), expiresInMs: leases.expiresInMs(key) }),
    handOver: (_: Tx, handover: LeaseHandover) => leases.handOver(handover),
    free: (_: Tx, key: string) => leases.free(key),
  };
  return {
    streams: sqliteStreams(transactions, txSignals),
    workflows: new SqliteWorkflows(transactions, txLeases, txSignals),
    intents: new SqliteIntents(transactions, txSignals),
    runs: new SqliteRunStore(transactions, txLeases, txSignals),
  };
}

/** The only connection to a database in memory. So each transaction begins at once. */
class MemoryConnection implements Transactions {
  readonly #clock: Clock;
  readonly #connection = new SqliteConnection(':memory:');
  readonly #fenceTime = () => fenceTime(this.#clock);

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#connection.exec(WORK_TABLES);
  }

  async read<T, R>({ items, each }: Batch<T, R>): Promise<R[]> {
    const tx = this.#tx();
    return items.map((item, i) => each(tx, item, i));
  }

  async write<T, R>({ items, each }: Batch<T, R>): Promise<R[]> {
    const tx = this.#tx();
    this.#connection.exec('BEGIN');
    try {
      const replies = items.map((item, i) => each(tx, item, i));
      this.#connection.exec('COMMIT');
      for (const run of tx.afterCommit) run();
      return replies;
    } finally {
      this.#connection.rolledBack();
    }
  }

  async readOne<R>(operation: string, _: unknown, each: (tx: Tx) => R): Promise<R> {
    return (await this.read({ operation, items: [null], each }))[0] as R;
  }

  async writeOne<R>(operation: string, _: unknown, each: (tx: Tx) => R): Promise<R> {
    return (await this.write({ operation, items: [null], each }))[0] as R;
  }

  #tx(): Tx {
    return {
      connection: this.#connection,
      scope: '',
      nowMs: this.#clock.monotonicMs(),
      wallMs: this.#clock.wallMs(),
      fenceTime: this.#fenceTime,
      afterCommit: [],
    };
  }
}
