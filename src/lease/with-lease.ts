import { ConfigError } from '../core/errors.ts';
import type { Lease } from './lease.ts';
import type { HeldContext, Leases } from './leases.ts';
import type { AcquireOptions } from './options.ts';
import { refusalError } from './refusal-error.ts';

/**
 * Runs `work` under a lease. Throws `LEASE_HELD` if another holder has the key, and
 * `STORE_QUARANTINED` if the store makes no grants now.
 */
export async function withLease<T>(
  leases: Pick<Leases, 'acquire'>,
  key: string,
  work: (held: HeldContext) => Promise<T> | T,
  options: AcquireOptions,
): Promise<T> {
  checkWork(work);
  const result = await leases.acquire(key, { ...options, untilReleased: true });
  if (!result.ok) throw refusalError(result);
  return workUnder(result.lease, work);
}

export function checkWork(work: unknown): void {
  if (typeof work === 'function') return;
  throw new ConfigError({ field: 'work', value: work, rule: 'it has to be a function' });
}

/** Runs `work` and releases the lease. */
export async function workUnder<T>(
  lease: Lease,
  work: (held: HeldContext) => Promise<T> | T,
): Promise<T> {
  try {
    return await work(heldContext(lease));
  } finally {
    // Never throws, so it does not mask an error of the work.
    await lease.release();
  }
}

/** What the work under `lease` is given. */
export function heldContext(lease: Lease): HeldContext {
  return {
    signal: lease.signal,
    fence: lease.fence,
    lease,
    isHeld: () => lease.isHeld(),
    assertHeld: () => lease.assertHeld(),
    guard: (transaction) => lease.guard(transaction),
  };
}
