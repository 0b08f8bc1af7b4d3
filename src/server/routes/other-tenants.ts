/**
 * What is held for a session names it: `instance/session`. For whoever is no administrator, sessions of other tenants do not exist, so
 * leases and slots are shown without the names of these.
 */
import { isTargetId } from '../../core/ids.ts';
import type { Intents } from '../../intents/intents.ts';
import type { Caller } from '../http/route.ts';
import { tenantOf } from '../http/tenant.ts';

const HIDDEN = '…';

/** Gives a function that shows a holder to this caller. */
export async function holdersFor(
  intents: Pick<Intents, 'ofOthers'>,
  caller: Caller,
  holders: readonly (string | null | undefined)[],
): Promise<(holder: string) => string> {
  const tenant = tenantOf(caller);
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
