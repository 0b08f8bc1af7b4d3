import type { RevokeReply } from '../../src/store/port/lease-store.ts';
import type { Store } from '../../src/store/port/store.ts';

const CALL = { timeoutMs: 5_000 };

/** Revokes whichever tenure the store shows for a key, as the library does. */
export async function revokeShown(
  { leases }: Pick<Store, 'leases'>,
  key: string,
  { force = false } = {},
): Promise<RevokeReply> {
  const [shown] = await leases.read([key], CALL);
  if (shown === undefined || shown.kind === 'failed') throw shown?.error ?? new Error('no answer');
  return leases.revoke(key, { ...CALL, force, fence: shown.fence });
}
