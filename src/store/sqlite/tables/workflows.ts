/**
 * Rows of the tables `workflows` and `history`, for the verbs of orchestrators and processors,
 * inside their transactions. `port/workflow-store.ts` explains epoch, tenure and parked actions.
 */
import {
  HISTORY_KEPT,
  type HistoryEntry,
  type WorkflowSnapshot,
} from '../../port/workflow-store.ts';
import type { Tx } from '../file/sqlite-connection.ts';

/**
 * - `begun`: `leaseId` has the tenure; null in a new workflow that no orchestrator has claimed.
 * - `handed`: handed over to `leaseId`, whose tenure has yet to begin.
 * - `revoked`: no tenure.
 */
type Phase = 'begun' | 'handed' | 'revoked';

/** A workflow within one transaction. Changes count after `saveWorkflow`. */
export interface Workflow {
  /** The key of the row, by which other tables name the workflow. */
  readonly number: number;
  readonly id: string;
  leaseId: string | null;
  phase: Phase;
  epoch: number;
  /** The epoch after the last update of this tenure; null before the first. */
  updatedEpoch: number | null;
  /** The user's state, as JSON. */
  state: string;
  /** The topic on which its orchestrator hears of results; empty for none. */
  inbox: string;
  /** How many actions have no result. */
  unresolved: number;
  /** How many of these no processor has been given. */
  parked: number;
  /** How many results the orchestrator has not read. */
  unread: number;
  /** The newest result and event. Positions have no gaps, so old ones are deleted by position. */
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
  // Positions begin at the time, so that one of a removed workflow of this id does not fit this
  // one.
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
  const [number, id, leaseId, phase, epoch, updatedEpoch, state, inbox, ...rest] = row;
  const [unresolved, parked, unread, lastResult, lastEvent, createdAtMs, changedAtMs] = rest;
  const counts = { unresolved, parked, unread, lastResult, lastEvent };
  const standing = { leaseId, phase, epoch, updatedEpoch, state, inbox };
  return { number, id, ...standing, ...counts, createdAtMs, changedAtMs };
}
