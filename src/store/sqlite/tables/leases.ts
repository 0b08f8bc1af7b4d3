import { FENCE_RECORD_MS } from '../../port/lease-store.ts';
import type { Tx } from '../file/sqlite-connection.ts';

/** What the store knows of a key now; what has expired counts as absent. */
export interface LeaseState {
  /** Null where nobody holds it. */
  readonly holder: string | null;
  readonly expiresInMs: number;
  /** What the fence record says; 0 for none. */
  readonly fence: number;
  /** A forced revocation minted it: the holder's next renewal can tell that from an expiry. */
  readonly revoked: boolean;
}

const STATE = `
SELECT l.holder, l.expires, f.fence, f.revoked FROM (SELECT ? AS key) k
LEFT JOIN leases l ON l.key = k.key AND l.expires > ? LEFT JOIN fences f ON f.key = k.key AND f.expires > ?`;

export function leaseState({ session, nowMs }: Tx, key: string): LeaseState {
  const row = session.row<[string | null, number | null, number | null, number | null]>(
    STATE,
    key,
    nowMs,
    nowMs,
  );
  const [holder = null, expires = null, fence = null, revoked = null] = row ?? [];
  return {
    holder,
    expiresInMs: (expires ?? nowMs) - nowMs,
    fence: fence ?? 0,
    revoked: revoked === 1,
  };
}

export function setLease({ session, nowMs }: Tx, key: string, holder: string, ttlMs: number): void {
  const sql =
    'INSERT INTO leases VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET holder = excluded.holder, expires = excluded.expires';
  session.run(sql, key, holder, nowMs + ttlMs);
}

/** Lengthens the lease if the store names this holder; says whether it does. Never shortens it. */
export function lengthen(
  { session, nowMs }: Tx,
  key: string,
  holder: string,
  ttlMs: number,
): boolean {
  const sql =
    'UPDATE leases SET expires = max(expires, ?) WHERE key = ? AND holder = ? AND expires > ?';
  return session.run(sql, nowMs + ttlMs, key, holder, nowMs) === 1;
}

export function deleteLease({ session }: Tx, key: string): void {
  session.run('DELETE FROM leases WHERE key = ?', key);
}

/** The next fence of a key: higher than the last, and than any a store that has forgotten it can have given. */
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
  { session, nowMs }: Tx,
  key: string,
  fence: number,
  revoked = false,
): void {
  session.run(
    'INSERT OR REPLACE INTO fences VALUES (?, ?, ?, ?)',
    key,
    fence,
    revoked ? 1 : 0,
    nowMs + FENCE_RECORD_MS,
  );
}

/** In which era a key was handed over, and with which fence: it may be claimed in a quarantine of that era. */
export function setOffer({ session, nowMs }: Tx, key: string, era: string, fence: number): void {
  const sql = 'INSERT OR REPLACE INTO offers VALUES (?, ?, ?, ?)';
  session.run(sql, key, era, fence, nowMs + FENCE_RECORD_MS);
}

export function isOffered({ session }: Tx, key: string, era: string, fence: number): boolean {
  const sql = 'SELECT 1 FROM offers WHERE key = ? AND era = ? AND fence = ?';
  return session.row(sql, key, era, fence) !== undefined;
}

/** The record of a tenure that goes on stays as long as one that was minted now. */
export function keepFenceLonger({ session, nowMs }: Tx, key: string): void {
  const sql = 'UPDATE fences SET expires = ? WHERE key = ? AND expires > ?';
  session.run(sql, nowMs + FENCE_RECORD_MS, key, nowMs);
}
