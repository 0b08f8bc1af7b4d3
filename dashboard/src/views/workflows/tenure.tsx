import type { ApiWorkflow } from '../../../../src/client/operating-messages.ts';
import { claimantOf } from '../../data/lease-names.ts';
import { nameOf } from '../../data/palette.ts';
import { Left } from '../../parts/basics.tsx';
import { Icon } from '../../parts/icon.tsx';
import { short } from '../short.ts';

/** Who may write to a workflow, and how long that lasts without a renewal. `seenAtMs` is when the server said so. */
export function Tenure({
  of: { isHeld, leaseId, expiresInMs },
  seenAtMs,
}: {
  of: Pick<ApiWorkflow, 'isHeld' | 'leaseId' | 'expiresInMs'>;
  seenAtMs: number;
}) {
  if (leaseId === null)
    return (
      <span class="badge warn">
        <Icon name="cross" /> free: lease revoked
      </span>
    );
  const claimant = claimantOf(leaseId);
  const who = claimant === undefined ? null : nameOf(claimant);
  return (
    <span class={isHeld ? 'badge good' : 'badge'} title={`Lease ${leaseId}`}>
      <Icon name={isHeld ? 'dot' : 'ring'} />
      {isHeld ? 'held by' : 'free, last held by'} {who ?? <code>{short(leaseId)}</code>}
      {isHeld && expiresInMs !== null && (
        <>
          , <Left at={seenAtMs + expiresInMs} /> left
        </>
      )}
    </span>
  );
}
