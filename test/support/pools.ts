import type { Pool, PoolOptions, SlotOptions, SlotResult } from '../../src/lease/pool/pool.ts';
import type { LeaseStore } from '../../src/store/port/lease-store.ts';
import type { Store } from '../../src/store/port/store.ts';
import type { Actor } from './world.ts';

export type Taken = Extract<SlotResult, { ok: true }>;

/** A pool of three slots, unless told otherwise, as one process sees it. */
export function poolOf({ holdfast }: Actor, options: PoolOptions = { slots: 3 }) {
  const pool = holdfast.pool('gpu', options);
  /** The slot, or an error if there was none. */
  const take = async (asked?: SlotOptions): Promise<Taken> => {
    const result = await pool.acquire(asked);
    if (!result.ok) throw new Error(`no slot: ${JSON.stringify(result)}`);
    return result;
  };
  /** Every slot of it. */
  const fill = () => Promise.all(pool.slots.map(() => take()));
  return { pool, take, fill };
}

/** Who has the slots, in their order: what a test gave them as holder, or null. */
export async function holdersOf(pool: Pool): Promise<(string | null)[]> {
  return (await pool.inspect()).map(({ holder }) => holder);
}

/** Puts something around one verb of the leases of a store, from now on. */
export function around<V extends 'acquire' | 'read'>(
  { leases }: Store,
  verb: V,
  wrap: (original: LeaseStore[V]) => LeaseStore[V],
): void {
  leases[verb] = wrap(leases[verb].bind(leases) as LeaseStore[V]) as LeaseStore[V];
}
