/**
 * Leases taken by the API process (`apiLeases: 'on'`), for users who move from an API that did so:
 * a start acquires the lease of its channel first, and the second caller is refused. The worker
 * continues the lease with the same holder and fence.
 */
import { refusalError } from '../lease/refusal-error.ts';
import { deriveTimings, LEASE_CLASSES } from '../lease/timings.ts';
import type { Runtime } from '../store/runtime.ts';
import { dedupKey } from './dedup-key.ts';
import type { Wanted } from './intent.ts';
import type { SessionBody } from './intent-session.ts';

type ApiTenure = NonNullable<SessionBody['tenure']>;

const { keyspace, timings } = LEASE_CLASSES.resource;
const { ttlMs: defaultTtlMs, operationTimeoutMs } = deriveTimings({}, timings);
const CALL = { timeoutMs: operationTimeoutMs };

/**
 * Throws `LEASE_HELD` if another session has it, `STORE_QUARANTINED` if the store makes no new
 * grants now.
 */
export async function acquireApiLease(
  { store, instanceId }: Runtime,
  wanted: Wanted,
  session: string,
): Promise<ApiTenure> {
  const key = dedupKey(wanted);
  const holder = `${instanceId}/${session}`;
  // The worker has this long to continue it.
  const ttlMs = Math.min(defaultTtlMs, store.leases.maxTtls?.lease ?? defaultTtlMs);
  const call = { timeoutMs: operationTimeoutMs, ttlMs, inbox: instanceId };
  const [reply] = await store.leases.acquire([{ key: keyspace + key, holder }], call);
  if (reply?.kind === 'granted') return { key, holder, fence: reply.fence };
  if (reply?.kind !== 'busy') throw reply?.error ?? new Error('the store gave no reply');
  const { reason, fence, expiresInMs } = reply;
  throw refusalError({ key, holder: reply.holder, fence, expiresInMs, reason, waitedMs: 0 });
}

/** Never rejects: without a release the lease expires. */
export async function releaseApiLease({ store }: Runtime, tenure: ApiTenure): Promise<void> {
  const { key, holder, fence } = tenure;
  await store.leases.release([{ key: keyspace + key, holder, fence }], CALL).catch(() => {});
}
