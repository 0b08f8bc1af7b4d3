/**
 * Ending a tenure against its holder's will. A revocation means one tenure, by its fence: carried out late, or repeated
 * after an unknown outcome, it leaves the next holder alone.
 */
import { ClosedError, ConfigError, OutcomeUnknownError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { TOMBSTONE } from '../store/port/lease-store.ts';
import type { Store } from '../store/port/store.ts';
import type { LeaseClassName } from './classes.ts';
import { checkFence } from './fence.ts';
import type { Terms } from './tenure.ts';
import type { WakeWatch } from './wake-watch.ts';

export interface RevokeOptions {
  reason: string;
  /** Frees the key at once: the revoked holder and the next may both act until the old lease would have run out. */
  force?: boolean;
  /**
   * The fence of the lease that is meant; default what the store shows at the call. Pass it when you repeat a revocation
   * whose outcome is unknown, or act on what you saw earlier: a later holder is then left alone.
   */
  fence?: number;
  class?: LeaseClassName;
}

export type RevokeResult =
  | {
      readonly revoked: true;
      readonly holder: string;
      readonly fence: number;
      readonly mayActForMs: number;
    }
  /** The lease that was meant is over. `holder` is who has the key now, null if nobody does. */
  | { readonly revoked: false; readonly holder: string | null; readonly fence: number };

export interface RevocationParts {
  readonly store: Store;
  readonly events: Emitter;
  readonly wakes: WakeWatch;
}

/** Revokes the lease of `options.fence`, or else the one that the store shows now. */
export async function revokeLease(
  { store, events, wakes }: RevocationParts,
  { leaseClass, timings }: Terms,
  key: string,
  { reason, force = false, fence }: RevokeOptions,
): Promise<RevokeResult> {
  if (typeof reason !== 'string' || reason.trim() === '') {
    const rule = 'a revocation needs a reason, for whoever finds it later';
    throw new ConfigError({ field: 'reason', value: reason, rule });
  }
  if (fence !== undefined) checkFence(fence);
  const storeKey = leaseClass.keyspace + key;
  const timeoutMs = timings.operationTimeoutMs;
  const meant = fence ?? (await fenceShown(store, storeKey, timeoutMs));
  const reply = await store.leases
    .revoke(storeKey, { force, fence: meant, timeoutMs })
    .catch((error: unknown) => Promise.reject(namingFence(error, meant)));
  if (reply.kind === 'not-held') {
    const holder = reply.holder === TOMBSTONE ? null : reply.holder;
    return { revoked: false, holder, fence: reply.fence };
  }
  if (reply.woke) wakes.watch(storeKey);
  const { holder, mayActForMs } = reply;
  const facts = { leaseClass: leaseClass.name, key, holder, fence: reply.fence };
  events.emit('lease.revoked', { ...facts, reason, force, mayActForMs });
  return { revoked: true, holder, fence: reply.fence, mayActForMs };
}

async function fenceShown(store: Store, storeKey: string, timeoutMs: number): Promise<number> {
  const [shown] = await store.leases.read([storeKey], { timeoutMs });
  if (shown === undefined || shown.kind === 'failed')
    throw shown?.error ?? new ClosedError({ operation: 'revoke' });
  return shown.fence;
}

/** Who repeats a revocation whose outcome is unknown has to name the lease it meant, or it hits the next holder. */
function namingFence(error: unknown, fence: number): unknown {
  if (!(error instanceof OutcomeUnknownError)) return error;
  const { store, operation, afterMs } = error;
  const why = `it may have been revoked; to repeat it without hitting the next holder, pass fence ${fence}`;
  return new OutcomeUnknownError({ store, operation, afterMs, why }, { cause: error });
}
