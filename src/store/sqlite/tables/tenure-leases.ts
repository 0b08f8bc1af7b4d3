import type { Tx } from '../file/sqlite-connection.ts';

/** Leases as workflows need them: within a transaction of theirs. */
export interface TenureLeases {
  /** Whom the store names for a key now, and what its fence record says; 0 for nothing. */
  look(tx: Tx, key: string): { readonly holder: string | null; readonly fence: number };
  /** Names another holder for a short window; gives the new fence. */
  handOver(tx: Tx, handover: LeaseHandover): number;
  /** Frees the key against its holder's will, who can tell it from an expiry; gives the new fence. */
  free(tx: Tx, key: string): number;
}

export interface LeaseHandover {
  readonly key: string;
  readonly successor: string;
  readonly windowMs: number;
  /** The new fence is at least this. */
  readonly floor?: number;
}
