import { type HeldReason, HoldfastError } from '../../core/errors.ts';

/** No slot of a pool is to be had now. `acquire` of a pool returns this as a result; `withSlot` throws it. */
export class PoolFullError extends HoldfastError {
  readonly code = 'POOL_FULL';
  readonly pool: string;
  readonly slots: number;
  readonly reason: HeldReason;
  readonly expiresInMs: number;
  readonly waitedMs: number;

  constructor(facts: {
    pool: string;
    slots: number;
    reason: HeldReason;
    expiresInMs: number;
    waitedMs: number;
  }) {
    const { pool, slots, reason, expiresInMs, waitedMs } = facts;
    const waited = waitedMs > 0 ? `Waited ${Math.round(waitedMs)} ms. ` : '';
    super(
      `pool '${pool}' has none of its ${slots} slots to give: ${WHY[reason]}. ${firstEnd(expiresInMs)}` +
        `${waited}Pass a longer wait to be woken when one is free, or add slots.`,
    );
    this.pool = pool;
    this.slots = slots;
    this.reason = reason;
    this.expiresInMs = expiresInMs;
    this.waitedMs = waitedMs;
  }
}

const WHY: Readonly<Record<HeldReason, string>> = {
  held: 'all are held',
  revoked: 'all are held, or were revoked and are kept free for a while',
  unsettled: 'all are held, or this very holder has not released its earlier tenure',
};

function firstEnd(ms: number): string {
  return Number.isFinite(ms)
    ? `The first runs out in ${Math.ceil(ms)} ms unless it is renewed. `
    : '';
}
