import { FENCE_RECORD_MS } from '../../port/lease-store.ts';
import type { Tx } from '../file/sqlite-connection.ts';

/** The state of a key. An expired lease or fence record counts as absent. */
export interface LeaseState {
  /** Null if the key is free. */
  readonly holder: string | null;
  readonly expiresInMs: number;
  /** The fence record; 0 for none. */
  readonly fence: number;
  /** A forced revocation minted the fence: the holder's next renewal can tell it from an expiry. */
  readonly revoked: boolean;
}

/** A caller that waits for a key: how long it has waited, and for how long its row is kept. */
export interface Waiter {
  readonly inbox: string;
  readonly waitedMs: number;
  readonly keptMs: number;
}

const STATE = `
SELECT l.holder, max(l.expires, coalesce(a.expires, 0)), f.fence, f.revoked FROM (SELECT ? AS key) k
LEFT JOIN leases l ON l.key = k.key LEFT JOIN keepalives a ON a.key = l.keepalive
LEFT JOIN fences f ON f.key = k.key AND f.expires > ?`;

export function leaseState({ connection, nowMs }: Tx, key: string): LeaseState {
  const row = connection.row<[string | null, number | null, number | null, number | null]>(
    STATE,
    key,
    nowMs,
  );
  const [holder = null, expires = null, fence = null, revoked = null] = row ?? [];
  const leftMs = (expires ?? nowMs) - nowMs;
  return {
    holder: leftMs > 0 ? holder : null,
    expiresInMs: Math.max(0, leftMs),
    fence: fence ?? 0,
    revoked: revoked === 1,
  };
}

/** Sets the lease of a key. It is attached to no keepalive. */
export function setLease(
  { connection, nowMs }: Tx,
  key: string,
  holder: string,
  ttlMs: number,
): void {
  const sql =
    'INSERT INTO leases VALUES (?, ?, ?, NULL) ON CONFLICT (key) DO UPDATE SET holder = excluded.holder, expires = excluded.expires, keepalive = NULL';
  connection.run(sql, key, holder, nowMs + ttlMs);
}

/** Extends the lease if this holder has it, and returns whether it has. Never shortens it. */
export function lengthen(
  { connection, nowMs }: Tx,
  key: string,
  holder: string,
  ttlMs: number,
): boolean {
  const sql = `UPDATE leases SET expires = max(expires, ?) WHERE key = ? AND holder = ? AND (expires > ?
    OR EXISTS (SELECT 1 FROM keepalives a WHERE a.key = leases.keepalive AND a.expires > ?))`;
  return connection.run(sql, nowMs + ttlMs, key, holder, nowMs, nowMs) === 1;
}

export function deleteLease({ connection }: Tx, key: string): void {
  connection.run('DELETE FROM leases WHERE key = ?', key);
}

/**
 * Mints the next fence of a key. It is higher than the last, and than any fence that was minted
 * before the file was lost.
 */
export function mint(
  tx: Tx,
  key: string,
  previous: number,
  floor: number,
  revoked = false,
): number {
  const fence = Math.max(previous + 1, tx.fenceTime(), floor);
  keepFence(tx, key, fence, revoked);
  return fence;
}

export function keepFence(
  { connection, nowMs }: Tx,
  key: string,
  fence: number,
  revoked = false,
): void {
  const sql = 'INSERT OR REPLACE INTO fences VALUES (?, ?, ?, ?)';
  connection.run(sql, key, fence, revoked ? 1 : 0, nowMs + FENCE_RECORD_MS);
}

/** Records a handover: the successor may claim the key in the quarantine of this era. */
export function setOffer({ connection, nowMs }: Tx, key: string, era: string, fence: number): void {
  const sql = 'INSERT OR REPLACE INTO offers VALUES (?, ?, ?, ?)';
  connection.run(sql, key, era, fence, nowMs + FENCE_RECORD_MS);
}

export function isOffered({ connection }: Tx, key: string, era: string, fence: number): boolean {
  const sql = 'SELECT 1 FROM offers WHERE key = ? AND era = ? AND fence = ?';
  return connection.row(sql, key, era, fence) !== undefined;
}

/** Keeps the fence record of a renewed lease for as long as a new one. */
export function keepFenceLonger({ connection, nowMs }: Tx, key: string): void {
  const sql = 'UPDATE fences SET expires = ? WHERE key = ? AND expires > ?';
  connection.run(sql, nowMs + FENCE_RECORD_MS, key, nowMs);
}

/** Adds an inbox to the waiters of a key. A waiter that is there already keeps its place. */
export function putWaiter({ connection, scope, nowMs }: Tx, key: string, waiter: Waiter): void {
  const sql =
    'INSERT INTO lines VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET expires = max(expires, excluded.expires)';
  connection.run(sql, key, scope + waiter.inbox, nowMs - waiter.waitedMs, nowMs + waiter.keptMs);
}

export function removeWaiter({ connection, scope }: Tx, key: string, inbox: string): void {
  const sql = 'DELETE FROM lines WHERE key = ? AND inbox = ?';
  connection.run(sql, key, scope + inbox);
}

/** Returns the waiters of a key, the first one first. */
export function waitersOf(tx: Tx, key: string): { inbox: string; hasExpired: boolean }[] {
  const { connection, scope, nowMs } = tx;
  const sql = 'SELECT inbox, expires FROM lines WHERE key = ? ORDER BY since';
  const rows = connection.rows<[string, number]>(sql, key);
  return rows.map(([inbox, expires]) => {
    return { inbox: inbox.slice(scope.length), hasExpired: expires <= nowMs };
  });
}
