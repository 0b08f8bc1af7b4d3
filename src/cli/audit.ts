import { hostname, userInfo } from 'node:os';
import { ConfigError } from '../core/errors.ts';
import type { Holdfast, OperatorAct } from '../holdfast.ts';

/** Writes the action of a command into the shared log, with the user who ran it. */
export function audit(
  holdfast: Holdfast,
  {
    reason = null,
    ...act
  }: Omit<OperatorAct, 'by' | 'reason'> & { readonly reason?: string | null },
): void {
  holdfast.audit({ ...act, by: `cli:${userName()}@${hostname()}`, reason });
}

/** The log that all instances share says why a lease was revoked. */
export function checkReason(reason: string): void {
  if (reason.trim() !== '') return;
  const rule = 'a revocation needs a reason, which is recorded in the shared log';
  throw new ConfigError({ field: '--reason', value: reason, rule });
}

/** A container may run as a user without a name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
