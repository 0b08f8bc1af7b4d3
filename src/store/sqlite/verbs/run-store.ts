import { sized } from '../../port/limits.ts';
import {
  type DueCall,
  type DueReply,
  type KeepReply,
  type KeepStep,
  type LoadedRun,
  type NewSignal,
  type PauseReply,
  type PauseStep,
  pauseDetail,
  type RestartReply,
  RUN_MOST_BYTES,
  RUN_SIGNALS_MOST,
  RUN_STEPS_MOST,
  type RunFull,
  type RunPhase,
  type RunSnapshot,
  type RunStore,
  runTopic,
  type SignalReply,
  type StartRequest,
  type StartRunReply,
} from '../../port/run-store.ts';
import type { Call } from '../../port/store.ts';
import { workflowKey } from '../../port/workflow-store.ts';
import { asJson } from '../../values.ts';
import type { Transactions } from '../file/lock-queue.ts';
import type { Tx, TxSignals } from '../file/sqlite-connection.ts';
import {
  addSignal,
  deleteStep,
  ensureRun,
  findRun,
  findStep,
  hasSignal,
  inputOf,
  makeRun,
  putStep,
  type Run,
  receiveSignal,
  runSnapshot,
  saveRun,
  signalsOf,
  stepsOf,
} from '../tables/runs.ts';
import { addHistory, findWorkflow, makeWorkflow, saveWorkflow } from '../tables/workflows.ts';
import { inTenure, type TxLeases, type TxStores } from './orchestrator-steps.ts';

/** A run that has just been paused is free in a moment. */
const HELD_AGAIN_MS = 200;
/** Runs that are looked at together. */
const PAGE = 100;

export class SqliteRunStore implements RunStore {
  readonly #transactions: Transactions;
  readonly #stores: TxStores;

  constructor(transactions: Transactions, leases: TxLeases, signals: TxSignals) {
    this.#transactions = transactions;
    this.#stores = { leases, signals };
  }

  async start(id: string, request: StartRequest, call: Call): Promise<StartRunReply> {
    const input = sized('workflow input', id, asJson(request.input ?? null));
    return this.#write('start run', call, (tx) => {
      const found = findWorkflow(tx, id);
      if (found !== undefined)
        return { kind: 'found', function: findRun(tx, found)?.function ?? null };
      const workflow = makeWorkflow(tx, id);
      makeRun(tx, workflow, request.function, input);
      addHistory(tx, workflow, { kind: 'started', function: request.function });
      saveWorkflow(tx, workflow);
      this.#hint(tx, request.function, id);
      return { kind: 'started' };
    });
  }

  due(functions: readonly string[], call: DueCall): Promise<DueReply> {
    return this.#write('give out runs', call, (tx) => {
      const runs: { id: string; function: string }[] = [];
      for (const name of functions) {
        const left = call.most - runs.length;
        const ids = left > 0 ? this.#giveOut(tx, name, left, call.graceMs) : [];
        for (const id of ids) runs.push({ id, function: name });
      }
      const nextInMs = firstDue(tx, functions, RESTING);
      return { runs, nextInMs, givenInMs: firstDue(tx, functions, GIVEN) };
    });
  }

  load(id: string, call: Call): Promise<LoadedRun | null> {
    return this.#transactions.readOne('load run', call, (tx): LoadedRun | null => {
      const workflow = findWorkflow(tx, id);
      if (workflow === undefined) return null;
      const run = findRun(tx, workflow);
      return {
        run: runSnapshot(tx, run),
        input: JSON.parse(inputOf(tx, workflow)) as unknown,
        steps: stepsOf(tx, workflow),
        signals: signalsOf(tx, workflow),
        signalCount: run?.signals ?? 0,
        nowMs: tx.wallMs,
      };
    });
  }

  read(ids: readonly string[], call: Call): Promise<(RunSnapshot | null)[]> {
    const each = (tx: Tx, id: string) => {
      const workflow = findWorkflow(tx, id);
      return workflow === undefined ? null : runSnapshot(tx, findRun(tx, workflow));
    };
    return this.#transactions.read({ operation: 'read runs', items: ids, each }, call);
  }

  async keep(id: string, step: KeepStep, call: Call): Promise<KeepReply> {
    const json = sized('workflow step', step.name, asJson(step.value));
    return this.#write('keep step', call, (tx) => {
      const workflow = inTenure(tx, this.#stores, id, step);
      if ('kind' in workflow) return workflow;
      const { name, kind, isDone } = step;
      const old = findStep(tx, workflow, name);
      const nowMs = tx.wallMs;
      // The same request may be sent again, because its answer was lost.
      if (old !== undefined && (old.isDone || !isDone))
        return { kind: 'done', atMs: old.atMs, nowMs };
      const run = ensureRun(tx, workflow);
      const bytes = run.bytes + Buffer.byteLength(json) - (old?.bytes ?? 0);
      const isNew = old === undefined;
      if ((isNew && run.steps >= RUN_STEPS_MOST) || bytes > RUN_MOST_BYTES) return full(run);
      putStep(tx, run, { name, kind, isDone, json });
      run.bytes = bytes;
      if (isNew) run.steps++;
      if (step.receives !== undefined) receiveSignal(tx, run, step.receives);
      saveRun(tx, run);
      addHistory(tx, workflow, { kind: 'kept', name, step: kind, isDone });
      saveWorkflow(tx, workflow);
      return { kind: 'done', atMs: old?.atMs ?? nowMs, nowMs };
    });
  }

  async signal(id: string, signal: NewSignal, call: Call): Promise<SignalReply> {
    const { name } = signal;
    const json = sized('workflow signal', name, asJson(signal.value ?? null));
    return this.#write('signal', call, (tx) => {
      const workflow = findWorkflow(tx, id);
      if (workflow === undefined) return { kind: 'absent' };
      if (hasSignal(tx, workflow, signal.id)) return { kind: 'kept' };
      const run = ensureRun(tx, workflow);
      if (run.phase === 'done') return { kind: 'ended' };
      const bytes = run.bytes + Buffer.byteLength(json);
      if (run.signals >= RUN_SIGNALS_MOST || bytes > RUN_MOST_BYTES) return full(run);
      addSignal(tx, run, { id: signal.id, name, json });
      run.signals++;
      run.bytes = bytes;
      if (run.phase === 'suspended') {
        run.dueMs = tx.wallMs;
        this.#hint(tx, run.function ?? '', id);
      }
      saveRun(tx, run);
      addHistory(tx, workflow, { kind: 'signalled', name });
      saveWorkflow(tx, workflow);
      if (workflow.inbox !== '') this.#stores.signals.send(tx, workflow.inbox, id);
      return { kind: 'kept' };
    });
  }

  async pause(id: string, step: PauseStep, call: Call): Promise<PauseReply> {
    const value = sized('result', id, asJson(step.value ?? null));
    return this.#write('pause run', call, (tx) => {
      const workflow = inTenure(tx, this.#stores, id, step);
      if ('kind' in workflow) return workflow;
      const run = findRun(tx, workflow);
      if (run === undefined || run.function === null) return { kind: 'not-held', leaseId: null };
      const { phase, tries, wakeInMs } = step;
      if (run.signals !== step.signalCount) return { kind: 'signalled' };
      for (const name of step.forgets) deleteStep(tx, workflow, run, name);
      const dueMs = wakeInMs === null ? null : tx.wallMs + wakeInMs;
      Object.assign(run, { phase, tries, dueMs, value, waits: asJson(step.waits ?? null) });
      saveRun(tx, run);
      addHistory(tx, workflow, { kind: 'paused', phase, detail: pauseDetail(step) });
      saveWorkflow(tx, workflow);
      const hasEnded = phase === 'done' || phase === 'failed';
      if (hasEnded || wakeInMs !== null) this.#hint(tx, run.function, id);
      return { kind: 'done' };
    });
  }

  restart(id: string, call: Call): Promise<RestartReply> {
    return this.#write('restart run', call, (tx): RestartReply => {
      const workflow = findWorkflow(tx, id);
      const run = workflow && findRun(tx, workflow);
      if (workflow === undefined || run === undefined || run.function === null)
        return { kind: 'absent' };
      if (run.phase !== 'failed') return { kind: 'not-failed', phase: run.phase };
      Object.assign(run, { phase: 'retrying', tries: 0, dueMs: tx.wallMs });
      saveRun(tx, run);
      addHistory(tx, workflow, { kind: 'restarted' });
      saveWorkflow(tx, workflow);
      this.#hint(tx, run.function, id);
      return { kind: 'restarted', function: run.function };
    });
  }

  /** Gives out up to `most` runs of one function. Returns their workflows. */
  #giveOut(tx: Tx, name: string, most: number, graceMs: number): string[] {
    const given: string[] = [];
    const due = `SELECT r.workflow, w.id, r.phase FROM runs r INDEXED BY runs_due JOIN workflows w ON w.number = r.workflow
       WHERE r.scope = ? AND r.function = ? AND r.due IS NOT NULL AND r.due <= ? ORDER BY r.due LIMIT ${PAGE}`;
    const set = `UPDATE runs SET due = ?, phase = ? WHERE workflow = ?`;
    for (;;) {
      const rows = tx.connection.rows<[number, string, RunPhase]>(due, tx.scope, name, tx.wallMs);
      for (const [workflow, id, phase] of rows) {
        const { holder, expiresInMs } = this.#stores.leases.look(tx, workflowKey(id));
        if (holder !== null) {
          // One that was given out is free when its holder has died.
          const leftMs = phase === 'running' ? expiresInMs : Math.min(expiresInMs, HELD_AGAIN_MS);
          tx.connection.run(set, tx.wallMs + leftMs + 1, phase, workflow);
        } else if (given.length < most) {
          tx.connection.run(set, tx.wallMs + graceMs, 'running', workflow);
          given.push(id);
        }
      }
      if (rows.length < PAGE || given.length === most) return given;
    }
  }

  #hint(tx: Tx, name: string, id: string): void {
    this.#stores.signals.send(tx, runTopic(name), id);
  }

  #write<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R> {
    return this.#transactions.writeOne(operation, call, each);
  }
}

const FIRST = 'SELECT min(due) FROM runs INDEXED BY';
const RESTING = `${FIRST} runs_resting WHERE scope = ? AND function = ? AND due IS NOT NULL AND phase <> 'running'`;
const GIVEN = `${FIRST} runs_given WHERE scope = ? AND function = ? AND due IS NOT NULL AND phase = 'running'`;

/** Until the first of these runs is due; null for none. */
function firstDue(tx: Tx, functions: readonly string[], sql: string): number | null {
  const { connection, scope, wallMs } = tx;
  const all = functions.flatMap(
    (name) => connection.row<[number | null]>(sql, scope, name)?.[0] ?? [],
  );
  return all.length === 0 ? null : Math.max(0, Math.min(...all) - wallMs);
}

function full({ steps, signals, bytes }: Run): RunFull {
  return { kind: 'full', steps, signals, bytes };
}
