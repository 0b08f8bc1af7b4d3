/**
 * Shows holders of leases and slots without the sessions of other tenants. A worker's holder is
 * `instance/session`, and a caller must not learn ids of sessions that it cannot see.
 */
import { isTargetId } from '../../core/ids.ts';
import type { Intents } from '../../intents/intents.ts';
import { visibleTenant } from '../http/auth.ts';
import type { Caller } from '../http/route.ts';

const HIDDEN = '…';

/** Returns a function that shows a holder to this caller. */
export async function holderNames(
  intents: Pick<Intents, 'ofOthers'>,
  caller: Caller,
  holders: readonly (string | null | undefined)[],
): Promise<(holder: string) => string> {
  const tenant = visibleTenant(caller);
  if (tenant === null) return (holder) => holder;
  const ids = holders.flatMap((holder) => sessionIn(holder ?? '') ?? []);
  const others = await intents.ofOthers(ids, tenant);
  return (holder) => {
    const session = sessionIn(holder);
    if (session === null || !others.has(session)) return holder;
    return holder.slice(0, -session.length) + HIDDEN;
  };
}

function sessionIn(holder: string): string | null {
  const slash = holder.lastIndexOf('/');
  const id = holder.slice(slash + 1);
  return slash > 0 && isTargetId(id) ? id : null;
}
