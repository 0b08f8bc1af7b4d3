import type { Tx } from '../file/sqlite-connection.ts';

/** The first entry of a lane, and its claim. */
export interface Lane {
  readonly stream: number;
  readonly lane: string;
  /** The number of its first entry. */
  readonly entry: number;
  /** The fence of its claim; 0 if it is not claimed. */
  readonly fence: number;
  /** When the claim expires, or when a retry is due; null while the entry waits. */
  readonly dueMs: number | null;
  /** How many times the first entry was claimed. */
  readonly tries: number;
}

export interface NewEntry {
  readonly lane: string;
  readonly priority: number;
  readonly json: string;
  /** Its number in the lane; by default the next one. */
  readonly number?: number;
}

type Row = [lane: string, entry: number, fence: number, due: number | null, tries: number];
const COLUMNS = 'lane, entry, fence, due, tries';

/** Null for a stream that never had an entry. */
export function findStream({ connection, scope }: Tx, name: string): number | null {
  const sql = 'SELECT number FROM streams WHERE scope = ? AND name = ?';
  return connection.row<[number]>(sql, scope, name)?.[0] ?? null;
}

export function ensureStream(tx: Tx, name: string): number {
  const known = findStream(tx, name);
  if (known !== null) return known;
  const sql = 'INSERT INTO streams (scope, name, turn) VALUES (?, ?, 0) RETURNING number';
  return tx.connection.row<[number]>(sql, tx.scope, name)?.[0] ?? 0;
}

/** Adds an entry. The first entry of a lane also puts the lane in the queue. */
export function addEntry(tx: Tx, stream: number, { lane, priority, json, number }: NewEntry): void {
  const { connection } = tx;
  const place = number ?? lastEntry(tx, stream, lane) + 1;
  connection.run('INSERT INTO entries VALUES (?, ?, ?, ?, ?)', stream, lane, place, priority, json);
  if (findLane(tx, stream, lane) === undefined) giveTurn(tx, stream, lane, place, priority);
}

export function findLane({ connection }: Tx, stream: number, lane: string): Lane | undefined {
  const sql = `SELECT ${COLUMNS} FROM lanes WHERE stream = ? AND lane = ?`;
  const row = connection.row<Row>(sql, stream, lane);
  return row && asLane(stream, row);
}

/** Returns the lane if its first entry is claimed with this fence. */
export function heldLane(tx: Tx, stream: number, lane: string, fence: number): Lane | undefined {
  const found = findLane(tx, stream, lane);
  return found !== undefined && isHeld(found) && found.fence === fence ? found : undefined;
}

/** Whether the first entry is claimed. An expired claim counts until another consumer takes it. */
export function isHeld({ fence }: Lane): boolean {
  return fence > 0;
}

/** Returns the next lanes: expired claims and due retries, then by priority and waiting time. */
export function lanesInTurn({ connection, nowMs }: Tx, stream: number, most: number): Lane[] {
  const lanes = `SELECT ${COLUMNS} FROM lanes WHERE stream = ?`;
  const dueSql = `${lanes} AND due IS NOT NULL AND due <= ? ORDER BY due LIMIT ?`;
  const due = connection.rows<Row>(dueSql, stream, nowMs, most);
  const waitingSql = `${lanes} AND due IS NULL ORDER BY priority DESC, turn LIMIT ?`;
  const waiting = connection.rows<Row>(waitingSql, stream, most - due.length);
  return [...due, ...waiting].map((row) => asLane(stream, row));
}

/** Claims the lane's first entry for a consumer, and returns the fence. */
export function giveOut(
  tx: Tx,
  { stream, lane }: Lane,
  { consumer, claimMs }: { readonly consumer: string; readonly claimMs: number },
): number {
  const { connection, nowMs } = tx;
  const fence = mintDelivery(tx);
  const sql =
    'UPDATE lanes SET due = ?, fence = ?, consumer = ?, tries = tries + 1 WHERE stream = ? AND lane = ?';
  connection.run(sql, nowMs + claimMs, fence, consumer, stream, lane);
  return fence;
}

export function lengthenClaim({ connection, nowMs }: Tx, held: Lane, claimMs: number): void {
  const sql = 'UPDATE lanes SET due = ? WHERE stream = ? AND lane = ?';
  connection.run(sql, nowMs + claimMs, held.stream, held.lane);
}

/** Ends the claim. No entry of the lane is claimed before `afterMs` have passed. */
export function rest({ connection, nowMs }: Tx, held: Lane, afterMs: number): void {
  const sql = 'UPDATE lanes SET due = ?, fence = 0, consumer = NULL WHERE stream = ? AND lane = ?';
  connection.run(sql, nowMs + afterMs, held.stream, held.lane);
}

export function firstJson({ connection }: Tx, { stream, lane, entry }: Lane): string {
  const sql = 'SELECT json FROM entries WHERE stream = ? AND lane = ? AND number = ?';
  return connection.row<[string]>(sql, stream, lane, entry)?.[0] ?? 'null';
}

/** Removes the lane's first entry, and queues the lane for the next one. */
export function advance(tx: Tx, { stream, lane, entry }: Lane): void {
  const { connection } = tx;
  const removal = 'DELETE FROM entries WHERE stream = ? AND lane = ? AND number = ?';
  connection.run(removal, stream, lane, entry);
  const sql =
    'SELECT number, priority FROM entries WHERE stream = ? AND lane = ? ORDER BY number LIMIT 1';
  const next = connection.row<[number, number]>(sql, stream, lane);
  if (next === undefined)
    connection.run('DELETE FROM lanes WHERE stream = ? AND lane = ?', stream, lane);
  else giveTurn(tx, stream, lane, ...next);
}

/** Removes all entries of a lane, or all but the first. */
export function clearLane({ connection }: Tx, found: Lane, sparesFirst: boolean): void {
  const { stream, lane, entry } = found;
  const sql = 'DELETE FROM entries WHERE stream = ? AND lane = ? AND number <> ?';
  connection.run(sql, stream, lane, sparesFirst ? entry : -1);
  if (!sparesFirst) connection.run('DELETE FROM lanes WHERE stream = ? AND lane = ?', stream, lane);
}

/** Adds an entry to the dead letters of a stream. */
export function putAside(
  { connection, wallMs }: Tx,
  held: Lane,
  json: string,
  reason: string,
): void {
  const sql = 'INSERT INTO dead (stream, lane, json, tries, reason, at) VALUES (?, ?, ?, ?, ?, ?)';
  connection.run(sql, held.stream, held.lane, json, held.tries, reason, wallMs);
}

function giveTurn(tx: Tx, stream: number, lane: string, entry: number, priority: number): void {
  const { connection } = tx;
  const sql = 'UPDATE streams SET turn = turn + 1 WHERE number = ? RETURNING turn';
  const [turn = 0] = connection.row<[number]>(sql, stream) ?? [];
  const insertion = 'INSERT OR REPLACE INTO lanes VALUES (?, ?, ?, ?, ?, NULL, 0, NULL, 0)';
  connection.run(insertion, stream, lane, entry, priority, turn);
}

function lastEntry({ connection }: Tx, stream: number, lane: string): number {
  const sql = 'SELECT max(number) FROM entries WHERE stream = ? AND lane = ?';
  return connection.row<[number | null]>(sql, stream, lane)?.[0] ?? 0;
}

/** Mints a fence from one counter for all streams. The time keeps it rising if the file is lost. */
function mintDelivery({ connection, fenceTime }: Tx): number {
  const sql = `INSERT INTO deliveries VALUES (1, ?)
    ON CONFLICT (id) DO UPDATE SET fence = max(fence + 1, excluded.fence) RETURNING fence`;
  return connection.row<[number]>(sql, fenceTime())?.[0] ?? 0;
}

function asLane(stream: number, [lane, entry, fence, dueMs, tries]: Row): Lane {
  return { stream, lane, entry, fence, dueMs, tries };
}
