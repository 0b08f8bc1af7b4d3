/** Steps of a processor on the actions of its target: one transaction each. */
import type { HeldReply } from '../../port/stream-store.ts';
import {
  type ActionRef,
  actionStream,
  type HeldAction,
  historyError,
  type ReserveCall,
  type Settlement,
  type StoredAction,
  type TakeCall,
  type Taken,
} from '../../port/workflow-store.ts';
import { positionOf } from '../../values.ts';
import type { Tx, TxSignals } from '../file/sqlite-connection.ts';
import {
  type Action,
  findAction,
  firstEpoch,
  parkAction,
  plain,
  resolveAction,
  reviveAction,
} from '../tables/actions.ts';
import {
  advance,
  findLane,
  findStream,
  firstJson,
  giveOut,
  heldLane,
  isHeld,
  type Lane,
  lanesInTurn,
  lengthenClaim,
  putAside,
  rest,
} from '../tables/lanes.ts';
import { addResult, disownResult, findResult } from '../tables/results.ts';
import { addHistory, findWorkflow, saveWorkflow, type Workflow } from '../tables/workflows.ts';

export function takeActions(tx: Tx, target: string, call: TakeCall): Taken[] {
  const stream = findStream(tx, actionStream(target));
  if (stream === null) return [];
  return lanesInTurn(tx, stream, call.most).flatMap((lane): Taken[] => {
    const workflow = findWorkflow(tx, lane.lane);
    const action = workflow && firstAction(tx, workflow, lane);
    if (workflow === undefined || action === undefined) {
      putAside(tx, lane, firstJson(tx, lane), 'no action of a workflow');
      advance(tx, lane);
      return [];
    }
    if (action.leaseId === workflow.leaseId)
      return [reserveFirst(tx, workflow, lane, action, call)];
    // The action's tenure has ended. The next tenure emits it again when it begins.
    advance(tx, lane);
    parkAction(tx, workflow, action);
    saveWorkflow(tx, workflow);
    return [wrongLease(workflow.id, action, workflow.leaseId)];
  });
}

export function reserveAction(tx: Tx, target: string, ref: ActionRef, call: ReserveCall): Taken {
  const workflow = findWorkflow(tx, ref.workflow);
  if (workflow === undefined || workflow.leaseId !== ref.leaseId)
    return wrongLease(ref.workflow, ref, workflow?.leaseId ?? null);
  const result = findResult(tx, workflow, ref.id);
  if (result !== null) return { kind: 'replay', result };
  const refuse = (kind: 'stale' | 'future', current: number): Taken => {
    return { kind, workflow: ref.workflow, id: ref.id, epoch: ref.epoch, current };
  };
  if (ref.epoch >= workflow.epoch) return refuse('future', workflow.epoch);
  const last = lastTaken(tx, workflow, target);
  const action = findAction(tx, workflow, ref.id);
  if (action?.target !== target || action.epoch !== ref.epoch)
    return refuse('stale', last?.epoch ?? workflow.epoch);
  const stream = findStream(tx, actionStream(target));
  const lane = stream === null ? undefined : findLane(tx, stream, workflow.id);
  const first = lane && firstAction(tx, workflow, lane);
  const turn = first?.id === action.id ? lane : undefined;
  if (turn !== undefined && isInHands(tx, turn)) return refuse('stale', ref.epoch);
  const applied = call.strictness === 'strict' ? firstEpoch(tx, workflow, target) : ref.epoch;
  if (applied < ref.epoch) return refuse('future', applied);
  // A parked action is not in its lane. It is emitted again, with another epoch.
  if (turn === undefined) return refuse('future', first?.epoch ?? workflow.epoch);
  if (last !== undefined && ref.epoch <= last.epoch && last.actionId !== ref.id)
    return refuse('stale', last.epoch);
  if (call.claimMs === 0) return reserved(workflow, turn, action, 0);
  return reserveFirst(tx, workflow, turn, action, call);
}

export function extendClaim(tx: Tx, target: string, held: HeldAction, claimMs: number): HeldReply {
  const lane = laneInHands(tx, target, held);
  if (lane === undefined) return 'gone';
  lengthenClaim(tx, lane, claimMs);
  return 'done';
}

/** `json` is the text of the settlement's value. */
export function settleAction(
  tx: Tx,
  signals: TxSignals,
  target: string,
  settlement: Settlement,
  json: string,
): HeldReply {
  const lane = laneInHands(tx, target, settlement);
  if (lane === undefined) return 'gone';
  const workflow = findWorkflow(tx, settlement.workflow);
  if (workflow === undefined) return 'gone';
  const action = firstAction(tx, workflow, lane);
  if (action === undefined) return 'gone';
  if (settlement.outcome === 'retry') {
    rest(tx, lane, settlement.afterMs);
    const error = historyError(settlement);
    if (error === '') return 'done';
    const tried = { actionId: action.id, target, tries: lane.tries, error };
    addHistory(tx, workflow, { kind: 'retried', ...tried });
    saveWorkflow(tx, workflow);
    return 'done';
  }
  const { outcome } = settlement;
  const { id: actionId, epoch } = action;
  resolveAction(tx, workflow, action);
  addResult(tx, workflow, { actionId, target, epoch, outcome, json });
  if (outcome === 'dead') putAside(tx, lane, JSON.stringify(plain(action)), settlement.reason);
  advance(tx, lane);
  const error = historyError(settlement);
  const failure = error === '' ? {} : { tries: lane.tries, error };
  addHistory(tx, workflow, { kind: 'settled', actionId, target, outcome, ...failure });
  saveWorkflow(tx, workflow);
  signals.send(tx, workflow.inbox, workflow.id);
  return 'done';
}

export function reviveDead(
  tx: Tx,
  signals: TxSignals,
  target: string,
  deadId: string,
): { kind: 'revived'; workflow: string } | { kind: 'absent' } {
  const number = positionOf(deadId);
  const [lane, json] =
    tx.connection.row<[string, string]>(
      'SELECT lane, json FROM dead WHERE number = ? AND stream = ?',
      number,
      findStream(tx, actionStream(target)),
    ) ?? [];
  if (lane === undefined || json === undefined) return { kind: 'absent' };
  const workflow = findWorkflow(tx, lane);
  const action = JSON.parse(json) as StoredAction;
  if (workflow === undefined || !reviveAction(tx, workflow, action)) return { kind: 'absent' };
  tx.connection.run('DELETE FROM dead WHERE number = ?', number);
  disownResult(tx, workflow, action.id);
  addHistory(tx, workflow, { kind: 'revived', actionId: action.id, target });
  saveWorkflow(tx, workflow);
  signals.send(tx, workflow.inbox, workflow.id);
  return { kind: 'revived', workflow: workflow.id };
}

function reserveFirst(
  tx: Tx,
  workflow: Workflow,
  lane: Lane,
  action: Action,
  call: { readonly consumer: string; readonly claimMs: number },
): Taken {
  const { id, target, epoch } = action;
  const fence = giveOut(tx, lane, call);
  const sql = `INSERT INTO taken VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET epoch = max(epoch, excluded.epoch), action = excluded.action`;
  tx.connection.run(sql, workflow.number, target, epoch, id);
  return reserved(workflow, lane, action, fence);
}

function reserved(workflow: Workflow, lane: Lane, action: Action, fence: number): Taken {
  const tries = lane.tries + 1;
  return { kind: 'reserved', workflow: workflow.id, action: plain(action), fence, tries };
}

/** Returns the last action of the workflow that this target has taken. */
function lastTaken(
  { connection }: Tx,
  { number }: Workflow,
  target: string,
): { epoch: number; actionId: string } | undefined {
  const sql = 'SELECT epoch, action FROM taken WHERE workflow = ? AND target = ?';
  const row = connection.row<[number, string]>(sql, number, target);
  return row && { epoch: row[0], actionId: row[1] };
}

function firstAction(tx: Tx, workflow: Workflow, lane: Lane): Action | undefined {
  const id: unknown = JSON.parse(firstJson(tx, lane));
  return typeof id === 'string' ? findAction(tx, workflow, id) : undefined;
}

/** Whether the claim on the lane's first entry has not expired. */
function isInHands({ nowMs }: Tx, lane: Lane): boolean {
  return isHeld(lane) && (lane.dueMs ?? 0) > nowMs;
}

function laneInHands(tx: Tx, target: string, { workflow, fence }: HeldAction): Lane | undefined {
  const stream = findStream(tx, actionStream(target));
  return stream === null ? undefined : heldLane(tx, stream, workflow, fence);
}

function wrongLease(
  workflow: string,
  { id, leaseId }: { readonly id: string; readonly leaseId: string },
  expected: string | null,
): Taken {
  return { kind: 'lease', workflow, id, received: leaseId, expected };
}
