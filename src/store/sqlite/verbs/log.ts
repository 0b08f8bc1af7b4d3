import { asEntries, pageOf, pageSize } from '../../log-pages.ts';
import { LOG_KEPT, type LogStore } from '../../port/log-store.ts';
import type { Transactions } from '../file/lock-queue.ts';
import type { Tx } from '../file/sqlite-connection.ts';

/** An append removes at most so many old entries per new one, */
const MAX_REMOVED_PER_ENTRY = 2;
/** and so many more per call, so that a log that is too long gets down to its size. */
const MAX_REMOVED_PER_CALL = 16;
/** `trim` removes at most so many entries in one transaction. */
const MAX_TRIMMED = 5_000;
/** The JSON of a last entry that was trimmed. Its row stays, because the next number follows it. */
const TRIMMED = '';

/**
 * Entries are rows whose numbers have no gaps, so a reader notices missing ones. The first number
 * is made from the time, as fences are: a position in a lost file is no position in this one.
 */
export function sqliteLog(transactions: Transactions): LogStore {
  return {
    async append(values, call) {
      if (values.length === 0) return;
      // One statement for all entries: a thousand would take too long for one transaction.
      const json = JSON.stringify(asEntries(values));
      await transactions.writeOne('append', call, (tx) => {
        const first = (lastOf(tx) ?? Math.floor(tx.wallMs * 1_000)) + 1;
        const sql = 'INSERT INTO log SELECT ?, ? + key, ?, value FROM json_each(?)';
        tx.connection.run(sql, tx.scope, first, tx.nowMs, json);
        const most = values.length * MAX_REMOVED_PER_ENTRY + MAX_REMOVED_PER_CALL;
        removeOldest(tx, first + values.length - 1, most);
      });
    },
    read(call) {
      const size = pageSize(call.most);
      return transactions.readOne('read log', call, (tx) => {
        if (call.after === undefined) return pageOf(entriesAfter(tx, 0, size), size, false);
        const after = numberOf(call.after);
        const found = after === null ? [] : entriesAfter(tx, after, size);
        const next = found[0] === undefined ? lastOf(tx) : Number(found[0][0]) - 1;
        if (after !== null && next === after) return pageOf(found, size, false);
        return pageOf(entriesAfter(tx, 0, size), size, true);
      });
    },
    recall(call) {
      const size = pageSize(call.most);
      return transactions.readOne('recall', call, ({ connection, scope }) => {
        const before = call.before === undefined ? Number.MAX_SAFE_INTEGER : numberOf(call.before);
        if (before === null) return pageOf([], size, true);
        const sql =
          'SELECT number, json FROM log WHERE scope = ? AND number < ? AND json <> ? ORDER BY number DESC LIMIT ?';
        const rows = connection.rows<[number, string]>(sql, scope, before, TRIMMED, size + 1);
        return pageOf(rows.map(asEntry), size, false);
      });
    },
    trim({ keptMs, ...call }) {
      return transactions.writeOne('trim', call, (tx) => {
        const last = lastOf(tx);
        if (last === null) return 0;
        const untilMs = tx.nowMs - keptMs;
        const end = Math.min(last, oldestOf(tx, last) + MAX_TRIMMED);
        const removal = 'DELETE FROM log WHERE scope = ? AND number < ? AND at <= ?';
        const dropped = tx.connection.run(removal, tx.scope, end, untilMs);
        const sql =
          'UPDATE log SET json = ? WHERE scope = ? AND number = ? AND at <= ? AND json <> ?';
        const emptied = tx.connection.run(sql, TRIMMED, tx.scope, last, untilMs, TRIMMED);
        return dropped + emptied;
      });
    },
  };
}

/** Returns the entries after a number: one more than a page has, to see whether there is more. */
function entriesAfter({ connection, scope }: Tx, after: number, size: number): [string, string][] {
  const sql =
    'SELECT number, json FROM log WHERE scope = ? AND number > ? AND json <> ? ORDER BY number LIMIT ?';
  return connection.rows<[number, string]>(sql, scope, after, TRIMMED, size + 1).map(asEntry);
}

/** Returns the number of the last entry, or null if there has been none yet. */
function lastOf({ connection, scope }: Tx): number | null {
  const sql = 'SELECT max(number) FROM log WHERE scope = ?';
  return connection.row<[number | null]>(sql, scope)?.[0] ?? null;
}

function oldestOf({ connection, scope }: Tx, last: number): number {
  const sql = 'SELECT number FROM log WHERE scope = ? ORDER BY number LIMIT 1';
  return connection.row<[number]>(sql, scope)?.[0] ?? last;
}

function removeOldest(tx: Tx, last: number, most: number): void {
  const oldest = oldestOf(tx, last);
  if (oldest > last - LOG_KEPT) return;
  const sql = 'DELETE FROM log WHERE scope = ? AND number < ? AND number <= ?';
  tx.connection.run(sql, tx.scope, oldest + most, last - LOG_KEPT);
}

function asEntry([number, json]: [number, string]): [string, string] {
  return [String(number), json];
}

/** Null if the position is malformed. */
function numberOf(position: string): number | null {
  return /^\d{1,16}$/.test(position) ? Number(position) : null;
}
