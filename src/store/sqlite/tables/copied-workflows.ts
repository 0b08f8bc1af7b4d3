/** A workflow with all that belongs to it, as a copy of the store reads and writes it. */
import type { CopiedWorkflow } from '../../port/copy-store.ts';
import type { Value } from '../driver/driver.ts';
import type { Tx } from '../file/sqlite-connection.ts';
import type { Workflow } from './workflows.ts';

type ActionRow = [string, string, number, string, string, number, number];
type ResultRow = [string, string, number, string, string, number, number, number];
type EventRow = [at: number, epoch: number, leaseId: string | null, what: string];
type RunRow = [string | null, string, number | null, number, string, string, string];
type StepRow = [name: string, kind: string, done: number, json: string, at: number];
type SignalRow = [id: string, name: string, json: string, at: number, received: number];

export function readCopied(
  { connection }: Tx,
  { number, id, leaseId, epoch, state, createdAtMs, changedAtMs, ...tenure }: Workflow,
): CopiedWorkflow {
  const rows = <Row extends Value[]>(columns: string, rest: string) =>
    connection.rows<Row>(`SELECT ${columns} FROM ${rest.replace('?', 'workflow = ?')}`, number);
  const [run] = rows<RunRow>('function, phase, due, tries, waits, value, input', 'runs WHERE ?');
  return {
    id,
    leaseId,
    phase: tenure.phase,
    epoch,
    updatedEpoch: tenure.updatedEpoch,
    state,
    inbox: tenure.inbox,
    createdMs: createdAtMs,
    changedMs: changedAtMs,
    actions: rows<ActionRow>(
      'id, target, priority, body, lease_id, epoch, parked',
      'actions WHERE ? ORDER BY epoch',
    ).map(([actionId, target, priority, body, actionLease, actionEpoch, parked]) => {
      const facts = { id: actionId, target, priority, body, leaseId: actionLease };
      return { ...facts, epoch: actionEpoch, isParked: parked === 1 };
    }),
    taken: rows<[string, number, string]>('target, epoch, action', 'taken WHERE ?').map(
      ([target, takenEpoch, actionId]) => ({ target, epoch: takenEpoch, actionId }),
    ),
    results: rows<ResultRow>(
      'action, target, epoch, outcome, json, at, unread, known',
      'results WHERE ? AND (unread = 1 OR known = 1) ORDER BY position',
    ).map(([actionId, target, ofEpoch, outcome, json, atMs, unread, known]) => {
      const facts = { actionId, target, epoch: ofEpoch, outcome, json, atMs };
      return { ...facts, isUnread: unread === 1, isKnown: known === 1 };
    }),
    history: rows<EventRow>('at, epoch, lease_id, what', 'history WHERE ? ORDER BY position').map(
      ([atMs, eventEpoch, eventLease, what]) => {
        return { atMs, epoch: eventEpoch, leaseId: eventLease, what };
      },
    ),
    run: run === undefined ? null : runOf(run),
    steps: rows<StepRow>('name, kind, done, json, at', 'run_steps WHERE ? ORDER BY at, number').map(
      ([name, kind, done, json, at]) => {
        return { name, kind, isDone: done === 1, json, atUs: at * 1_000 };
      },
    ),
    signals: rows<SignalRow>(
      'id, name, json, at, received',
      'run_signals WHERE ? ORDER BY number',
    ).map(([signalId, name, json, at, received]) => {
      return { id: signalId, name, json, atUs: at * 1_000, isReceived: received === 1 };
    }),
  };
}

function runOf([name, phase, due, tries, waits, value, input]: RunRow): CopiedWorkflow['run'] {
  if (name === null) return null;
  const dueUs = due === null ? null : Math.round(due * 1_000);
  return { function: name, phase, dueUs, tries, waits, value, input };
}

/** Writes a workflow that the store does not have. */
export function writeCopied({ connection, scope, wallMs }: Tx, copied: CopiedWorkflow): void {
  const { actions, results, history, taken } = copied;
  // As for a new workflow: positions of the old store fit no result here.
  const origin = Math.floor(wallMs * 1_000);
  const insert = (table: string, ...values: Value[]) =>
    connection.run(`INSERT INTO ${table} VALUES (${values.map(() => '?').join(', ')})`, ...values);
  const parked = actions.filter(({ isParked }) => isParked).length;
  const unread = results.filter(({ isUnread }) => isUnread).length;
  const [lastResult, lastEvent] = [origin + results.length, origin + history.length];
  const { id, leaseId, phase, epoch, updatedEpoch, state, inbox, createdMs, changedMs } = copied;
  const tenure = [leaseId, phase, epoch, updatedEpoch, state, inbox];
  const counts = [actions.length, parked, unread, lastResult, lastEvent];
  insert('workflows', null, scope, id, ...tenure, ...counts, createdMs, changedMs);
  const sql = 'SELECT number FROM workflows WHERE scope = ? AND id = ?';
  const [number = 0] = connection.row<[number]>(sql, scope, id) ?? [];
  for (const one of actions) {
    const values = [one.epoch, one.leaseId, one.priority, one.body, one.isParked ? 1 : 0];
    insert('actions', number, one.id, one.target, ...values);
  }
  for (const one of taken) insert('taken', number, one.target, one.epoch, one.actionId);
  results.forEach((one, i) => {
    const flags = [one.isUnread ? 1 : 0, one.isKnown ? 1 : 0];
    const facts = [one.actionId, one.target, one.epoch, one.outcome, one.json, one.atMs];
    insert('results', number, origin + i + 1, ...facts, ...flags);
  });
  history.forEach((one, i) => {
    insert('history', number, origin + i + 1, one.atMs, one.epoch, one.leaseId, one.what);
  });
  writeRun(insert, number, scope, copied);
}

function writeRun(
  insert: (table: string, ...values: Value[]) => number,
  number: number,
  scope: string,
  { run, steps, signals }: CopiedWorkflow,
): void {
  if (run === null && steps.length === 0 && signals.length === 0) return;
  const kept = [...steps, ...signals.filter(({ isReceived }) => !isReceived)];
  const bytes = kept.reduce((sum, { json }) => sum + Buffer.byteLength(json), 0);
  const { tries = 0, waits = 'null', value = 'null', input = 'null' } = run ?? {};
  const due = run?.dueUs == null ? null : run.dueUs / 1_000;
  const texts = [tries, waits, value, input];
  const sizes = [steps.length, signals.length, bytes];
  const standing = [run?.function ?? null, run?.phase ?? 'running', due];
  insert('runs', number, scope, ...standing, ...texts, ...sizes);
  steps.forEach(({ name, kind, isDone, json, atUs }, i) => {
    insert('run_steps', number, name, kind, isDone ? 1 : 0, json, atUs / 1_000, i);
  });
  signals.forEach(({ id, name, json, atUs, isReceived }, i) => {
    insert('run_signals', number, id, name, json, atUs / 1_000, i, isReceived ? 1 : 0);
  });
}
