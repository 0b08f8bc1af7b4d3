/** Runs of workflow functions, with the steps and signals of a workflow. */
import type { RunPhase, RunSnapshot, StoredSignal, StoredStep } from '../../port/run-store.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import type { Workflow } from './workflows.ts';

/** A run within one transaction. Changes count after `saveRun`. */
export interface Run {
  readonly workflow: number;
  readonly function: string | null;
  phase: RunPhase;
  /** On the wall clock; null if no time is set. */
  dueMs: number | null;
  tries: number;
  /** As JSON. */
  waits: string;
  /** As JSON. */
  value: string;
  steps: number;
  signals: number;
  bytes: number;
}

type Row = [
  workflow: number,
  name: string | null,
  phase: RunPhase,
  due: number | null,
  tries: number,
  waits: string,
  value: string,
  steps: number,
  signals: number,
  bytes: number,
];
const COLUMNS = 'workflow, function, phase, due, tries, waits, value, steps, signals, bytes';

export function findRun({ connection }: Tx, { number }: Workflow): Run | undefined {
  const row = connection.row<Row>(`SELECT ${COLUMNS} FROM runs WHERE workflow = ?`, number);
  if (row === undefined) return undefined;
  const [workflow, name, phase, dueMs, tries, waits, value, steps, signals, bytes] = row;
  const texts = { waits, value };
  return { workflow, function: name, phase, dueMs, tries, ...texts, steps, signals, bytes };
}

/** `name` is null for a workflow that no function runs, but that has a step or a signal. */
export function makeRun(tx: Tx, workflow: Workflow, name: string | null, input: string): Run {
  const sql = `INSERT INTO runs VALUES (?, ?, ?, 'running', ?, 0, 'null', 'null', ?, 0, 0, 0)`;
  const dueMs = name === null ? null : tx.wallMs;
  tx.connection.run(sql, workflow.number, tx.scope, name, dueMs, input);
  return findRun(tx, workflow) as Run;
}

export function ensureRun(tx: Tx, workflow: Workflow): Run {
  return findRun(tx, workflow) ?? makeRun(tx, workflow, null, 'null');
}

export function saveRun({ connection }: Tx, run: Run): void {
  const { phase, dueMs, tries, waits, value, steps, signals, bytes, workflow } = run;
  const sql = `UPDATE runs SET phase = ?, due = ?, tries = ?, waits = ?, value = ?, steps = ?, signals = ?, bytes = ?
     WHERE workflow = ?`;
  connection.run(sql, phase, dueMs, tries, waits, value, steps, signals, bytes, workflow);
}

export function inputOf({ connection }: Tx, { number }: Workflow): string {
  const sql = 'SELECT input FROM runs WHERE workflow = ?';
  return connection.row<[string]>(sql, number)?.[0] ?? 'null';
}

/** The snapshot of a run; null if no function runs the workflow. */
export function runSnapshot({ wallMs }: Tx, run: Run | undefined): RunSnapshot | null {
  if (run === undefined || run.function === null) return null;
  const { phase, tries, dueMs } = run;
  const dueInMs = dueMs === null || phase === 'running' ? null : Math.max(0, dueMs - wallMs);
  const [waits, value] = [JSON.parse(run.waits) as unknown, JSON.parse(run.value) as unknown];
  return { function: run.function, phase, tries, waits, value, dueInMs };
}

/** A step of a workflow, and its JSON. */
export interface StepRow {
  readonly isDone: boolean;
  readonly atMs: number;
  readonly bytes: number;
}

export function findStep(
  { connection }: Tx,
  { number }: Workflow,
  name: string,
): StepRow | undefined {
  const sql = 'SELECT done, at, json FROM run_steps WHERE workflow = ? AND name = ?';
  const row = connection.row<[number, number, string]>(sql, number, name);
  return row && { isDone: row[0] === 1, atMs: row[1], bytes: Buffer.byteLength(row[2]) };
}

export function putStep(
  { connection, wallMs }: Tx,
  run: Run,
  step: { name: string; kind: string; isDone: boolean; json: string },
): void {
  const { name, kind, isDone, json } = step;
  const sql = `INSERT INTO run_steps VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET kind = excluded.kind, done = excluded.done, json = excluded.json`;
  connection.run(sql, run.workflow, name, kind, isDone ? 1 : 0, json, wallMs, run.steps);
}

export function deleteStep(tx: Tx, workflow: Workflow, run: Run, name: string): void {
  const step = findStep(tx, workflow, name);
  if (step === undefined) return;
  tx.connection.run('DELETE FROM run_steps WHERE workflow = ? AND name = ?', workflow.number, name);
  run.steps--;
  run.bytes -= step.bytes;
}

/** Keeps the step of a call with its action. One that is there stays as it is. */
export function keepCall(
  tx: Tx,
  workflow: Workflow,
  { name, value }: { readonly name: string; readonly value: unknown },
): void {
  if (findStep(tx, workflow, name) !== undefined) return;
  const run = ensureRun(tx, workflow);
  const json = JSON.stringify(value);
  putStep(tx, run, { name, kind: 'call', isDone: true, json });
  run.steps++;
  run.bytes += Buffer.byteLength(json);
  saveRun(tx, run);
}

export function stepsOf({ connection }: Tx, { number }: Workflow): StoredStep[] {
  const sql = `SELECT name, kind, done, json, at FROM run_steps WHERE workflow = ? ORDER BY at, number`;
  const rows = connection.rows<[string, StoredStep['kind'], number, string, number]>(sql, number);
  return rows.map(([name, kind, done, json, atMs]) => {
    return { name, kind, isDone: done === 1, value: JSON.parse(json), atMs };
  });
}

export function hasSignal({ connection }: Tx, { number }: Workflow, id: string): boolean {
  const sql = 'SELECT 1 FROM run_signals WHERE workflow = ? AND id = ?';
  return connection.row(sql, number, id) !== undefined;
}

export function addSignal(
  { connection, wallMs }: Tx,
  run: Run,
  signal: { id: string; name: string; json: string },
): void {
  const { id, name, json } = signal;
  const sql = 'INSERT INTO run_signals VALUES (?, ?, ?, ?, ?, ?, 0)';
  connection.run(sql, run.workflow, id, name, json, wallMs, run.signals);
}

/** Marks a signal as received. Its value is in the step that received it. */
export function receiveSignal({ connection }: Tx, run: Run, id: string): void {
  const sql = 'SELECT json FROM run_signals WHERE workflow = ? AND id = ? AND received = 0';
  const [json] = connection.row<[string]>(sql, run.workflow, id) ?? [];
  if (json === undefined) return;
  run.bytes -= Buffer.byteLength(json);
  const update = `UPDATE run_signals SET received = 1, json = 'null' WHERE workflow = ? AND id = ?`;
  connection.run(update, run.workflow, id);
}

/** The signals that no step has received. */
export function signalsOf({ connection }: Tx, { number }: Workflow): StoredSignal[] {
  const sql = `SELECT id, name, json, at FROM run_signals WHERE workflow = ? AND received = 0 ORDER BY number`;
  const rows = connection.rows<[string, string, string, number]>(sql, number);
  return rows.map(([id, name, json, atMs]) => ({ id, name, value: JSON.parse(json), atMs }));
}
