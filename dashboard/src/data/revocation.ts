import type { LeaseRevocation } from '../../../src/client/operating-messages.ts';

/** Tells the operator why nothing was revoked: the lease that the page showed is over. */
export function expectRevoked({ revoked, holder }: LeaseRevocation): void {
  if (revoked) return;
  const now = holder ? `It is held by ${holder} now` : 'Nobody holds it now';
  throw new Error(`Nothing was revoked: the lease shown here is over. ${now}.`);
}
