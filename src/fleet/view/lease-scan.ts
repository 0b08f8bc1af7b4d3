import { LEASE_CLASSES } from '../../lease/timings.ts';
import type { ReadReply } from '../../store/port/lease-store.ts';
import type { Runtime } from '../../store/runtime.ts';
import { type FleetTarget, GARBAGE_RETRY_MS } from './fleet-target.ts';

/** How many leases one request reads. */
export const SCAN_CHUNK = 1_000;
const { keyspace } = LEASE_CLASSES.poll;

/**
 * Reads the leases of up to `SCAN_CHUNK` targets and marks their owners. Targets that this instance
 * owns or acquires meanwhile are left alone. Returns the owners whose lease has expired.
 */
export async function scanLeases(
  { store, clock }: Runtime,
  targets: readonly FleetTarget[],
  timeoutMs: number,
): Promise<string[]> {
  const keys = targets.map(({ id }) => keyspace + id);
  const replies = await store.leases.read(keys, { timeoutMs });
  const nowMs = clock.monotonicMs();
  const lapsed: string[] = [];
  for (const [i, target] of targets.entries()) {
    const reply = replies[i];
    // Acquired while the request was under way: that answer is newer.
    if (target.state !== 'watched' || reply === undefined) continue;
    const { owner, expiresAtMs } = target;
    if (owner !== null && reply.kind === 'free' && expiresAtMs <= nowMs) lapsed.push(owner);
    markLease(target, reply, nowMs);
  }
  return lapsed;
}

/** Marks what the store answered about the lease of a target. */
export function markLease(target: FleetTarget, reply: ReadReply, nowMs: number): void {
  if (reply.kind === 'held') target.markOwned(reply.holder, reply.expiresInMs, nowMs);
  else if (reply.kind === 'revoked') target.markBarred('revoked', reply.expiresInMs, nowMs);
  else if (reply.kind === 'free') target.markFree(nowMs);
  else target.markBarred('garbage', GARBAGE_RETRY_MS, nowMs);
}
