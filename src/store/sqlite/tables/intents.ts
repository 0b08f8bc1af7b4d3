import type {
  SessionListCall,
  SessionState,
  StartRequest,
  StoredSession,
} from '../../port/intent-store.ts';
import type { Tx } from '../file/sqlite-connection.ts';

/** A session within one transaction. Changes count after `saveSession`. */
export interface SessionRow {
  readonly number: number;
  readonly id: string;
  readonly tenant: string;
  readonly kind: string;
  readonly label: string;
  state: SessionState;
  revision: number;
  readonly body: string;
  status: string;
  readonly priority: number;
  clients: number;
  readonly createdAtMs: number;
  changedAtMs: number;
}

/** The last columns of a session, as they are read here and for a copy. */
export type SessionColumns = [
  revision: number,
  body: string,
  status: string,
  priority: number,
  clients: number,
  created: number,
  changed: number,
];
type Row = [
  number: number,
  id: string,
  tenant: string,
  kind: string,
  label: string,
  state: SessionState,
  ...columns: SessionColumns,
];
const SELECT = `
SELECT number, id, tenant, kind, label, state, revision, body, status, priority, clients, created, changed FROM sessions`;

export function findSession({ connection, scope }: Tx, id: string): SessionRow | undefined {
  const row = connection.row<Row>(`${SELECT} WHERE scope = ? AND id = ?`, scope, id);
  return row && asSession(row);
}

/** Returns the session of the first key that has one. */
export function findByKeys(
  { connection, scope }: Tx,
  keys: readonly string[],
): SessionRow | undefined {
  const sql = `${SELECT} WHERE number = (SELECT session FROM session_keys WHERE scope = ? AND key = ?)`;
  for (const key of keys) {
    const row = connection.row<Row>(sql, scope, key);
    if (row !== undefined) return asSession(row);
  }
  return undefined;
}

/** Makes a session with its keys and its first client. Returns null if the id is taken. */
export function makeSession(tx: Tx, request: StartRequest): SessionRow | null {
  const { id, tenant, kind, label, keys, client, body, status, priority } = request;
  const { connection, scope, wallMs } = tx;
  const sql = `INSERT INTO sessions VALUES (NULL, ?, ?, ?, ?, ?, 'NEW', 1, ?, ?, ?, 1, ?, ?)
    ON CONFLICT (scope, id) DO NOTHING RETURNING number`;
  const values = [scope, id, tenant, kind, label, body, status, priority, wallMs, wallMs];
  const [number] = connection.row<[number]>(sql, ...values) ?? [];
  if (number === undefined) return null;
  connection.run('INSERT INTO session_clients VALUES (?, ?)', number, client);
  const facts = { number, id, tenant, kind, label, body, status, priority, clients: 1 };
  const made = { state: 'NEW', revision: 1, createdAtMs: wallMs, changedAtMs: wallMs } as const;
  leadTo(tx, number, keys);
  return { ...facts, ...made };
}

export function saveSession({ connection }: Tx, row: SessionRow): void {
  const { state, revision, status, clients, changedAtMs, number } = row;
  const sql =
    'UPDATE sessions SET state = ?, revision = ?, status = ?, clients = ?, changed = ? WHERE number = ?';
  connection.run(sql, state, revision, status, clients, changedAtMs, number);
}

/** Points the keys at this session, even if they pointed at another. */
export function leadTo({ connection, scope }: Tx, number: number, keys: readonly string[]): void {
  const sql = `INSERT INTO session_keys VALUES (?, ?, ?)
    ON CONFLICT (scope, key) DO UPDATE SET session = excluded.session WHERE session <> excluded.session`;
  for (const key of keys) connection.run(sql, scope, key, number);
}

export function hasClient({ connection }: Tx, { number }: SessionRow, client: string): boolean {
  const sql = 'SELECT 1 FROM session_clients WHERE session = ? AND client = ?';
  return connection.row(sql, number, client) !== undefined;
}

/** Adds a client that the session does not have yet. The caller saves the row, here and below. */
export function addClient({ connection }: Tx, row: SessionRow, client: string): void {
  connection.run('INSERT INTO session_clients VALUES (?, ?)', row.number, client);
  row.clients++;
}

export function dropClient({ connection }: Tx, row: SessionRow, client: string): void {
  const sql = 'DELETE FROM session_clients WHERE session = ? AND client = ?';
  row.clients -= connection.run(sql, row.number, client);
}

export function dropClients({ connection }: Tx, row: SessionRow): void {
  connection.run('DELETE FROM session_clients WHERE session = ?', row.number);
  row.clients = 0;
}

/** Removes the keys and clients of an ended session. Its row keeps their number. */
export function cutLoose({ connection }: Tx, { number }: SessionRow): void {
  connection.run('DELETE FROM session_keys WHERE session = ?', number);
  connection.run('DELETE FROM session_clients WHERE session = ?', number);
}

type WantedRows = Pick<SessionListCall, 'tenant' | 'kind' | 'label' | 'isOpen'>;

/** Returns the sessions made before a number, the latest first. */
export function sessionsBefore(
  { connection, scope }: Tx,
  before: number,
  most: number,
  { isOpen = false, ...wanted }: WantedRows,
): SessionRow[] {
  const columns = (['tenant', 'kind', 'label'] as const).filter(
    (column) => wanted[column] !== undefined,
  );
  const where = columns.map((column) => ` AND ${column} = ?`).join('');
  const values = columns.map((column) => wanted[column] ?? '');
  const sql = `${SELECT} WHERE scope = ?${where}
    AND number < ?${isOpen ? " AND state <> 'ENDED'" : ''} ORDER BY number DESC LIMIT ?`;
  return connection.rows<Row>(sql, scope, ...values, before, most).map(asSession);
}

/** Removes sessions that ended before a time, and returns their ids and kinds. */
export function forgetEnded(
  { connection, scope }: Tx,
  endedBeforeMs: number,
  most: number,
): { readonly id: string; readonly kind: string }[] {
  const sql = `DELETE FROM sessions WHERE number IN (SELECT number FROM sessions
    WHERE scope = ? AND state = 'ENDED' AND changed < ? ORDER BY changed LIMIT ?) RETURNING id, kind`;
  const rows = connection.rows<[string, string]>(sql, scope, endedBeforeMs, most);
  return rows.map(([id, kind]) => ({ id, kind }));
}

export function storedOf(row: SessionRow): StoredSession {
  const { number: _, priority: __, ...stored } = row;
  return stored;
}

function asSession(row: Row): SessionRow {
  const [number, id, tenant, kind, label, state, revision, body, status, priority, clients] = row;
  const [createdAtMs, changedAtMs] = [row[11], row[12]];
  const facts = { number, id, tenant, kind, label, state, revision, body, status };
  return { ...facts, priority, clients, createdAtMs, changedAtMs };
}
