/** Unresolved actions: each is in its target's stream, in the lane of its workflow, or parked. */
import { actionStream, type NewAction, type StoredAction } from '../../port/workflow-store.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import { addEntry, clearLane, ensureStream, findLane, firstJson, isHeld } from './lanes.ts';
import type { Workflow } from './workflows.ts';

export interface Action extends StoredAction {
  readonly isParked: boolean;
}

type Row = [
  id: string,
  target: string,
  priority: number,
  body: string,
  leaseId: string,
  epoch: number,
  parked: number,
];
const SELECT =
  'SELECT id, target, priority, body, lease_id, epoch, parked FROM actions WHERE workflow = ?';

export function findAction(
  { connection }: Tx,
  { number }: Workflow,
  actionId: string,
): Action | undefined {
  const row = connection.row<Row>(`${SELECT} AND id = ?`, number, actionId);
  return row && asAction(row);
}

/** Returns the unresolved actions by epoch. */
export function unresolvedActions({ connection }: Tx, { number }: Workflow): Action[] {
  return connection.rows<Row>(`${SELECT} ORDER BY epoch`, number).map(asAction);
}

export function parkedActions({ connection }: Tx, { number }: Workflow): Action[] {
  const sql = `${SELECT} AND parked = 1 ORDER BY epoch`;
  return connection.rows<Row>(sql, number).map(asAction);
}

/** Returns the epoch of the first unresolved action of a target; infinite for none. */
export function firstEpoch({ connection }: Tx, { number }: Workflow, target: string): number {
  const sql = 'SELECT min(epoch) FROM actions WHERE workflow = ? AND target = ?';
  return connection.row<[number | null]>(sql, number, target)?.[0] ?? Number.POSITIVE_INFINITY;
}

/** Emits an action with the workflow's epoch, and increments the epoch. */
export function emitAction(tx: Tx, workflow: Workflow, action: NewAction): StoredAction {
  const { id, target, priority } = action;
  const emitted = renumberAction(tx, workflow, action);
  const stream = ensureStream(tx, actionStream(target));
  const entry = { lane: workflow.id, priority, json: JSON.stringify(id), number: emitted.epoch };
  addEntry(tx, stream, entry);
  return emitted;
}

/** Gives an action the workflow's epoch and tenure, and leaves it in its lane. */
export function renumberAction(tx: Tx, workflow: Workflow, action: NewAction): StoredAction {
  const { id, target, priority, body } = action;
  const leaseId = workflow.leaseId ?? '';
  const epoch = workflow.epoch++;
  const sql = 'INSERT OR REPLACE INTO actions VALUES (?, ?, ?, ?, ?, ?, ?, 0)';
  tx.connection.run(sql, workflow.number, id, target, epoch, leaseId, priority, body);
  return { id, target, priority, body, leaseId, epoch };
}

export function parkAction(tx: Tx, workflow: Workflow, { id }: StoredAction): void {
  const sql = 'UPDATE actions SET parked = 1 WHERE workflow = ? AND id = ?';
  tx.connection.run(sql, workflow.number, id);
  workflow.parked++;
}

/** Makes a dead action unresolved and parked. Returns false if it is unresolved already. */
export function reviveAction(tx: Tx, workflow: Workflow, action: StoredAction): boolean {
  const { id, target, epoch, leaseId, priority, body } = action;
  const sql = 'INSERT OR IGNORE INTO actions VALUES (?, ?, ?, ?, ?, ?, ?, 1)';
  const made = tx.connection.run(sql, workflow.number, id, target, epoch, leaseId, priority, body);
  workflow.unresolved += made;
  workflow.parked += made;
  return made === 1;
}

export function resolveAction(tx: Tx, workflow: Workflow, { id, isParked }: Action): void {
  tx.connection.run('DELETE FROM actions WHERE workflow = ? AND id = ?', workflow.number, id);
  workflow.unresolved--;
  if (isParked) workflow.parked--;
}

/**
 * Which actions stay in their lane: none; the claimed ones; or also the first of a lane that will
 * be first again, so that it keeps its place, its retry time and its tries.
 */
type Spared = 'nothing' | 'held' | 'first';

/** Removes actions, sorted by epoch, from their lanes. Returns the ids of those that stay. */
export function takeOutOfLanes(
  tx: Tx,
  workflow: Workflow,
  actions: readonly Action[],
  spared: Spared,
): ReadonlySet<string> {
  const ids = new Set<string>();
  const firsts = new Map([...actions].reverse().map(({ target, id }) => [target, id]));
  for (const [target, first] of firsts) {
    const lane = findLane(tx, ensureStream(tx, actionStream(target)), workflow.id);
    if (lane === undefined) continue;
    const id: string = JSON.parse(firstJson(tx, lane));
    const staysFirst = isHeld(lane) || (spared === 'first' && id === first);
    const isSpared = spared !== 'nothing' && staysFirst;
    if (isSpared) ids.add(id);
    clearLane(tx, lane, isSpared);
  }
  return ids;
}

function asAction([id, target, priority, body, leaseId, epoch, parked]: Row): Action {
  return { id, target, priority, body, leaseId, epoch, isParked: parked === 1 };
}

/** Returns the action without the fields of its row. */
export function plain({ id, target, priority, body, leaseId, epoch }: StoredAction): StoredAction {
  return { id, target, priority, body, leaseId, epoch };
}
