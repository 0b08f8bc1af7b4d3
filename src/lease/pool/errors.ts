import { defineError, type HeldReason } from '../../core/errors.ts';
import { spanOf } from '../../core/time-text.ts';

/**
 * No slot of the pool is free. `acquire` of a pool returns this as a result; `withSlot` throws it.
 */
export class PoolFullError extends defineError(
  'POOL_FULL',
  'busy',
)<{
  pool: string;
  slots: number;
  reason: HeldReason;
  expiresInMs: number;
  waitedMs: number;
}>(({ pool, slots, reason, expiresInMs, waitedMs }) => {
  const waited = waitedMs > 0 ? `Waited ${spanOf(waitedMs)}. ` : '';
  return (
    `pool '${pool}' has none of its ${slots} slots free: ${WHY[reason]}. ${firstEnd(expiresInMs)}` +
    `${waited}Pass a longer wait to be woken when one is free, or add slots.`
  );
}) {}

const WHY: Readonly<Record<HeldReason, string>> = {
  held: 'all are held',
  revoked: 'all are held, or were revoked and stay blocked for a while',
  unsettled: 'all are held, or this holder has not released its earlier lease',
};

function firstEnd(ms: number): string {
  return Number.isFinite(ms) ? `The first expires in ${spanOf(ms)} unless it is renewed. ` : '';
}
