import type { ApiWorkflow } from '../../../../src/client/operating-messages.ts';
import { nameOf } from '../../data/palette.ts';
import { Left } from '../../parts/basics.tsx';
import { Icon } from '../../parts/icon.tsx';
import { short } from '../short.ts';

/** Who may write to a workflow, and how long that lasts without a renewal. `seenAtMs` is when the server said so. */
export function Tenure({
  of: { isHeld, leaseId, instance, expiresInMs },
  seenAtMs,
}: {
  of: Pick<ApiWorkflow, 'isHeld' | 'leaseId' | 'instance' | 'expiresInMs'>;
  seenAtMs: number;
}) {
  if (leaseId === null)
    return (
      <span class="badge warn">
        <Icon name="cross" /> free: lease revoked
      </span>
    );
  const who = instance === null ? null : nameOf(instance);
  return (
    <span class={isHeld ? 'badge good' : 'badge'} title={`Lease ${leaseId}`}>
      <Icon name={isHeld ? 'dot' : 'ring'} />
      <span class="cut">
        {isHeld ? 'held by' : 'free, last held by'} {who ?? <code>{short(leaseId)}</code>}
        {isHeld && expiresInMs !== null && (
          <>
            , <Left at={seenAtMs + expiresInMs} /> left
          </>
        )}
      </span>
    </span>
  );
}
