import { sized } from '../../port/limits.ts';
import type { Call } from '../../port/store.ts';
import type { HeldReply } from '../../port/stream-store.ts';
import {
  type ActionRef,
  type BeginReply,
  type BeginRequest,
  type EmitStep,
  type HandoffReply,
  type HandoffStep,
  type HeldAction,
  HISTORY_PAGE,
  type HistoryCall,
  type HistoryPage,
  RESULTS_PAGE,
  type ReserveCall,
  type ResultsCall,
  type ResultsPage,
  type RevokeTenureCall,
  type RevokeTenureReply,
  type Settlement,
  type Step,
  type StepReply,
  type StoredResult,
  type TakeCall,
  type Taken,
  type Tenancy,
  type UpdateStep,
  WORKFLOWS_PAGE,
  type WorkflowListCall,
  type WorkflowSnapshot,
  type WorkflowStore,
} from '../../port/workflow-store.ts';
import { asJson, pageOf, positionOf } from '../../values.ts';
import type { Transactions } from '../file/lock-queue.ts';
import type { Tx, TxSignals } from '../file/sqlite-connection.ts';
import { findResult, unreadResults } from '../tables/results.ts';
import { findWorkflow, snapshotOf } from '../tables/workflows.ts';
import {
  beginTenure,
  emitActions,
  handOff,
  markRead,
  removeWorkflow,
  revokeTenure,
  type TxLeases,
  type TxStores,
  unparkActions,
  updateState,
} from './orchestrator-steps.ts';
import {
  extendClaim,
  reserveAction,
  reviveDead,
  settleAction,
  takeActions,
} from './processor-steps.ts';

export class SqliteWorkflows implements WorkflowStore {
  readonly #transactions: Transactions;
  readonly #stores: TxStores;

  constructor(transactions: Transactions, leases: TxLeases, signals: TxSignals) {
    this.#transactions = transactions;
    this.#stores = { leases, signals };
  }

  begin(id: string, request: BeginRequest, call: Call): Promise<BeginReply> {
    return this.#write('begin', call, (tx) => beginTenure(tx, this.#stores, id, request));
  }

  async emit(id: string, step: EmitStep, call: Call): Promise<StepReply> {
    if (new Set(step.actions.map((action) => action.id)).size < step.actions.length)
      throw new TypeError('two actions of one emit have the same id');
    for (const action of step.actions) sized('action', action.id, action.body);
    return this.#write('emit', call, (tx) => emitActions(tx, this.#stores, id, step));
  }

  async update(id: string, step: UpdateStep, call: Call): Promise<StepReply> {
    const asText = { ...step, state: sized('workflow state', id, asJson(step.state)) };
    return this.#write('update', call, (tx) => updateState(tx, this.#stores, id, asText));
  }

  markRead(id: string, step: Tenancy, call: Call): Promise<StepReply> {
    return this.#write('mark read', call, (tx) => markRead(tx, this.#stores, id, step));
  }

  unpark(id: string, step: Step, call: Call): Promise<StepReply> {
    return this.#write('unpark', call, (tx) => unparkActions(tx, this.#stores, id, step));
  }

  handoff(id: string, step: HandoffStep, call: Call): Promise<HandoffReply> {
    return this.#write('hand off', call, (tx) => handOff(tx, this.#stores, id, step));
  }

  revoke(leaseId: string, call: RevokeTenureCall): Promise<RevokeTenureReply> {
    return this.#write('revoke tenure', call, (tx) =>
      revokeTenure(tx, this.#stores, leaseId, call.reason),
    );
  }

  take(target: string, call: TakeCall): Promise<Taken[]> {
    return this.#write('take', call, (tx) => takeActions(tx, target, call));
  }

  reserve(target: string, action: ActionRef, call: ReserveCall): Promise<Taken> {
    return this.#write('reserve', call, (tx) => reserveAction(tx, target, action, call));
  }

  extend(
    target: string,
    held: readonly HeldAction[],
    call: Call & { claimMs: number },
  ): Promise<HeldReply[]> {
    const each = (tx: Tx, one: HeldAction) => extendClaim(tx, target, one, call.claimMs);
    return this.#transactions.write({ operation: 'extend', items: held, each }, call);
  }

  async settle(
    target: string,
    settlements: readonly Settlement[],
    call: Call,
  ): Promise<HeldReply[]> {
    const texts = settlements.map((one) =>
      one.outcome === 'retry' ? '' : sized('result', one.workflow, asJson(one.value)),
    );
    const { signals } = this.#stores;
    const each = (tx: Tx, settlement: Settlement, i: number) =>
      settleAction(tx, signals, target, settlement, texts[i] as string);
    return this.#transactions.write({ operation: 'settle', items: settlements, each }, call);
  }

  revive(
    target: string,
    deadId: string,
    call: Call,
  ): Promise<{ kind: 'revived'; workflow: string } | { kind: 'absent' }> {
    return this.#write('revive', call, (tx) =>
      reviveDead(tx, this.#stores.signals, target, deadId),
    );
  }

  read(ids: readonly string[], call: Call): Promise<(WorkflowSnapshot | null)[]> {
    const each = (tx: Tx, id: string) => {
      const workflow = findWorkflow(tx, id);
      return workflow === undefined ? null : snapshotOf(workflow);
    };
    return this.#transactions.read({ operation: 'read workflows', items: ids, each }, call);
  }

  results(id: string, call: ResultsCall): Promise<ResultsPage> {
    const size = Math.min(call.most ?? RESULTS_PAGE, RESULTS_PAGE);
    return this.#read('read results', call, (tx) => {
      const workflow = findWorkflow(tx, id);
      if (workflow === undefined) return { results: [], more: false };
      const found = unreadResults(tx, workflow, positionOf(call.after), size);
      const { page: results, more } = pageOf(found, size);
      return { results, more };
    });
  }

  resultOf(id: string, actionId: string, call: Call): Promise<StoredResult | null> {
    return this.#read('read result', call, (tx) => {
      const workflow = findWorkflow(tx, id);
      return workflow === undefined ? null : findResult(tx, workflow, actionId);
    });
  }

  history(id: string, call: HistoryCall): Promise<HistoryPage> {
    const size = Math.min(call.most ?? HISTORY_PAGE, HISTORY_PAGE);
    return this.#read('read history', call, (tx) => {
      const rows = tx.connection.rows<[number, number, number, string | null, string]>(
        'SELECT position, at, epoch, lease_id, what FROM history WHERE workflow = ? AND position > ? ORDER BY position LIMIT ?',
        findWorkflow(tx, id)?.number ?? null,
        positionOf(call.after),
        size + 1,
      );
      const { page, more } = pageOf(rows, size);
      const entries = page.map(([position, atMs, epoch, leaseId, what]) => {
        return { position: String(position), atMs, epoch, leaseId, what: JSON.parse(what) };
      });
      return { entries, more };
    });
  }

  list(call: WorkflowListCall): Promise<{ ids: readonly string[]; more: boolean }> {
    const size = Math.min(call.most ?? WORKFLOWS_PAGE, WORKFLOWS_PAGE);
    return this.#read('list workflows', call, ({ connection, scope }) => {
      const sql = 'SELECT id FROM workflows WHERE scope = ? AND id > ? ORDER BY id LIMIT ?';
      const rows = connection.rows<[string]>(sql, scope, call.after ?? '', size + 1);
      const { page, more } = pageOf(rows, size);
      return { ids: page.map(([id]) => id), more };
    });
  }

  remove(id: string, call: Call): Promise<'removed' | 'held' | 'absent'> {
    return this.#write('remove workflow', call, (tx) => removeWorkflow(tx, this.#stores, id));
  }

  #read<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R> {
    return this.#transactions.readOne(operation, call, each);
  }

  #write<R>(operation: string, call: Call, each: (tx: Tx) => R): Promise<R> {
    return this.#transactions.writeOne(operation, call, each);
  }
}
