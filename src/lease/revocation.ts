/**
 * Ends a lease without its holder. A revocation names one lease by its fence: carried out late, or
 * repeated after an unknown outcome, it does not hit the next holder.
 */
import { ClosedError, ConfigError, OutcomeUnknownError } from '../core/errors.ts';
import { type RevokeReply, TOMBSTONE } from '../store/port/lease-store.ts';
import type { Store } from '../store/port/store.ts';
import { checkFence } from './fence.ts';
import type { LeaseClassName } from './timings.ts';

export interface RevokeOptions {
  reason: string;
  /**
   * Frees the key at once: the revoked holder and the next may both act until the old lease would
   * have expired.
   */
  force?: boolean;
  /**
   * The fence of the lease to revoke; default the one that the store shows at the call. Pass it to
   * repeat a revocation whose outcome is unknown, or to act on an earlier view: a later holder then
   * keeps its lease.
   */
  fence?: number | undefined;
  class?: LeaseClassName;
}

export type RevokeResult =
  | {
      readonly revoked: true;
      readonly holder: string;
      readonly fence: number;
      readonly mayActForMs: number;
    }
  /** That lease is over. `holder` has the key now; null if the key is free. */
  | { readonly revoked: false; readonly holder: string | null; readonly fence: number };

/** Revokes the lease of `options.fence`, or else the one that the store shows now. */
export async function revokeByFence(
  store: Store,
  storeKey: string,
  timeoutMs: number,
  { reason, force = false, fence }: RevokeOptions,
): Promise<RevokeReply> {
  if (typeof reason !== 'string' || reason.trim() === '') {
    const rule = 'a revocation needs a reason. It is recorded in the log that all instances share';
    throw new ConfigError({ field: 'reason', value: reason, rule });
  }
  if (fence !== undefined) checkFence(fence);
  const meant = fence ?? (await readFence(store, storeKey, timeoutMs));
  const reply = await store.leases
    .revoke(storeKey, { force, fence: meant, timeoutMs })
    .catch((error: unknown) => Promise.reject(withFence(error, meant)));
  return reply.kind === 'not-held' && reply.holder === TOMBSTONE
    ? { ...reply, holder: null }
    : reply;
}

async function readFence(store: Store, storeKey: string, timeoutMs: number): Promise<number> {
  const [reply] = await store.leases.read([storeKey], { timeoutMs });
  if (reply === undefined || reply.kind === 'failed')
    throw reply?.error ?? new ClosedError({ operation: 'revoke' });
  return reply.fence;
}

/**
 * To repeat a revocation with an unknown outcome safely, the caller needs the fence of the lease it
 * meant.
 */
function withFence(error: unknown, fence: number): unknown {
  if (!(error instanceof OutcomeUnknownError)) return error;
  const { store, operation, afterMs } = error;
  const why =
    'it may have been revoked; ' +
    `to repeat it without hitting the next holder, pass fence ${fence}`;
  return new OutcomeUnknownError({ store, operation, afterMs, why }, { cause: error });
}
