import { hostname, userInfo } from 'node:os';
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

/** A container may run as a user without a name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
