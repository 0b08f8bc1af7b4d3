/** The history of a workflow as sentences, with a mark for what stands out. */
import type { ApiEvent } from '../../../../src/client/messages.ts';
import type { WorkflowStep } from '../../../../src/client/operating-messages.ts';
import { codeName } from '../../data/refusal-codes.ts';
import { counted } from '../../data/words.ts';
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
  emitted: ({ facts }) => ['action', 'plain', `${action(facts)} emitted`],
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

function settled(facts: WorkflowStep['facts']): Telling {
  if (facts.outcome === 'succeeded') return ['done', 'plain', `${action(facts)} done`];
  return facts.outcome === 'dead'
    ? ['dead', 'bad', `${action(facts)} failed too often: it is a dead letter now`]
    : ['failed', 'warn', `${action(facts)} failed`];
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
