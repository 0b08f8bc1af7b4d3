import type { Settlement } from '../store/port/workflow-store.ts';
import type { Attempt, Ending } from './attempt.ts';

/** What the store is told of an attempt: its result, or that it is to be tried again, if it may be. */
export function settlementOf(
  { workflow, fence, tries }: Attempt,
  ending: Ending,
  { mostTries, backoffMs }: { readonly mostTries: number; backoffMs(): number },
): Settlement {
  if (ending.kind === 'succeeded')
    return { workflow, fence, outcome: 'succeeded', value: ending.value };
  const { failure, isFinal } = ending;
  if (isFinal) return { workflow, fence, outcome: 'failed', value: failure };
  if (tries < mostTries) return { workflow, fence, outcome: 'retry', afterMs: backoffMs() };
  return { workflow, fence, outcome: 'dead', value: failure, reason: failure.message };
}
