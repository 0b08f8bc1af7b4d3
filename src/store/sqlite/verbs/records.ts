import { FENCE_RECORD_MS } from '../../port/lease-store.ts';
import {
  CHANGES_PAGE,
  type ChangesCall,
  type ChangesPage,
  type GetReply,
  type PutReply,
  type RecordRef,
  type RecordStore,
  type RefusedWrite,
  type RemoveReply,
} from '../../port/record-store.ts';
import { recordJson } from '../../values.ts';
import type { Transactions } from '../file/lock-queue.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import type { RowRetention } from '../tables/row-retention.ts';

/** A removed record keeps its row for a day without its value, for its fence and for `changes`. */
type Row = [json: string | null, revision: number, fence: number];

export function sqliteRecords(transactions: Transactions, retention: RowRetention): RecordStore {
  return {
    get(collection, ids, call) {
      const each = (tx: Tx, id: string): GetReply => {
        const [json = null, revision = 0, fence = 0] = find(tx, collection, id) ?? [];
        if (json === null) return { kind: 'absent' };
        return { kind: 'found', value: JSON.parse(json), revision, fence };
      };
      return transactions.read({ operation: 'get', items: ids, each, failed }, call);
    },
    async put(collection, writes, call) {
      const items = writes.map((write) => {
        return { write, json: recordJson(`${collection}:${write.id}`, write.value) };
      });
      const each = (tx: Tx, { write, json }: (typeof items)[number]): PutReply => {
        const row = find(tx, collection, write.id);
        const refused = refusal(row, write);
        if (refused !== null) return refused;
        if (typeof json !== 'string') return failed(json);
        return { kind: 'written', revision: change(tx, collection, row, write, json) };
      };
      return transactions.write({ operation: 'put', items, each, failed }, call);
    },
    remove(collection, removals, call) {
      const each = (tx: Tx, removal: RecordRef): RemoveReply => {
        const row = find(tx, collection, removal.id);
        const refused = refusal(row, removal);
        if (refused !== null) return refused;
        if (row === undefined || row[0] === null) return { kind: 'absent' };
        change(tx, collection, row, removal, null);
        retention.removeSome(tx);
        return { kind: 'removed' };
      };
      return transactions.write({ operation: 'remove', items: removals, each, failed }, call);
    },
    changes: (collection, call) =>
      transactions.readOne('changes', call, (tx) => changesOf(tx, collection, call)),
    /** Every record of the file is in its table, so there is nothing to discover. */
    discover: async () => 0,
  };
}

function changesOf(tx: Tx, collection: string, call: ChangesCall): ChangesPage {
  const { connection } = tx;
  const { since } = call;
  const name = tx.scope + collection;
  const most = Math.min(call.most ?? CHANGES_PAGE, CHANGES_PAGE);
  const newestSql = 'SELECT version, forgotten FROM collections WHERE name = ?';
  const [newest = 0, forgotten = 0] = connection.row<[number, number]>(newestSql, name) ?? [];
  const began = since === 0 ? newest : (call.began ?? 0);
  // A listing shows no record that was removed before it began, so it skips those removals.
  const known = Math.max(since, began);
  const sql = `SELECT id, version, json IS NULL FROM records
     WHERE collection = ? AND version > ? AND (json IS NOT NULL OR version > ?) ORDER BY version LIMIT ?`;
  const rows = connection.rows<[string, number, number]>(sql, name, since, known, most + 1);
  const page = rows.slice(0, most);
  const ids = (isRemoved: number) =>
    page.filter(([, , removed]) => removed === isRemoved).map(([id]) => id);
  const reset = since > 0 && (known < forgotten || known > newest);
  const [written, removed] = [ids(0), ids(1)];
  if (rows.length === page.length)
    return { written, removed, reset, version: Math.max(since, newest), more: false };
  return { written, removed, reset, version: page.at(-1)?.[1] ?? since, more: true, began };
}

function failed(error: Error): { kind: 'failed'; error: Error } {
  return { kind: 'failed', error };
}

function find({ connection, scope }: Tx, collection: string, id: string): Row | undefined {
  const sql = 'SELECT json, revision, fence FROM records WHERE collection = ? AND id = ?';
  return connection.row<Row>(sql, scope + collection, id);
}

/** Returns why a write is refused, or null. The fence is checked before the revision. */
function refusal(row: Row | undefined, { fence, ifRevision }: RecordRef): RefusedWrite | null {
  const [json = null, current = 0, seen = 0] = row ?? [];
  if (fence !== undefined && fence < seen) return { kind: 'stale', seen };
  const revision = json === null ? 0 : current;
  if (ifRevision !== undefined && ifRevision !== revision) return { kind: 'conflict', revision };
  return null;
}

/** Writes the record under the collection's next version, and returns its new revision. */
function change(
  tx: Tx,
  collection: string,
  [, before, seen]: Row | [] = [],
  { id, fence }: RecordRef,
  json: string | null,
): number {
  const { connection, scope, nowMs, wallMs } = tx;
  const name = scope + collection;
  const nextSql = `INSERT INTO collections VALUES (?, ?, 0)
    ON CONFLICT (name) DO UPDATE SET version = max(version + 1, excluded.version) RETURNING version`;
  const [version = 0] = connection.row<[number]>(nextSql, name, Math.floor(wallMs * 1_000)) ?? [];
  const revision = (before ?? 0) + 1;
  const expires = json === null ? nowMs + FENCE_RECORD_MS : null;
  const sql = 'INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)';
  connection.run(sql, name, id, json, revision, fence ?? seen ?? 0, version, expires);
  return revision;
}
