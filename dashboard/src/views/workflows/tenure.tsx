import type { ApiWorkflow } from '../../../../src/client/operating-messages.ts';
import { Left } from '../../parts/basics.tsx';
import { short } from '../short.ts';

/** Who may write to a workflow, and for how long yet. `seenAtMs` is when that was so. */
export function Tenure({
  of: { isHeld, leaseId, expiresInMs },
  seenAtMs,
}: {
  of: Pick<ApiWorkflow, 'isHeld' | 'leaseId' | 'expiresInMs'>;
  seenAtMs: number;
}) {
  if (leaseId === null) return <span class="badge warn">✕ free, last tenure revoked</span>;
  return (
    <span class={isHeld ? 'badge good' : 'badge'} title={`lease ${leaseId}`}>
      {isHeld ? '● held' : '○ free'} <code>{short(leaseId)}</code>
      {isHeld && expiresInMs !== null && (
        <>
          <Left at={seenAtMs + expiresInMs} /> left
        </>
      )}
    </span>
  );
}
