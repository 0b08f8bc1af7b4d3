import type { Attachment, KeepAliveCall, KeepAliveReply } from '../../port/lease-store.ts';
import type { Tx } from '../file/sqlite-connection.ts';

/** Lengthens a keepalive that has not lapsed, and returns what was detached from it. */
export function keepAlive(
  { connection, scope, nowMs }: Tx,
  id: string,
  call: KeepAliveCall,
): KeepAliveReply {
  const key = scope + id;
  const sql =
    'UPDATE keepalives SET expires = max(expires, ?) WHERE key = ? AND expires > ? AND version >= ?';
  if (connection.run(sql, nowMs + call.ttlMs, key, nowMs, call.version) === 0)
    return { kind: 'gone' };
  for (const number of call.acknowledged)
    connection.run('DELETE FROM detachments WHERE number = ? AND keepalive = ?', number, key);
  const rows = connection.rows<[number, string]>(
    'SELECT number, lease FROM detachments WHERE keepalive = ? ORDER BY number',
    key,
  );
  const detached = rows.map(([number, lease]) => ({ number, key: lease.slice(scope.length) }));
  return { kind: 'kept', detached };
}

/**
 * Makes or lengthens the keepalive of an attachment, and returns its new version; undefined if it
 * has lapsed or is buried.
 */
export function raiseKeepalive(
  { connection, scope, nowMs }: Tx,
  { id, isNew }: Attachment,
  ttlMs: number,
): number | undefined {
  const key = scope + id;
  if (isNew)
    connection.run('INSERT OR IGNORE INTO keepalives VALUES (?, 0, ?)', key, nowMs + ttlMs);
  const sql =
    'UPDATE keepalives SET version = version + 1, expires = max(expires, ?) WHERE key = ? AND expires > ?';
  if (connection.run(sql, nowMs + ttlMs, key, nowMs) === 0) return undefined;
  return connection.row<[number]>('SELECT version FROM keepalives WHERE key = ?', key)?.[0];
}

/** Attaches a lease that was just lengthened. It keeps the time that another keepalive gave it. */
export function attachLease({ connection, scope }: Tx, lease: string, id: string): void {
  const sql = `UPDATE leases SET expires = max(expires, coalesce((SELECT a.expires FROM keepalives a
    WHERE a.key = leases.keepalive), 0)), keepalive = ? WHERE key = ?`;
  connection.run(sql, scope + id, lease);
}

/** A key is about to be taken over from a holder whose keepalive, if any, has lapsed: buries it. */
export function buryKeepalive({ connection, nowMs }: Tx, lease: string): void {
  const sql =
    'DELETE FROM keepalives WHERE key = (SELECT keepalive FROM leases WHERE key = ?) AND expires <= ?';
  connection.run(sql, lease, nowMs);
}
