import { asEntries, pageOf, pageSize } from '../../log-pages.ts';
import {
  LOG_KEPT,
  type LogPage,
  type LogReadCall,
  type LogRecallCall,
  type LogStore,
  type LogTrimCall,
} from '../../port/log-store.ts';
import type { Call } from '../../port/store.ts';
import type { Transactions } from '../file/lock-queue.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import type { Names } from '../tables/names.ts';

/** Each entry clears away so many old ones, at most; */
const CLEARED = 2;
/** and each request these besides, so that a log that was left full gets down to its size. */
const CLEARED_BESIDES = 16;
/** Dropped in one transaction, for being too old. */
const TRIMMED = 5_000;
/** What the last entry says when it is too old. It keeps its row, and with it the number to go on from. */
const NOTHING = '';

/**
 * Entries are rows with numbers that follow each other without gaps: so it shows when some are missing. The first number
 * of a log is made from the time, as fences are, so that nobody takes a position in a file that is gone for one in this.
 */
export class SqliteLog implements LogStore {
  readonly #scope: string;
  readonly #turns: Transactions;

  constructor(parts: { names: Names; turns: Transactions }) {
    this.#scope = parts.names.prefix;
    this.#turns = parts.turns;
  }

  async append(values: readonly unknown[], call: Call): Promise<void> {
    if (values.length === 0) return;
    // As one array of texts: a statement for each of a thousand takes longer than a transaction should.
    const json = JSON.stringify(asEntries(values));
    await this.#turns.writeOne('append', call, (tx) => {
      const first = (this.#last(tx) ?? Math.floor(tx.wallMs * 1_000)) + 1;
      tx.session.run(
        'INSERT INTO log SELECT ?, ? + key, ?, value FROM json_each(?)',
        this.#scope,
        first,
        tx.nowMs,
        json,
      );
      this.#clear(tx, first + values.length - 1, values.length * CLEARED + CLEARED_BESIDES);
    });
  }

  read(call: LogReadCall): Promise<LogPage> {
    const size = pageSize(call.most);
    return this.#turns.readOne('read log', call, (tx) => {
      if (call.after === undefined) return pageOf(this.#from(tx, 0, size), size, false);
      const after = numberOf(call.after);
      const found = after === null ? [] : this.#from(tx, after, size);
      const next = found[0] === undefined ? this.#last(tx) : Number(found[0][0]) - 1;
      if (after !== null && next === after) return pageOf(found, size, false);
      return pageOf(this.#from(tx, 0, size), size, true);
    });
  }

  recall(call: LogRecallCall): Promise<LogPage> {
    const size = pageSize(call.most);
    return this.#turns.readOne('recall', call, ({ session }) => {
      const before = call.before === undefined ? Number.MAX_SAFE_INTEGER : numberOf(call.before);
      if (before === null) return pageOf([], size, true);
      const rows = session.rows<[number, string]>(
        'SELECT number, json FROM log WHERE scope = ? AND number < ? AND json <> ? ORDER BY number DESC LIMIT ?',
        this.#scope,
        before,
        NOTHING,
        size + 1,
      );
      return pageOf(
        rows.map(([number, json]) => [String(number), json]),
        size,
        false,
      );
    });
  }

  trim({ keptMs, ...call }: LogTrimCall): Promise<number> {
    return this.#turns.writeOne('trim', call, (tx) => {
      const last = this.#last(tx);
      if (last === null) return 0;
      const untilMs = tx.nowMs - keptMs;
      const dropped = tx.session.run(
        'DELETE FROM log WHERE scope = ? AND number < ? AND at <= ?',
        this.#scope,
        Math.min(last, this.#oldest(tx, last) + TRIMMED),
        untilMs,
      );
      const emptied = tx.session.run(
        'UPDATE log SET json = ? WHERE scope = ? AND number = ? AND at <= ? AND json <> ?',
        ...[NOTHING, this.#scope, last, untilMs, NOTHING],
      );
      return dropped + emptied;
    });
  }

  /** What is behind a number: one more than a page has, to see whether there is more. */
  #from({ session }: Tx, after: number, size: number): [string, string][] {
    const rows = session.rows<[number, string]>(
      'SELECT number, json FROM log WHERE scope = ? AND number > ? AND json <> ? ORDER BY number LIMIT ?',
      this.#scope,
      after,
      NOTHING,
      size + 1,
    );
    return rows.map(([number, json]) => [String(number), json]);
  }

  /** The number of the last entry, or null if there has been none yet. */
  #last({ session }: Tx): number | null {
    const sql = 'SELECT max(number) FROM log WHERE scope = ?';
    return session.row<[number | null]>(sql, this.#scope)?.[0] ?? null;
  }

  #oldest({ session }: Tx, last: number): number {
    const sql = 'SELECT number FROM log WHERE scope = ? ORDER BY number LIMIT 1';
    return session.row<[number]>(sql, this.#scope)?.[0] ?? last;
  }

  #clear(tx: Tx, last: number, most: number): void {
    const oldest = this.#oldest(tx, last);
    if (oldest > last - LOG_KEPT) return;
    tx.session.run(
      'DELETE FROM log WHERE scope = ? AND number < ? AND number <= ?',
      this.#scope,
      oldest + most,
      last - LOG_KEPT,
    );
  }
}

/** Null for what is no position of such a log. */
function numberOf(position: string): number | null {
  return /^\d{1,16}$/.test(position) ? Number(position) : null;
}
