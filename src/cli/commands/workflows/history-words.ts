import type { RunPhase } from '../../../store/port/run-store.ts';
import type { HistoryEntry } from '../../../store/port/workflow-store.ts';
import { counted, toJson } from '../../ui/text.ts';

/** An entry of a workflow's history as a sentence. */
export function eventOf({ what, leaseId }: HistoryEntry): string {
  switch (what.kind) {
    case 'claimed':
      return `claimed by lease ${leaseId}${afterClaim(what.reemitted, what.dropped)}`;
    case 'emitted':
      return `emitted action ${what.actionId} for ${what.target}${aboutText(what)}`;
    case 'retried':
      return `try ${what.tries} failed: action ${what.actionId} of ${what.target}: ${what.error}`;
    case 'started':
      return `started, for function ${what.function}`;
    case 'kept':
      return `${what.isDone ? 'kept' : 'began'} ${STEPS[what.step]} ${what.name}`;
    case 'signalled':
      return `got signal ${what.name}`;
    case 'paused':
      return pausedText(what.phase, what.detail);
    case 'restarted':
      return 'an operator restarts the function';
    case 'reemitted':
      return `emitted action ${what.actionId} for ${what.target} again`;
    case 'dropped':
      return `dropped action ${what.actionId} for ${what.target}: its lease was revoked`;
    case 'updated':
      return what.omittedBytes === undefined
        ? `set the state to ${toJson(what.state)}`
        : `set the state to ${what.omittedBytes} bytes, too large for the history`;
    case 'settled':
      return `${OUTCOMES[what.outcome]}: action ${what.actionId} of ${what.target}${errorText(what)}`;
    case 'transferred':
      return `handed over at epoch ${what.transferEpoch}, to lease ${what.successor}`;
    case 'revoked':
      return `revoked lease ${leaseId}: ${what.reason}`;
    case 'revived':
      return `an operator retries action ${what.actionId} for ${what.target}`;
  }
}

const STEPS = { step: 'step', call: 'call', sleep: 'sleep', signal: 'wait' };

const PHASES = {
  running: 'left to another instance',
  suspended: 'suspended, waits for',
  retrying: 'the function failed and is tried again:',
  done: 'the function returned',
  failed: 'the function failed for the last time:',
};

function pausedText(phase: RunPhase, detail: string): string {
  return `${PHASES[phase]} ${detail}`.trim();
}

function aboutText({ type, payloadBytes }: { type?: string; payloadBytes?: number }): string {
  return type === undefined ? '' : `: ${type}, ${payloadBytes} bytes`;
}

function errorText({ error, tries }: { error?: string; tries?: number }): string {
  return error === undefined ? '' : ` (try ${tries}): ${error}`;
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
