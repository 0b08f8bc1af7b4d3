import { hostname, userInfo } from 'node:os';
import type { Holdfast, OperatorAct } from '../holdfast.ts';

/** Writes down what a command has done to others, and whose command it was. */
export function audit(
  holdfast: Holdfast,
  {
    reason = null,
    ...act
  }: Omit<OperatorAct, 'by' | 'reason'> & { readonly reason?: string | null },
): void {
  holdfast.audit({ ...act, by: `cli:${userName()}@${hostname()}`, reason });
}

/** A container may run as a user that has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? 'unknown');
  }
}
