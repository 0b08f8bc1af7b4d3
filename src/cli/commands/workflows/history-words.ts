import type { HistoryEntry } from '../../../store/port/workflow-store.ts';
import { counted, toJson } from '../../ui/text.ts';

/** An entry of a workflow's history as a sentence. */
export function eventOf({ what, leaseId }: HistoryEntry): string {
  switch (what.kind) {
    case 'claimed':
      return `claimed by lease ${leaseId}${afterClaim(what.reemitted, what.dropped)}`;
    case 'emitted':
      return `emitted action ${what.actionId} for ${what.target}`;
    case 'reemitted':
      return `emitted action ${what.actionId} for ${what.target} again`;
    case 'dropped':
      return `dropped action ${what.actionId} for ${what.target}: its lease was revoked`;
    case 'updated':
      return what.omittedBytes === undefined
        ? `set the state to ${toJson(what.state)}`
        : `set the state to ${what.omittedBytes} bytes, too large for the history`;
    case 'settled':
      return `${OUTCOMES[what.outcome]}: action ${what.actionId} of ${what.target}`;
    case 'transferred':
      return `handed over at epoch ${what.transferEpoch}, to lease ${what.successor}`;
    case 'revoked':
      return `revoked lease ${leaseId}: ${what.reason}`;
    case 'revived':
      return `an operator retries action ${what.actionId} for ${what.target}`;
  }
}

const OUTCOMES = {
  succeeded: 'done',
  failed: 'failed',
  dead: 'failed too often, now a dead letter',
};

function afterClaim(reemitted: number, dropped: number): string {
  if (reemitted > 0) return `, which emits ${counted(reemitted, 'action')} again`;
  return dropped > 0 ? `, which drops ${counted(dropped, 'action')} of a revoked lease` : '';
}
