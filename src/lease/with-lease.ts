import { ConfigError } from '../core/errors.ts';
import type { Lease } from './lease.ts';
import type { AcquireResult, HeldContext } from './leases.ts';
import type { AcquireOptions } from './options.ts';
import { refusalError } from './refusal-error.ts';

export type Acquire = (key: string, options: AcquireOptions) => Promise<AcquireResult>;

/** Runs `work` while holding the lease; throws `LEASE_HELD` if another has it, `STORE_QUARANTINED` if the store grants nothing now. */
export async function withLease<T>(
  acquire: Acquire,
  key: string,
  work: (held: HeldContext) => Promise<T> | T,
  options: AcquireOptions,
): Promise<T> {
  checkWork(work);
  const result = await acquire(key, { ...options, untilReleased: true });
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
    return await work({
      signal: lease.signal,
      fence: lease.fence,
      lease,
      isHeld: () => lease.isHeld(),
      assertHeld: () => lease.assertHeld(),
    });
  } finally {
    // Never throws, so the work's own error is never masked.
    await lease.release();
  }
}
