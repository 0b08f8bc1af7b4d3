import {
  HISTORY_KEPT,
  type HistoryEntry,
  type WorkflowSnapshot,
} from '../../port/workflow-store.ts';
import type { Tx } from '../file/sqlite-connection.ts';

/**
 * - `begun`: `leaseId` has the tenure.
 * - `handed`: handed over to `leaseId`, whose tenure has yet to begin.
 * - `revoked`: no tenure.
 */
type Phase = 'begun' | 'handed' | 'revoked';

/** A workflow within one transaction. Changes count after `saveWorkflow`. */
export interface Workflow {
  readonly number: number;
  readonly id: string;
  leaseId: string | null;
  phase: Phase;
  epoch: number;
  /** The epoch after the last update of this tenure; null before the first. */
  updatedEpoch: number | null;
  /** As JSON. */
  state: string;
  inbox: string;
  unresolved: number;
  parked: number;
  unread: number;
  /** The numbers of results and events have no gaps, so a number shows which ones are too old. */
  lastResult: number;
  lastEvent: number;
  readonly createdAtMs: number;
  changedAtMs: number;
}

type Row = [
  number: number,
  id: string,
  leaseId: string | null,
  phase: Phase,
  epoch: number,
  updatedEpoch: number | null,
  state: string,
  inbox: string,
  unresolved: number,
  parked: number,
  unread: number,
  lastResult: number,
  lastEvent: number,
  created: number,
  changed: number,
];
const SELECT = `
SELECT number, id, lease_id, phase, epoch, updated_epoch, state, inbox, unresolved, parked, unread, last_result, last_event, created, changed
FROM workflows WHERE scope = ?`;

export function findWorkflow({ connection, scope }: Tx, id: string): Workflow | undefined {
  const row = connection.row<Row>(`${SELECT} AND id = ?`, scope, id);
  return row && asWorkflow(row);
}

export function findTenure({ connection, scope }: Tx, leaseId: string): Workflow | undefined {
  const row = connection.row<Row>(`${SELECT} AND lease_id = ?`, scope, leaseId);
  return row && asWorkflow(row);
}

export function makeWorkflow(tx: Tx, id: string): Workflow {
  // Made from the time: a position in a removed workflow of this id is no position in this one.
  const origin = Math.floor(tx.wallMs * 1_000);
  const sql = `INSERT INTO workflows VALUES (NULL, ?, ?, NULL, 'begun', 0, NULL, '"initialized"', '', 0, 0, 0, ?, ?, ?, ?)`;
  tx.connection.run(sql, tx.scope, id, origin, origin, tx.wallMs, tx.wallMs);
  return findWorkflow(tx, id) as Workflow;
}

export function saveWorkflow({ connection, wallMs }: Tx, workflow: Workflow): void {
  workflow.changedAtMs = wallMs;
  const { leaseId, phase, epoch, updatedEpoch, state, inbox, number } = workflow;
  const { unresolved, parked, unread, lastResult, lastEvent } = workflow;
  const tenure = [leaseId, phase, epoch, updatedEpoch, state, inbox];
  const counts = [unresolved, parked, unread, lastResult, lastEvent];
  const sql = `UPDATE workflows SET lease_id = ?, phase = ?, epoch = ?, updated_epoch = ?, state = ?, inbox = ?,
     unresolved = ?, parked = ?, unread = ?, last_result = ?, last_event = ?, changed = ? WHERE number = ?`;
  connection.run(sql, ...tenure, ...counts, wallMs, number);
}

/** Removes a workflow and its history. The caller removes its entries from streams. */
export function deleteWorkflow({ connection }: Tx, { number }: Workflow): void {
  for (const table of [
    'actions',
    'taken',
    'results',
    'history',
    'runs',
    'run_steps',
    'run_signals',
  ])
    connection.run(`DELETE FROM ${table} WHERE workflow = ?`, number);
  connection.run('DELETE FROM workflows WHERE number = ?', number);
}

export function snapshotOf(workflow: Workflow): WorkflowSnapshot {
  const { id, leaseId, phase, epoch, state, unresolved, parked, unread } = workflow;
  const { createdAtMs, changedAtMs } = workflow;
  const inbox = phase === 'begun' ? workflow.inbox : null;
  const counts = { unresolved, parked, unread, createdAtMs, changedAtMs };
  return { id, leaseId, inbox, epoch, state: JSON.parse(state), ...counts };
}

/** Adds an event to the history, with the workflow's current epoch and tenure. */
export function addHistory(tx: Tx, workflow: Workflow, what: HistoryEntry['what']): void {
  const { number, epoch, leaseId } = workflow;
  const position = ++workflow.lastEvent;
  const insertion = 'INSERT INTO history VALUES (?, ?, ?, ?, ?, ?)';
  tx.connection.run(insertion, number, position, tx.wallMs, epoch, leaseId, JSON.stringify(what));
  const sql = 'DELETE FROM history WHERE workflow = ? AND position <= ?';
  tx.connection.run(sql, number, position - HISTORY_KEPT);
}

function asWorkflow(row: Row): Workflow {
  const [number, id, leaseId, phase, epoch, updatedEpoch, state, inbox] = row;
  const [, , , , , , , , unresolved, parked, unread, lastResult, lastEvent] = row;
  const [createdAtMs, changedAtMs] = [row[13], row[14]];
  const counts = { unresolved, parked, unread, lastResult, lastEvent };
  const standing = { leaseId, phase, epoch, updatedEpoch, state, inbox };
  return { number, id, ...standing, ...counts, createdAtMs, changedAtMs };
}
