import type { Tx } from '../file/sqlite-connection.ts';

/** A lane's first entry, and whose turn or hands it is in. */
export interface Lane {
  readonly stream: number;
  readonly lane: string;
  /** The number of its first entry. */
  readonly entry: number;
  /** Of the hands that have it; 0 for nobody's. */
  readonly fence: number;
  /** When these hands have had their time, or it has rested; null while it waits to be taken. */
  readonly dueMs: number | null;
  /** How many times the first entry has been given out. */
  readonly tries: number;
}

export interface NewEntry {
  readonly lane: string;
  readonly priority: number;
  readonly json: string;
  /** Its place in the lane; at the end without one. */
  readonly number?: number;
}

type Row = [lane: string, entry: number, fence: number, due: number | null, tries: number];
const COLUMNS = 'lane, entry, fence, due, tries';

/** Null for a stream to which nothing was ever added. */
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

/** Adds an entry. If it is alone in its lane, it has its turn. */
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

/** The lane, if its first entry is in the hands with this fence. */
export function heldLane(tx: Tx, stream: number, lane: string, fence: number): Lane | undefined {
  const found = findLane(tx, stream, lane);
  return found !== undefined && isHeld(found) && found.fence === fence ? found : undefined;
}

/** Also after its claim has run out, as long as nobody else has asked for it. */
export function isHeld({ fence }: Lane): boolean {
  return fence > 0;
}

/** The lanes whose turn it is: first those whose time was up before, then by priority and by how long they have waited. */
export function lanesInTurn({ connection, nowMs }: Tx, stream: number, most: number): Lane[] {
  const due = connection.rows<Row>(
    `SELECT ${COLUMNS} FROM lanes WHERE stream = ? AND due IS NOT NULL AND due <= ? ORDER BY due LIMIT ?`,
    stream,
    nowMs,
    most,
  );
  const waiting = connection.rows<Row>(
    `SELECT ${COLUMNS} FROM lanes WHERE stream = ? AND due IS NULL ORDER BY priority DESC, turn LIMIT ?`,
    stream,
    most - due.length,
  );
  return [...due, ...waiting].map((row) => asLane(stream, row));
}

/** Puts the lane's first entry into somebody's hands; gives their fence. */
export function giveOut(
  tx: Tx,
  { stream, lane }: Lane,
  { consumer, claimMs }: { readonly consumer: string; readonly claimMs: number },
): number {
  const { connection, nowMs } = tx;
  const fence = mintDelivery(tx);
  connection.run(
    'UPDATE lanes SET due = ?, fence = ?, consumer = ?, tries = tries + 1 WHERE stream = ? AND lane = ?',
    nowMs + claimMs,
    fence,
    consumer,
    stream,
    lane,
  );
  return fence;
}

export function lengthenClaim({ connection, nowMs }: Tx, held: Lane, claimMs: number): void {
  const sql = 'UPDATE lanes SET due = ? WHERE stream = ? AND lane = ?';
  connection.run(sql, nowMs + claimMs, held.stream, held.lane);
}

/** Takes the first entry out of its hands; nothing of the lane is given out before `afterMs` have passed. */
export function rest({ connection, nowMs }: Tx, held: Lane, afterMs: number): void {
  const sql = 'UPDATE lanes SET due = ?, fence = 0, consumer = NULL WHERE stream = ? AND lane = ?';
  connection.run(sql, nowMs + afterMs, held.stream, held.lane);
}

export function firstJson({ connection }: Tx, { stream, lane, entry }: Lane): string {
  const sql = 'SELECT json FROM entries WHERE stream = ? AND lane = ? AND number = ?';
  return connection.row<[string]>(sql, stream, lane, entry)?.[0] ?? 'null';
}

/** The lane is done with its first entry: the next has its turn. */
export function advance(tx: Tx, { stream, lane, entry }: Lane): void {
  const { connection } = tx;
  connection.run(
    'DELETE FROM entries WHERE stream = ? AND lane = ? AND number = ?',
    stream,
    lane,
    entry,
  );
  const next = connection.row<[number, number]>(
    'SELECT number, priority FROM entries WHERE stream = ? AND lane = ? ORDER BY number LIMIT 1',
    stream,
    lane,
  );
  if (next === undefined)
    connection.run('DELETE FROM lanes WHERE stream = ? AND lane = ?', stream, lane);
  else giveTurn(tx, stream, lane, ...next);
}

/** Empties a lane, all of it or all but its first entry, which stays as it is. */
export function clearLane({ connection }: Tx, found: Lane, sparesFirst: boolean): void {
  const { stream, lane, entry } = found;
  connection.run(
    'DELETE FROM entries WHERE stream = ? AND lane = ? AND number <> ?',
    stream,
    lane,
    sparesFirst ? entry : -1,
  );
  if (!sparesFirst) connection.run('DELETE FROM lanes WHERE stream = ? AND lane = ?', stream, lane);
}

/** Puts something aside among the dead of a stream. */
export function putAside(
  { connection, wallMs }: Tx,
  held: Lane,
  json: string,
  reason: string,
): void {
  connection.run(
    'INSERT INTO dead (stream, lane, json, tries, reason, at) VALUES (?, ?, ?, ?, ?, ?)',
    held.stream,
    held.lane,
    json,
    held.tries,
    reason,
    wallMs,
  );
}

function giveTurn(tx: Tx, stream: number, lane: string, entry: number, priority: number): void {
  const { connection } = tx;
  const sql = 'UPDATE streams SET turn = turn + 1 WHERE number = ? RETURNING turn';
  const [turn = 0] = connection.row<[number]>(sql, stream) ?? [];
  connection.run(
    'INSERT OR REPLACE INTO lanes VALUES (?, ?, ?, ?, ?, NULL, 0, NULL, 0)',
    stream,
    lane,
    entry,
    priority,
    turn,
  );
}

function lastEntry({ connection }: Tx, stream: number, lane: string): number {
  const sql = 'SELECT max(number) FROM entries WHERE stream = ? AND lane = ?';
  return connection.row<[number | null]>(sql, stream, lane)?.[0] ?? 0;
}

/** One counter for all streams, made from the time, so that a file that was lost does not begin it anew. */
function mintDelivery({ connection, fenceTime }: Tx): number {
  const sql = `INSERT INTO deliveries VALUES (1, ?)
    ON CONFLICT (id) DO UPDATE SET fence = max(fence + 1, excluded.fence) RETURNING fence`;
  return connection.row<[number]>(sql, fenceTime())?.[0] ?? 0;
}

function asLane(stream: number, [lane, entry, fence, dueMs, tries]: Row): Lane {
  return { stream, lane, entry, fence, dueMs, tries };
}
