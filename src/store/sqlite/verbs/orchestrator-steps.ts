/** Steps of an orchestrator on its workflow, and revoking or removing it: one transaction each. */
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
  type NewAction,
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
import type { Tx, TxSignals } from '../file/sqlite-connection.ts';
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
import { keepCall } from '../tables/runs.ts';
import {
  addHistory,
  deleteWorkflow,
  findTenure,
  findWorkflow,
  makeWorkflow,
  saveWorkflow,
  snapshotOf,
  type Workflow,
} from '../tables/workflows.ts';

/** Leases as a workflow needs them: within the transaction of its step. */
export interface TxLeases {
  /** Returns the current holder of a key, and its fence record; 0 for none. */
  look(
    tx: Tx,
    key: string,
  ): { readonly holder: string | null; readonly fence: number; readonly expiresInMs: number };
  /** Makes the successor the holder for a short window, and returns the new fence. */
  handOver(tx: Tx, handover: LeaseHandover): number;
  /** Revokes the lease, so that the holder's next renewal can tell. Returns the new fence. */
  free(tx: Tx, key: string): number;
}

export interface LeaseHandover {
  readonly key: string;
  readonly successor: string;
  readonly windowMs: number;
  /** The new fence is at least this. */
  readonly floor?: number | undefined;
}

/** The leases and signals of the store, as part of a workflow's transaction. */
export interface TxStores {
  readonly leases: TxLeases;
  readonly signals: TxSignals;
}

export function beginTenure(
  tx: Tx,
  stores: TxStores,
  id: string,
  request: BeginRequest,
): BeginReply {
  const { leaseId, fence, inbox, resume } = request;
  const lease = stores.leases.look(tx, workflowKey(id));
  // An absent fence record counts as equal.
  if (lease.holder !== leaseId || (lease.fence !== 0 && lease.fence !== fence))
    return { kind: 'not-held', leaseId: asLeaseId(lease.holder) };
  const workflow = findWorkflow(tx, id) ?? makeWorkflow(tx, id);
  const isAgain = workflow.leaseId === leaseId && workflow.phase === 'begun';
  // Another orchestrator uses the lease id of this one. A tenure has one orchestrator.
  if (isAgain && workflow.inbox !== inbox) return { kind: 'not-held', leaseId };
  if (isAgain) return { kind: 'begun', workflow: snapshotOf(workflow), reemitted: [], dropped: [] };
  const drops = workflow.phase === 'revoked' && !resume;
  enter(workflow, leaseId, 'begun');
  workflow.inbox = inbox;
  const actions = unresolvedActions(tx, workflow);
  const [reemitted, dropped] = drops ? [[], actions] : [actions, []];
  addHistory(tx, workflow, {
    kind: 'claimed',
    reemitted: reemitted.length,
    dropped: dropped.length,
  });
  const spared = takeOutOfLanes(tx, workflow, actions, drops ? 'nothing' : 'first');
  for (const action of dropped) dropAction(tx, workflow, action);
  const again = reemit(tx, stores, workflow, firstInLane(reemitted, spared), spared);
  saveWorkflow(tx, workflow);
  const snapshot = snapshotOf(workflow);
  return { kind: 'begun', workflow: snapshot, reemitted: again, dropped: dropped.map(plain) };
}

export function emitActions(tx: Tx, stores: TxStores, id: string, step: EmitStep): StepReply {
  const workflow = inTenure(tx, stores, id, step);
  if ('kind' in workflow) return workflow;
  const { epoch, unresolved } = workflow;
  const known = step.actions.filter((action) => isKnown(tx, workflow, action.id));
  if (known.length === step.actions.length) return finish(tx, workflow, step);
  if (epoch !== step.epoch || known.length > 0) return { kind: 'epoch', epoch };
  const following = unresolved + step.actions.length;
  const isTooMany = (unread: number) =>
    following > UNRESOLVED_MOST || unread + following > UNREAD_MOST;
  // Most workflows have few unread results. Only for the others are the read ones counted.
  if (isTooMany(workflow.unread)) {
    const unread = workflow.unread - countUnread(tx, workflow, step.read);
    if (isTooMany(unread)) return { kind: 'full', unresolved, unread };
  }
  for (const action of step.actions) {
    emitAction(tx, workflow, action);
    workflow.unresolved++;
    addHistory(tx, workflow, emittedEntry(action));
    if (action.step !== undefined) keepCall(tx, workflow, action.step);
  }
  wakeProcessors(tx, stores.signals, step.actions);
  return finish(tx, workflow, step);
}

export function updateState(
  tx: Tx,
  stores: TxStores,
  id: string,
  step: Step & { readonly state: string },
): StepReply {
  const workflow = inTenure(tx, stores, id, step);
  if ('kind' in workflow) return workflow;
  const { epoch, updatedEpoch, state } = workflow;
  const isLast = updatedEpoch === epoch && epoch === step.epoch + 1;
  if (isLast && state === step.state) return finish(tx, workflow, step);
  if (epoch !== step.epoch) return { kind: 'epoch', epoch };
  workflow.state = step.state;
  workflow.updatedEpoch = ++workflow.epoch;
  addHistory(tx, workflow, updatedTo(step.state));
  return finish(tx, workflow, step);
}

export function markRead(tx: Tx, stores: TxStores, id: string, step: Tenancy): StepReply {
  const workflow = inTenure(tx, stores, id, step);
  return 'kind' in workflow ? workflow : finish(tx, workflow, step);
}

export function unparkActions(tx: Tx, stores: TxStores, id: string, step: Step): StepReply {
  const workflow = inTenure(tx, stores, id, step);
  if ('kind' in workflow) return workflow;
  if (workflow.epoch !== step.epoch) return { kind: 'epoch', epoch: workflow.epoch };
  reemit(tx, stores, workflow, parkedActions(tx, workflow), new Set());
  return finish(tx, workflow, step);
}

export function handOff(tx: Tx, stores: TxStores, id: string, step: HandoffStep): HandoffReply {
  const workflow = inTenure(tx, stores, id, step);
  if ('kind' in workflow) return workflow;
  const { successor, windowMs } = step;
  const transferEpoch = workflow.epoch;
  if (transferEpoch !== step.epoch) return { kind: 'epoch', epoch: transferEpoch };
  parkAll(tx, workflow);
  workflow.epoch++;
  addHistory(tx, workflow, { kind: 'transferred', successor, transferEpoch });
  enter(workflow, successor, 'handed');
  finish(tx, workflow, step);
  const fence = stores.leases.handOver(tx, { key: workflowKey(id), successor, windowMs });
  return { kind: 'done', epoch: workflow.epoch, fence };
}

export function revokeTenure(
  tx: Tx,
  stores: TxStores,
  leaseId: string,
  reason: string,
): RevokeTenureReply {
  const workflow = findTenure(tx, leaseId);
  if (workflow === undefined) return { kind: 'not-found' };
  parkAll(tx, workflow);
  addHistory(tx, workflow, { kind: 'revoked', reason });
  enter(workflow, null, 'revoked');
  saveWorkflow(tx, workflow);
  stores.signals.send(tx, workflow.inbox, workflow.id);
  const key = workflowKey(workflow.id);
  const { holder } = stores.leases.look(tx, key);
  // An expired lease is revoked, too, so that its holder cannot put it back. A later holder keeps
  // its lease.
  if (holder === leaseId || holder === null) stores.leases.free(tx, key);
  return { kind: 'revoked', workflow: workflow.id, revokedAtMs: tx.wallMs };
}

export function removeWorkflow(
  tx: Tx,
  stores: TxStores,
  id: string,
): 'removed' | 'held' | 'absent' {
  const workflow = findWorkflow(tx, id);
  if (workflow === undefined) return 'absent';
  if (stores.leases.look(tx, workflowKey(id)).holder !== null) return 'held';
  const actions = unresolvedActions(tx, workflow);
  takeOutOfLanes(tx, workflow, actions, 'nothing');
  deleteWorkflow(tx, workflow);
  return 'removed';
}

/** Returns the workflow if this tenure has its lease and has begun. */
export function inTenure(
  tx: Tx,
  stores: TxStores,
  id: string,
  { leaseId }: Pick<Tenancy, 'leaseId'>,
): Workflow | NotHeld {
  const { holder } = stores.leases.look(tx, workflowKey(id));
  if (holder !== leaseId) return { kind: 'not-held', leaseId: asLeaseId(holder) };
  const workflow = findWorkflow(tx, id);
  if (workflow?.leaseId === leaseId) return workflow;
  return { kind: 'not-held', leaseId: workflow?.leaseId ?? null };
}

/** Emits actions again in the current tenure. An action in `kept` only gets a new epoch. */
function reemit(
  tx: Tx,
  { signals }: TxStores,
  workflow: Workflow,
  actions: readonly Action[],
  kept: ReadonlySet<string>,
): StoredAction[] {
  const emitted = actions.map((action) => {
    if (action.isParked) workflow.parked--;
    const again = kept.has(action.id)
      ? renumberAction(tx, workflow, action)
      : emitAction(tx, workflow, action);
    addHistory(tx, workflow, { kind: 'reemitted', actionId: action.id, target: action.target });
    return again;
  });
  wakeProcessors(tx, signals, emitted);
  return emitted;
}

function wakeProcessors(
  tx: Tx,
  signals: TxSignals,
  actions: readonly { readonly target: string }[],
): void {
  for (const target of new Set(actions.map((action) => action.target)))
    signals.send(tx, streamTopic(actionStream(target)), actionStream(target));
}

function emittedEntry({ id: actionId, target, about }: NewAction): HistoryEntry['what'] {
  if (about === undefined) return { kind: 'emitted', actionId, target };
  return { kind: 'emitted', actionId, target, type: about.type, payloadBytes: about.bytes };
}

/** The history keeps small states. For a large one it has the size. */
function updatedTo(json: string): HistoryEntry['what'] {
  const bytes = Buffer.byteLength(json);
  if (bytes <= HISTORY_STATE_MOST) return { kind: 'updated', state: JSON.parse(json) };
  return { kind: 'updated', state: null, omittedBytes: bytes };
}

/** Begins another tenure, or none. An update of the last tenure cannot be repeated. */
function enter(workflow: Workflow, leaseId: string | null, phase: Workflow['phase']): void {
  workflow.leaseId = leaseId;
  workflow.phase = phase;
  workflow.updatedEpoch = null;
}

/** Ends a step: marks results as read, and saves the workflow. */
function finish(tx: Tx, workflow: Workflow, { read }: Tenancy): StepReply & { kind: 'done' } {
  readResults(tx, workflow, read);
  saveWorkflow(tx, workflow);
  return { kind: 'done', epoch: workflow.epoch };
}

/**
 * Sorts actions by epoch, but an action that stays the first of its lane comes before the others
 * of its target. Otherwise a revived action would get a lower epoch than the claimed one, and run
 * later.
 */
function firstInLane(actions: readonly Action[], spared: ReadonlySet<string>): readonly Action[] {
  const firsts = new Map([...actions].reverse().map(({ target, epoch }) => [target, epoch]));
  // It ranks half an epoch before the first action of its target.
  const rank = ({ id, target, epoch }: Action) =>
    spared.has(id) ? (firsts.get(target) ?? epoch) - 0.5 : epoch;
  return [...actions].sort((a, b) => rank(a) - rank(b));
}

function dropAction(tx: Tx, workflow: Workflow, action: Action): void {
  resolveAction(tx, workflow, action);
  addHistory(tx, workflow, { kind: 'dropped', actionId: action.id, target: action.target });
}

/** Parks all actions that no processor has claimed, until they are emitted again. */
function parkAll(tx: Tx, workflow: Workflow): void {
  const actions = unresolvedActions(tx, workflow);
  const spared = takeOutOfLanes(tx, workflow, actions, 'held');
  for (const action of actions)
    if (!action.isParked && !spared.has(action.id)) parkAction(tx, workflow, action);
}

function isKnown(tx: Tx, workflow: Workflow, actionId: string): boolean {
  return (
    findAction(tx, workflow, actionId) !== undefined || findResult(tx, workflow, actionId) !== null
  );
}

/** A revoked key that may not be granted yet has no holder. */
function asLeaseId(holder: string | null): string | null {
  return holder === TOMBSTONE ? null : holder;
}
