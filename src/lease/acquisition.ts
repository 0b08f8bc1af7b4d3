import type { BusyReason } from '../core/errors.ts';
import type { Lease } from './lease.ts';
import type { Tenure } from './tenure.ts';
import type { LeasePolicy } from './timings.ts';

/** A key and the holder that wants it or has it. */
export interface Claim {
  readonly policy: LeasePolicy;
  readonly key: string;
  /** The key as the store knows it. */
  readonly storeKey: string;
  readonly holder: string;
}

/** One call of `acquire`, from its start to its result. */
export interface Acquisition extends Claim {
  /** The caller chose the holder, so another call may choose the same. */
  readonly isNamed: boolean;
  readonly fence: number | undefined;
  readonly fenceFloor: number | undefined;
  readonly untilReleased: boolean;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  /** Called when the lease was released, and no waiter was woken for its key. */
  readonly onFreed: (() => void) | undefined;
  /** The caller has no result yet. */
  isPending: boolean;
  tenure: Tenure | null;
}

/** Whether the caller still waits for a result, or holds the granted lease. */
export function isActive({ isPending, tenure }: Acquisition): boolean {
  return isPending || (tenure !== null && !tenure.isOver);
}

export interface Busy {
  readonly kind: 'busy';
  readonly reason: BusyReason;
  readonly holder: string;
  readonly fence: number;
  readonly expiresInMs: number;
}

/** The answer to one attempt. */
export type AttemptResult = { readonly kind: 'granted'; readonly lease: Lease } | Busy;
