/** What an orchestrator, or somebody against its will, does with a workflow: each a step within one transaction. */
import { TOMBSTONE } from '../../port/lease-store.ts';
import { streamTopic } from '../../port/stream-store.ts';
import {
  actionStream,
  type BeginReply,
  type BeginRequest,
  type EmitStep,
  type HandoffReply,
  type HandoffStep,
  HISTORY_STATE_MOST,
  type HistoryEntry,
  type NotHeld,
  type RevokeTenureReply,
  type Step,
  type StepReply,
  type StoredAction,
  type Tenancy,
  UNREAD_MOST,
  UNRESOLVED_MOST,
  workflowKey,
} from '../../port/workflow-store.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import {
  type Action,
  emitAction,
  findAction,
  parkAction,
  parkedActions,
  plain,
  renumberAction,
  resolveAction,
  takeOutOfLanes,
  unresolvedActions,
} from '../tables/actions.ts';
import { countUnread, findResult, readResults } from '../tables/results.ts';
import type { TenureLeases } from '../tables/tenure-leases.ts';
import {
  deleteWorkflow,
  findTenure,
  findWorkflow,
  makeWorkflow,
  note,
  saveWorkflow,
  snapshotOf,
  type Workflow,
} from '../tables/workflows.ts';
import type { WorkParts } from './streams.ts';

export interface WorkflowParts extends WorkParts {
  readonly leases: TenureLeases;
}

export function begin(tx: Tx, parts: WorkflowParts, id: string, request: BeginRequest): BeginReply {
  const { leaseId, fence, inbox, resume } = request;
  const { scope, leases } = parts;
  const lease = leases.look(tx, workflowKey(id));
  // An absent fence record is equal, as everywhere.
  if (lease.holder !== leaseId || (lease.fence !== 0 && lease.fence !== fence))
    return { kind: 'not-held', leaseId: asLeaseId(lease.holder) };
  const workflow = findWorkflow(tx, scope, id) ?? makeWorkflow(tx, scope, id);
  const isAgain = workflow.leaseId === leaseId && workflow.phase === 'begun';
  // Another orchestrator with the lease of this one: a tenure is one's alone.
  if (isAgain && workflow.inbox !== inbox) return { kind: 'not-held', leaseId };
  if (isAgain) return { kind: 'begun', workflow: snapshotOf(workflow), reemitted: [], dropped: [] };
  const drops = workflow.phase === 'revoked' && !resume;
  enter(workflow, leaseId, 'begun');
  workflow.inbox = inbox;
  const actions = unresolvedActions(tx, workflow);
  const [reemitted, dropped] = drops ? [[], actions] : [actions, []];
  note(tx, workflow, {
    kind: 'claimed',
    reemitted: reemitted.length,
    dropped: dropped.length,
  });
  const spared = takeOutOfLanes(tx, scope, workflow, actions, drops ? 'nothing' : 'first');
  for (const action of dropped) dropAction(tx, workflow, action);
  const again = reemit(tx, parts, workflow, firstInLane(reemitted, spared), spared);
  saveWorkflow(tx, workflow);
  const snapshot = snapshotOf(workflow);
  return { kind: 'begun', workflow: snapshot, reemitted: again, dropped: dropped.map(plain) };
}

export function emit(tx: Tx, parts: WorkflowParts, id: string, step: EmitStep): StepReply {
  const workflow = inTenure(tx, parts, id, step);
  if ('kind' in workflow) return workflow;
  const { epoch, unresolved } = workflow;
  const known = step.actions.filter((action) => isKnown(tx, workflow, action.id));
  if (known.length === step.actions.length) return finish(tx, workflow, step);
  if (epoch !== step.epoch || known.length > 0) return { kind: 'epoch', epoch };
  const following = unresolved + step.actions.length;
  const isTooMany = (unread: number) =>
    following > UNRESOLVED_MOST || unread + following > UNREAD_MOST;
  // Most workflows have few unread results: only the others are counted without those that have been read.
  if (isTooMany(workflow.unread)) {
    const unread = workflow.unread - countUnread(tx, workflow, step.read);
    if (isTooMany(unread)) return { kind: 'full', unresolved, unread };
  }
  for (const action of step.actions) {
    emitAction(tx, parts.scope, workflow, action);
    workflow.unresolved++;
    note(tx, workflow, { kind: 'emitted', actionId: action.id, target: action.target });
  }
  tellTargets(tx, parts, step.actions);
  return finish(tx, workflow, step);
}

export function update(
  tx: Tx,
  parts: WorkflowParts,
  id: string,
  step: Step & { readonly state: string },
): StepReply {
  const workflow = inTenure(tx, parts, id, step);
  if ('kind' in workflow) return workflow;
  const { epoch, updatedEpoch, state } = workflow;
  const isLast = updatedEpoch === epoch && epoch === step.epoch + 1;
  if (isLast && state === step.state) return finish(tx, workflow, step);
  if (epoch !== step.epoch) return { kind: 'epoch', epoch };
  workflow.state = step.state;
  workflow.updatedEpoch = ++workflow.epoch;
  note(tx, workflow, updatedTo(step.state));
  return finish(tx, workflow, step);
}

/** The history keeps small states only; of the others it says how large they were. */
function updatedTo(json: string): HistoryEntry['what'] {
  const bytes = Buffer.byteLength(json);
  if (bytes <= HISTORY_STATE_MOST) return { kind: 'updated', state: JSON.parse(json) };
  return { kind: 'updated', state: null, omittedBytes: bytes };
}

export function markRead(tx: Tx, parts: WorkflowParts, id: string, step: Tenancy): StepReply {
  const workflow = inTenure(tx, parts, id, step);
  return 'kind' in workflow ? workflow : finish(tx, workflow, step);
}

export function unpark(tx: Tx, parts: WorkflowParts, id: string, step: Step): StepReply {
  const workflow = inTenure(tx, parts, id, step);
  if ('kind' in workflow) return workflow;
  if (workflow.epoch !== step.epoch) return { kind: 'epoch', epoch: workflow.epoch };
  reemit(tx, parts, workflow, parkedActions(tx, workflow), new Set());
  return finish(tx, workflow, step);
}

export function handoff(tx: Tx, parts: WorkflowParts, id: string, step: HandoffStep): HandoffReply {
  const workflow = inTenure(tx, parts, id, step);
  if ('kind' in workflow) return workflow;
  const { successor, windowMs } = step;
  const transferEpoch = workflow.epoch;
  if (transferEpoch !== step.epoch) return { kind: 'epoch', epoch: transferEpoch };
  parkAll(tx, parts.scope, workflow);
  workflow.epoch++;
  note(tx, workflow, { kind: 'transferred', successor, transferEpoch });
  enter(workflow, successor, 'handed');
  finish(tx, workflow, step);
  const fence = parts.leases.handOver(tx, { key: workflowKey(id), successor, windowMs });
  return { kind: 'done', epoch: workflow.epoch, fence };
}

export function revoke(
  tx: Tx,
  parts: WorkflowParts,
  leaseId: string,
  reason: string,
): RevokeTenureReply {
  const workflow = findTenure(tx, parts.scope, leaseId);
  if (workflow === undefined) return { kind: 'not-found' };
  parkAll(tx, parts.scope, workflow);
  note(tx, workflow, { kind: 'revoked', reason });
  enter(workflow, null, 'revoked');
  saveWorkflow(tx, workflow);
  parts.tell(tx, workflow.inbox, workflow.id);
  const key = workflowKey(workflow.id);
  const { holder } = parts.leases.look(tx, key);
  // Also where the lease has run out: the mark keeps its holder from putting it back. Who has it by now has done nothing wrong.
  if (holder === leaseId || holder === null) parts.leases.free(tx, key);
  return { kind: 'revoked', workflow: workflow.id, revokedAtMs: tx.wallMs };
}

export function remove(
  tx: Tx,
  { scope, leases }: WorkflowParts,
  id: string,
): 'removed' | 'held' | 'absent' {
  const workflow = findWorkflow(tx, scope, id);
  if (workflow === undefined) return 'absent';
  if (leases.look(tx, workflowKey(id)).holder !== null) return 'held';
  const actions = unresolvedActions(tx, workflow);
  takeOutOfLanes(tx, scope, workflow, actions, 'nothing');
  deleteWorkflow(tx, workflow);
  return 'removed';
}

/** The workflow, if the store names this tenure for its lease, and it is in it. */
function inTenure(
  tx: Tx,
  { scope, leases }: WorkflowParts,
  id: string,
  { leaseId }: Tenancy,
): Workflow | NotHeld {
  const { holder } = leases.look(tx, workflowKey(id));
  if (holder !== leaseId) return { kind: 'not-held', leaseId: asLeaseId(holder) };
  const workflow = findWorkflow(tx, scope, id);
  if (workflow?.leaseId === leaseId) return workflow;
  return { kind: 'not-held', leaseId: workflow?.leaseId ?? null };
}

/** Another tenure, or none: what the last one has updated can not be sent again. */
function enter(workflow: Workflow, leaseId: string | null, phase: Workflow['phase']): void {
  workflow.leaseId = leaseId;
  workflow.phase = phase;
  workflow.updatedEpoch = null;
}

/** The end of a step that was taken. */
function finish(tx: Tx, workflow: Workflow, { read }: Tenancy): StepReply & { kind: 'done' } {
  readResults(tx, workflow, read);
  saveWorkflow(tx, workflow);
  return { kind: 'done', epoch: workflow.epoch };
}

/** Emits actions again, in the tenure that the workflow is in now; those that have kept their place only get their new epoch. */
function reemit(
  tx: Tx,
  parts: WorkflowParts,
  workflow: Workflow,
  actions: readonly Action[],
  kept: ReadonlySet<string>,
): StoredAction[] {
  const emitted = actions.map((action) => {
    if (action.isParked) workflow.parked--;
    const again = kept.has(action.id)
      ? renumberAction(tx, workflow, action)
      : emitAction(tx, parts.scope, workflow, action);
    note(tx, workflow, { kind: 'reemitted', actionId: action.id, target: action.target });
    return again;
  });
  tellTargets(tx, parts, emitted);
  return emitted;
}

/**
 * Actions in the order of their epochs, but one that stays the first of its lane goes before the others of its target. Otherwise a
 * revived action would have a lower epoch than the one in a processor's hands, and be given out after it.
 */
function firstInLane(actions: readonly Action[], spared: ReadonlySet<string>): readonly Action[] {
  const firsts = new Map([...actions].reverse().map(({ target, epoch }) => [target, epoch]));
  // Half an epoch before the first of its target.
  const rank = ({ id, target, epoch }: Action) =>
    spared.has(id) ? (firsts.get(target) ?? epoch) - 0.5 : epoch;
  return [...actions].sort((a, b) => rank(a) - rank(b));
}

function dropAction(tx: Tx, workflow: Workflow, action: Action): void {
  resolveAction(tx, workflow, action);
  note(tx, workflow, { kind: 'dropped', actionId: action.id, target: action.target });
}

/** What is in nobody's hands is given to nobody until it is emitted anew. */
function parkAll(tx: Tx, scope: string, workflow: Workflow): void {
  const actions = unresolvedActions(tx, workflow);
  const spared = takeOutOfLanes(tx, scope, workflow, actions, 'held');
  for (const action of actions)
    if (!action.isParked && !spared.has(action.id)) parkAction(tx, workflow, action);
}

function isKnown(tx: Tx, workflow: Workflow, actionId: string): boolean {
  return (
    findAction(tx, workflow, actionId) !== undefined || findResult(tx, workflow, actionId) !== null
  );
}

function tellTargets(
  tx: Tx,
  { tell }: WorkflowParts,
  actions: readonly { readonly target: string }[],
): void {
  for (const target of new Set(actions.map((action) => action.target)))
    tell(tx, streamTopic(actionStream(target)), actionStream(target));
}

/** A key that was revoked and may not be granted yet is nobody's. */
function asLeaseId(holder: string | null): string | null {
  return holder === TOMBSTONE ? null : holder;
}
