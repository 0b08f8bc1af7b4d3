import type { LeaseRevocation } from '../../../src/client/operating-messages.ts';

/** Tells the operator why nothing was revoked: the lease that the dashboard showed has ended. */
export function expectRevoked({ revoked, holder }: LeaseRevocation): void {
  if (revoked) return;
  const now = holder ? `${holder} holds it now` : 'It has no holder now';
  throw new Error(`Nothing was revoked: the lease shown here has ended. ${now}.`);
}
