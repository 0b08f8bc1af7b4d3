import { RESULTS_KEPT, type StoredResult } from '../../port/workflow-store.ts';
import { positionOf } from '../../values.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import type { Workflow } from './workflows.ts';

type Row = [
  position: number,
  action: string,
  target: string,
  epoch: number,
  outcome: StoredResult['outcome'],
  json: string,
  at: number,
];
const COLUMNS = 'position, action, target, epoch, outcome, json, at';
// Both name their index: SQLite would otherwise read all results of the workflow in order.
const OF_ACTION = `SELECT ${COLUMNS} FROM results INDEXED BY results_of_action
WHERE workflow = ? AND action = ? AND known = 1`;
const UNREAD = `SELECT ${COLUMNS} FROM results INDEXED BY results_unread
WHERE workflow = ? AND unread = 1 AND position > ? ORDER BY position LIMIT ?`;

export interface NewResult {
  readonly actionId: string;
  readonly target: string;
  readonly epoch: number;
  readonly outcome: StoredResult['outcome'];
  readonly json: string;
}

export function addResult(tx: Tx, workflow: Workflow, result: NewResult): void {
  const { connection, wallMs } = tx;
  const { actionId, target, epoch, outcome, json } = result;
  const { number } = workflow;
  const position = ++workflow.lastResult;
  const sql = 'INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, 1)';
  connection.run(sql, number, position, actionId, target, epoch, outcome, json, wallMs);
  workflow.unread++;
  forgetIfOld(tx, workflow, position - RESULTS_KEPT);
}

/** Marks results as read. An unknown position changes nothing. */
export function readResults(tx: Tx, workflow: Workflow, positions: readonly string[]): void {
  for (const position of positions) {
    const number = positionOf(position);
    const sql = 'UPDATE results SET unread = 0 WHERE workflow = ? AND position = ? AND unread = 1';
    workflow.unread -= tx.connection.run(sql, workflow.number, number);
    forgetIfOld(tx, workflow, number);
  }
}

/** Returns how many of these positions are of unread results. */
export function countUnread(
  { connection }: Tx,
  { number }: Workflow,
  positions: readonly string[],
): number {
  const sql = 'SELECT 1 FROM results WHERE workflow = ? AND position = ? AND unread = 1';
  const distinct = [...new Set(positions.map(positionOf))];
  return distinct.filter((position) => connection.row(sql, number, position) !== undefined).length;
}

/** Returns the result of a resolved action, or null. */
export function findResult(
  { connection }: Tx,
  { number }: Workflow,
  actionId: string,
): StoredResult | null {
  const row = connection.row<Row>(OF_ACTION, number, actionId);
  return row === undefined ? null : asResult(row);
}

/** An action is unresolved again: its unread result can be read, but `findResult` skips it. */
export function disownResult({ connection }: Tx, { number }: Workflow, actionId: string): void {
  const sql = 'UPDATE results SET known = 0 WHERE workflow = ? AND action = ? AND known = 1';
  connection.run(sql, number, actionId);
}

/** Returns one more than `most`, to see whether there is more. */
export function unreadResults(
  { connection }: Tx,
  { number }: Workflow,
  after: number,
  most: number,
): StoredResult[] {
  return connection.rows<Row>(UNREAD, number, after, most + 1).map(asResult);
}

/** Removes a result that was read and is not among the last. Checks each result once or twice. */
function forgetIfOld({ connection }: Tx, { number, lastResult }: Workflow, position: number): void {
  if (position > lastResult - RESULTS_KEPT) return;
  const sql = 'DELETE FROM results WHERE workflow = ? AND position = ? AND unread = 0';
  connection.run(sql, number, position);
}

function asResult([position, actionId, target, epoch, outcome, json, atMs]: Row): StoredResult {
  const value: unknown = JSON.parse(json);
  return { position: String(position), actionId, target, epoch, outcome, value, atMs };
}
