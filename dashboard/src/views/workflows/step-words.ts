/** The history of a workflow as sentences, with a mark for what stands out. */
import type { ApiEvent } from '../../../../src/client/messages.ts';
import type { WorkflowStep } from '../../../../src/client/operating-messages.ts';
import { codeName } from '../../data/refusal-codes.ts';
import { counted, sizeText } from '../../data/words.ts';
import { short } from '../short.ts';
import { wrongOf } from './refusals.ts';

export interface Told {
  readonly position: string;
  readonly at: number;
  /** After it; null for what changed nothing. */
  readonly epoch: number | null;
  readonly leaseId: string | null;
  /** One word for what it is. */
  readonly mark: string;
  readonly tone: 'plain' | 'good' | 'warn' | 'bad';
  readonly words: string;
}

/** Steps and refusals together, the latest first. Those of the same millisecond stay in the order of the store. */
export function toldOf(steps: readonly WorkflowStep[], refusals: readonly ApiEvent[]): Told[] {
  return [...steps.map(told), ...refusals.map(refusal)].sort((a, b) => b.at - a.at);
}

function told(step: WorkflowStep): Told {
  const { position, at, epoch, leaseId } = step;
  const known = Object.hasOwn(KINDS, step.kind) ? KINDS[step.kind] : undefined;
  const [mark, tone, words] = known?.(step) ?? [step.kind, 'plain', JSON.stringify(step.facts)];
  return { position, at, epoch, leaseId, mark, tone, words };
}

type Telling = readonly [mark: string, tone: Told['tone'], words: string];

const KINDS: Readonly<Record<string, (step: WorkflowStep) => Telling>> = {
  claimed: ({ leaseId, facts }) => [
    'claim',
    'good',
    `Claimed with lease ${short(leaseId)}${goingOn(facts)}`,
  ],
  started: ({ facts }) => ['start', 'good', `Started, for function ${String(facts.function)}`],
  kept: ({ facts }) => [
    STEP_NOUNS[String(facts.step)] ?? 'step',
    'plain',
    facts.isDone === true ? `${String(facts.name)} ended` : `${String(facts.name)} began`,
  ],
  signalled: ({ facts }) => ['signal', 'good', `Signal ${String(facts.name)} came`],
  paused: ({ facts }) => paused(facts),
  restarted: () => ['restart', 'warn', 'An operator restarts the function'],
  retried: ({ facts }) => [
    'retry',
    'warn',
    `${action(facts)}: try ${String(facts.tries)} failed: ${String(facts.error)}`,
  ],
  emitted: ({ facts }) => ['action', 'plain', `${action(facts)} emitted${about(facts)}`],
  reemitted: ({ facts }) => ['action', 'plain', `${action(facts)} emitted again, with the same id`],
  dropped: ({ facts }) => ['dropped', 'warn', `${action(facts)} dropped: its lease was revoked`],
  updated: ({ facts }) => ['state', 'plain', `State set to ${stateText(facts.state)}`],
  settled: ({ facts }) => settled(facts),
  transferred: ({ facts }) => [
    'handover',
    'good',
    `Handed over to lease ${short(facts.successor)} at epoch ${String(facts.transferEpoch)}`,
  ],
  revoked: ({ leaseId, facts }) => [
    'revocation',
    'bad',
    `Lease ${short(leaseId)} revoked: ${String(facts.reason)}`,
  ],
  revived: ({ facts }) => ['retry', 'warn', `An operator retries ${action(facts)}`],
};

const STEP_NOUNS: Readonly<Record<string, string>> = { sleep: 'sleep', signal: 'wait' };

function paused({ phase, detail }: WorkflowStep['facts']): Telling {
  const said = String(detail);
  if (phase === 'suspended') return ['pause', 'plain', `Suspended: waits for ${waitsOf(said)}`];
  if (phase === 'retrying')
    return ['failed', 'warn', `The function failed, and is tried again: ${messageIn(said)}`];
  if (phase === 'failed')
    return ['failed', 'bad', `The function failed for the last time: ${messageIn(said)}`];
  if (phase === 'done') return ['done', 'good', 'The function returned'];
  return ['pause', 'plain', 'Left to another instance'];
}

/** The history has the JSON of what it waits for, cut off if it is long. */
function waitsOf(json: string): string {
  try {
    const waits: unknown = JSON.parse(json);
    if (!Array.isArray(waits)) return 'another instance';
    return waits
      .map(({ sleep, signal }) => (sleep === undefined ? `signal ${signal}` : `sleep ${sleep}`))
      .join(' or ');
  } catch {
    return json;
  }
}

function messageIn(json: string): string {
  const [, message = ''] = /"message":"((?:[^"\\]|\\.)*)/.exec(json) ?? [];
  try {
    return message === '' ? json : String(JSON.parse(`"${message}"`));
  } catch {
    return message;
  }
}

function about({ type, payloadBytes }: WorkflowStep['facts']): string {
  return type === undefined ? '' : `: ${String(type)}, ${sizeText(Number(payloadBytes))}`;
}

function settled(facts: WorkflowStep['facts']): Telling {
  if (facts.outcome === 'succeeded') return ['done', 'plain', `${action(facts)} done`];
  const why = facts.error === undefined ? '' : `: ${String(facts.error)}`;
  return facts.outcome === 'dead'
    ? ['dead', 'bad', `${action(facts)} failed too often: it is a dead letter now${why}`]
    : ['failed', 'warn', `${action(facts)} failed${why}`];
}

function refusal({ position, at, ...facts }: ApiEvent): Told {
  const who = facts.action === null ? 'A step' : `Action ${short(facts.action)}`;
  const words = `${who} refused (${codeName(facts.code)}): it came with ${wrongOf(facts)}. It changed nothing`;
  const leaseId = typeof facts.receivedLease === 'string' ? facts.receivedLease : null;
  return { position, at, epoch: null, leaseId, mark: 'refusal', tone: 'bad', words };
}

function action({ actionId, target }: WorkflowStep['facts']): string {
  return `Action ${short(actionId)} for ${String(target)}`;
}

function goingOn({ reemitted, dropped }: WorkflowStep['facts']): string {
  if (Number(reemitted) > 0) return `, and emits ${counted(Number(reemitted), 'action')} again`;
  return Number(dropped) > 0
    ? `, and drops ${counted(Number(dropped), 'action')} of a revoked lease`
    : '';
}

/** A state may be any JSON. */
export function stateText(state: unknown): string {
  return typeof state === 'string' ? state : (JSON.stringify(state) ?? 'nothing');
}
