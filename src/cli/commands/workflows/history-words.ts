import type { HistoryEntry } from '../../../store/port/workflow-store.ts';
import { counted, toJson } from '../../ui/text.ts';

/** What happened to a workflow, as a sentence. */
export function eventOf({ what, leaseId }: HistoryEntry): string {
  switch (what.kind) {
    case 'claimed':
      return `claimed, by lease ${leaseId}${goingOn(what.reemitted, what.dropped)}`;
    case 'emitted':
      return `emitted action ${what.actionId} for ${what.target}`;
    case 'reemitted':
      return `emitted action ${what.actionId} for ${what.target} anew`;
    case 'dropped':
      return `dropped action ${what.actionId} for ${what.target}: its tenure was revoked`;
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
      return `to be tried again, by an operator: action ${what.actionId} for ${what.target}`;
  }
}

const OUTCOMES = {
  succeeded: 'done',
  failed: 'failed',
  dead: 'failed too often, and put among the dead letters',
};

function goingOn(reemitted: number, dropped: number): string {
  if (reemitted > 0) return `, which emits ${counted(reemitted, 'action')} anew`;
  return dropped > 0 ? `, which drops ${counted(dropped, 'action')} of a revoked tenure` : '';
}
