import { FENCE_RECORD_MS } from '../../port/lease-store.ts';
import { sized } from '../../port/limits.ts';
import {
  CHANGES_PAGE,
  type ChangesCall,
  type ChangesPage,
  type GetReply,
  type PutReply,
  type RecordRef,
  type RecordStore,
  type RecordWrite,
  type RefusedWrite,
  type RemoveReply,
} from '../../port/record-store.ts';
import type { Call } from '../../port/store.ts';
import type { Transactions } from '../file/lock-queue.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import type { ExpiredRows } from '../tables/expired-rows.ts';
import type { Names } from '../tables/names.ts';

/** A removed record keeps its row for a day, without its value: for its fence, and for those who ask what has changed. */
type Row = [json: string | null, revision: number, fence: number];

export class SqliteRecords implements RecordStore {
  readonly #names: Names;
  readonly #turns: Transactions;
  readonly #sweep: ExpiredRows;

  constructor(parts: { names: Names; turns: Transactions; sweep: ExpiredRows }) {
    this.#names = parts.names;
    this.#turns = parts.turns;
    this.#sweep = parts.sweep;
  }

  get(collection: string, ids: readonly string[], call: Call): Promise<GetReply[]> {
    const name = this.#names.of(collection);
    const each = (tx: Tx, i: number): GetReply => {
      const [json = null, revision = 0, fence = 0] = find(tx, name, ids[i] as string) ?? [];
      if (json === null) return { kind: 'absent' };
      return { kind: 'found', value: JSON.parse(json), revision, fence };
    };
    return this.#turns.read({ operation: 'get', count: ids.length, each, failed }, call);
  }

  async put(collection: string, writes: readonly RecordWrite[], call: Call): Promise<PutReply[]> {
    const name = this.#names.of(collection);
    const texts = writes.map(({ id, value }) => asJson(`${collection}:${id}`, value));
    const each = (tx: Tx, i: number): PutReply => {
      const write = writes[i] as RecordWrite;
      const row = find(tx, name, write.id);
      const refused = refusal(row, write);
      if (refused !== null) return refused;
      const json = texts[i] as string | Error;
      if (typeof json !== 'string') return failed(json);
      return { kind: 'written', revision: change(tx, name, row, write, json) };
    };
    return this.#turns.write({ operation: 'put', count: writes.length, each, failed }, call);
  }

  remove(collection: string, removals: readonly RecordRef[], call: Call): Promise<RemoveReply[]> {
    const name = this.#names.of(collection);
    const each = (tx: Tx, i: number): RemoveReply => {
      const removal = removals[i] as RecordRef;
      const row = find(tx, name, removal.id);
      const refused = refusal(row, removal);
      if (refused !== null) return refused;
      if (row === undefined || row[0] === null) return { kind: 'absent' };
      change(tx, name, row, removal, null);
      this.#sweep.step(tx);
      return { kind: 'removed' };
    };
    return this.#turns.write({ operation: 'remove', count: removals.length, each, failed }, call);
  }

  changes(collection: string, call: ChangesCall): Promise<ChangesPage> {
    const name = this.#names.of(collection);
    return this.#turns.readOne('changes', call, (tx) => changesOf(tx, name, call));
  }

  /** Nobody else writes this file. */
  async discover(): Promise<number> {
    return 0;
  }
}

function changesOf({ session }: Tx, collection: string, call: ChangesCall): ChangesPage {
  const { since } = call;
  const most = Math.min(call.most ?? CHANGES_PAGE, CHANGES_PAGE);
  const [newest = 0, forgotten = 0] =
    session.row<[number, number]>(
      'SELECT version, forgotten FROM collections WHERE name = ?',
      collection,
    ) ?? [];
  const began = since === 0 ? newest : (call.began ?? 0);
  // A listing shows nothing that was removed before it began: its reader need not hear of that.
  const known = Math.max(since, began);
  const rows = session.rows<[string, number, number]>(
    `SELECT id, version, json IS NULL FROM records
     WHERE collection = ? AND version > ? AND (json IS NOT NULL OR version > ?) ORDER BY version LIMIT ?`,
    ...[collection, since, known, most + 1],
  );
  const page = rows.slice(0, most);
  const ids = (isRemoved: number) =>
    page.filter(([, , removed]) => removed === isRemoved).map(([id]) => id);
  const reset = since > 0 && (known < forgotten || known > newest);
  const facts = { written: ids(0), removed: ids(1), reset };
  if (rows.length === page.length)
    return { ...facts, version: Math.max(since, newest), more: false };
  return { ...facts, version: page.at(-1)?.[1] ?? since, more: true, began };
}

function failed(error: Error): { kind: 'failed'; error: Error } {
  return { kind: 'failed', error };
}

/** What can not be written as JSON fails alone; what is too large fails the call, as in every store. */
function asJson(name: string, value: unknown): string | Error {
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (error) {
    return error as Error;
  }
  if (json === undefined) return new TypeError('undefined is no JSON value');
  return sized('record', name, json);
}

function find({ session }: Tx, collection: string, id: string): Row | undefined {
  return session.row<Row>(
    'SELECT json, revision, fence FROM records WHERE collection = ? AND id = ?',
    collection,
    id,
  );
}

/** Why a change of a record may not be made, or null. Fences go first: who is too late need not know more. */
function refusal(row: Row | undefined, { fence, ifRevision }: RecordRef): RefusedWrite | null {
  const [json = null, current = 0, seen = 0] = row ?? [];
  if (fence !== undefined && fence < seen) return { kind: 'stale', seen };
  const revision = json === null ? 0 : current;
  if (ifRevision !== undefined && ifRevision !== revision) return { kind: 'conflict', revision };
  return null;
}

/** Gives the record's new revision, under the collection's next version. */
function change(
  tx: Tx,
  collection: string,
  [, before, seen]: Row | [] = [],
  { id, fence }: RecordRef,
  json: string | null,
): number {
  const { session, nowMs, wallMs } = tx;
  const [version = 0] =
    session.row<[number]>(
      `INSERT INTO collections VALUES (?, ?, 0)
       ON CONFLICT (name) DO UPDATE SET version = max(version + 1, excluded.version) RETURNING version`,
      collection,
      Math.floor(wallMs * 1_000),
    ) ?? [];
  const revision = (before ?? 0) + 1;
  session.run(
    'INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)',
    collection,
    id,
    json,
    revision,
    fence ?? seen ?? 0,
    version,
    json === null ? nowMs + FENCE_RECORD_MS : null,
  );
  return revision;
}
