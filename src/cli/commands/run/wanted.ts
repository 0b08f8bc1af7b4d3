/** The lease that `holdfast run` needs, or with `--slots` one slot of a pool. */
import type { Lease } from '../../../lease/lease.ts';
import type { CliError } from '../../exit-codes.ts';
import { spanOf } from '../../ui/text.ts';
import { fullError, heldError } from './complaints.ts';
import type { Plan } from './plan.ts';
import type { RunLeases } from './run-leases.ts';

export interface Wanted {
  /** Its name on the command line. */
  readonly name: string;
  acquire(
    signal: AbortSignal,
  ): Promise<{ lease: Lease; slot: string | null } | { refusal: CliError }>;
  /** Its holders as text. */
  holders(): Promise<string>;
}

export function wantedLease(holdfast: RunLeases, name: string, plan: Plan): Wanted {
  return {
    name,
    acquire: async (signal) => {
      const options = { ...plan.timings, wait: plan.waitMs, signal };
      const result = await holdfast.acquire(name, options);
      return result.ok ? { lease: result.lease, slot: null } : { refusal: heldError(result) };
    },
    holders: async () => {
      const lease = await holdfast.inspect(name);
      if (lease.kind !== 'held') return 'free, but not granted yet';
      return `held by ${lease.holder}, expires in ${spanOf(lease.expiresInMs)}`;
    },
  };
}

export function wantedSlot(holdfast: RunLeases, name: string, slots: number, plan: Plan): Wanted {
  const pool = holdfast.pool(name, { slots, ...plan.timings });
  return {
    name,
    acquire: async (signal) => {
      const result = await pool.acquire({ wait: plan.waitMs, signal });
      return result.ok ? result : { refusal: fullError(result) };
    },
    holders: async () => {
      const held = (await pool.inspect()).filter(({ holder }) => holder !== null);
      const firstMs = Math.min(...held.map(({ expiresInMs }) => expiresInMs));
      const end = held.length > 0 ? `, the first expires in ${spanOf(firstMs)}` : '';
      return `${held.length} of ${slots} slots held${end}`;
    },
  };
}
