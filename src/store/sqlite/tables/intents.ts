import type { SessionState, StartRequest, StoredSession } from '../../port/intent-store.ts';
import type { Tx, Value } from '../file/sqlite-connection.ts';

/** A session as one transaction has it: what is changed here counts once it is saved. */
export interface SessionRow {
  readonly number: number;
  readonly id: string;
  readonly tenant: string;
  state: SessionState;
  revision: number;
  readonly body: string;
  status: string;
  readonly priority: number;
  clients: number;
  readonly createdAtMs: number;
  changedAtMs: number;
}

type Row = [
  number: number,
  id: string,
  tenant: string,
  state: SessionState,
  revision: number,
  body: string,
  status: string,
  priority: number,
  clients: number,
  created: number,
  changed: number,
];
const SELECT = `
SELECT number, id, tenant, state, revision, body, status, priority, clients, created, changed FROM sessions`;

export function findSession({ connection, scope }: Tx, id: string): SessionRow | undefined {
  const row = connection.row<Row>(`${SELECT} WHERE scope = ? AND id = ?`, scope, id);
  return row && asSession(row);
}

/** The one that the first of the keys leads to which leads anywhere. */
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

/** A new one, with its keys and its first client; null if another is called so. */
export function makeSession(tx: Tx, request: StartRequest): SessionRow | null {
  const { id, tenant, keys, client, body, status, priority } = request;
  const { connection, scope, wallMs } = tx;
  const [number] =
    connection.row<[number]>(
      `INSERT INTO sessions VALUES (NULL, ?, ?, ?, 'NEW', 1, ?, ?, ?, 1, ?, ?)
       ON CONFLICT (scope, id) DO NOTHING RETURNING number`,
      ...([scope, id, tenant, body, status, priority, wallMs, wallMs] satisfies Value[]),
    ) ?? [];
  if (number === undefined) return null;
  connection.run('INSERT INTO session_clients VALUES (?, ?)', number, client);
  const facts = { number, id, tenant, body, status, priority, clients: 1 };
  const made = { state: 'NEW', revision: 1, createdAtMs: wallMs, changedAtMs: wallMs } as const;
  leadTo(tx, number, keys);
  return { ...facts, ...made };
}

export function saveSession({ connection }: Tx, row: SessionRow): void {
  const { state, revision, status, clients, changedAtMs, number } = row;
  connection.run(
    'UPDATE sessions SET state = ?, revision = ?, status = ?, clients = ?, changed = ? WHERE number = ?',
    ...([state, revision, status, clients, changedAtMs, number] satisfies Value[]),
  );
}

/** From now on all of these lead to the session with this number, also those that led to another. */
export function leadTo(
  { connection, scope }: Tx,

  number: number,
  keys: readonly string[],
): void {
  const sql = `INSERT INTO session_keys VALUES (?, ?, ?)
    ON CONFLICT (scope, key) DO UPDATE SET session = excluded.session WHERE session <> excluded.session`;
  for (const key of keys) connection.run(sql, scope, key, number);
}

export function hasClient({ connection }: Tx, { number }: SessionRow, client: string): boolean {
  const sql = 'SELECT 1 FROM session_clients WHERE session = ? AND client = ?';
  return connection.row(sql, number, client) !== undefined;
}

/** One that is not among its clients yet. The row is the caller's to save, here and below. */
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

/** Nothing leads to it any more, and nobody asks who wanted it: how many these were stays in its row. */
export function cutLoose({ connection }: Tx, { number }: SessionRow): void {
  connection.run('DELETE FROM session_keys WHERE session = ?', number);
  connection.run('DELETE FROM session_clients WHERE session = ?', number);
}

/** Those made before a number, the latest first. */
export function sessionsBefore(
  { connection, scope }: Tx,

  before: number,
  most: number,
  { tenant, isOpen = false }: { readonly tenant?: string | undefined; readonly isOpen?: boolean },
): SessionRow[] {
  const whose = tenant === undefined ? [scope] : [scope, tenant];
  const sql = `${SELECT} WHERE scope = ?${tenant === undefined ? '' : ' AND tenant = ?'}
    AND number < ?${isOpen ? " AND state <> 'ENDED'" : ''} ORDER BY number DESC LIMIT ?`;
  return connection.rows<Row>(sql, ...whose, before, most).map(asSession);
}

/** Gives the ids of those that are forgotten. */
export function forgetEnded(
  { connection, scope }: Tx,

  endedBeforeMs: number,
  most: number,
): string[] {
  const sql = `DELETE FROM sessions WHERE number IN (SELECT number FROM sessions
    WHERE scope = ? AND state = 'ENDED' AND changed < ? ORDER BY changed LIMIT ?) RETURNING id`;
  return connection.rows<[string]>(sql, scope, endedBeforeMs, most).map(([id]) => id);
}

export function storedOf(row: SessionRow): StoredSession {
  const { number: _, priority: __, ...stored } = row;
  return stored;
}

function asSession(row: Row): SessionRow {
  const [number, id, tenant, state, revision, body, status, priority, clients] = row;
  const [createdAtMs, changedAtMs] = [row[9], row[10]];
  const facts = { number, id, tenant, state, revision, body, status, priority, clients };
  return { ...facts, createdAtMs, changedAtMs };
}
