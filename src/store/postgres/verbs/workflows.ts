import { sized } from '../../port/limits.ts';
import type { Call } from '../../port/store.ts';
import type { HeldReply } from '../../port/stream-store.ts';
import {
  type ActionRef,
  actionStream,
  type BeginReply,
  type BeginRequest,
  type EmitStep,
  type HandoffReply,
  type HandoffStep,
  type HeldAction,
  HISTORY_PAGE,
  HISTORY_STATE_MOST,
  type HistoryCall,
  type HistoryPage,
  historyError,
  type NewAction,
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
  UNREAD_MOST,
  UNRESOLVED_MOST,
  type UpdateStep,
  WORKFLOWS_PAGE,
  type WorkflowListCall,
  type WorkflowSnapshot,
  type WorkflowStore,
} from '../../port/workflow-store.ts';
import { asJson, pageOf, positionOf } from '../../values.ts';
import type { PostgresEra } from '../postgres-era.ts';
import type { FunctionConnection, ReturnedHint } from './function-connection.ts';

/** A reply with the hints that follow from it. */
type Hinting<R> = R & { readonly hints?: readonly ReturnedHint[] };
/** As the functions return them: states and values are JSON text. */
type RawSnapshot = WorkflowSnapshot & { readonly state: string };
type RawResult = StoredResult & { readonly value: string };
type RawTaken = Exclude<Taken, { kind: 'replay' }> | { kind: 'replay'; result: RawResult };

export class PostgresWorkflows implements WorkflowStore {
  readonly #functions: FunctionConnection;
  readonly #era: PostgresEra;

  constructor(functions: FunctionConnection, era: PostgresEra) {
    this.#functions = functions;
    this.#era = era;
  }

  async begin(id: string, request: BeginRequest, call: Call): Promise<BeginReply> {
    const reply = await this.#step<BeginReply>('begin', 'workflow_begin', { id, ...request }, call);
    if (reply.kind !== 'begun') return reply;
    return { ...reply, workflow: snapshot(reply.workflow as RawSnapshot) };
  }

  async emit(id: string, step: EmitStep, call: Call): Promise<StepReply> {
    if (new Set(step.actions.map((action) => action.id)).size < step.actions.length)
      throw new TypeError('two actions of one emit have the same id');
    for (const action of step.actions) sized('action', action.id, action.body);
    const actions = step.actions.map(asAsked);
    const mosts = { mostUnresolved: UNRESOLVED_MOST, mostUnread: UNREAD_MOST };
    const request = { id, ...withPositions(step), actions, ...mosts };
    return this.#step('emit', 'workflow_emit', request, call);
  }

  async update(id: string, step: UpdateStep, call: Call): Promise<StepReply> {
    const state = sized('workflow state', id, asJson(step.state));
    const request = { id, ...withPositions(step), state, mostHistory: HISTORY_STATE_MOST };
    return this.#step('update', 'workflow_update', request, call);
  }

  markRead(id: string, step: Tenancy, call: Call): Promise<StepReply> {
    return this.#step('mark read', 'workflow_mark_read', { id, ...withPositions(step) }, call);
  }

  unpark(id: string, step: Step, call: Call): Promise<StepReply> {
    return this.#step('unpark', 'workflow_unpark', { id, ...withPositions(step) }, call);
  }

  handoff(id: string, step: HandoffStep, call: Call): Promise<HandoffReply> {
    const { windowMs: window } = step;
    const request = { id, ...withPositions(step), window, quarantine: this.#era.longestBoundMs };
    return this.#step('hand off', 'workflow_handoff', request, call);
  }

  revoke(leaseId: string, call: RevokeTenureCall): Promise<RevokeTenureReply> {
    const request = { leaseId, reason: JSON.stringify(call.reason) };
    return this.#step('revoke tenure', 'workflow_revoke', request, call);
  }

  async take(target: string, call: TakeCall): Promise<Taken[]> {
    const { consumer, most, claimMs: claim } = call;
    const request = { target, consumer, most, claim };
    return this.#functions.call('take', 'workflow_take', request, call);
  }

  async reserve(target: string, action: ActionRef, call: ReserveCall): Promise<Taken> {
    const { consumer, claimMs: claim, strictness } = call;
    const request = { target, ...action, consumer, claim, strict: strictness === 'strict' };
    const reply = await this.#functions.call<RawTaken>(
      'reserve',
      'workflow_reserve',
      request,
      call,
    );
    return reply.kind === 'replay' ? { kind: 'replay', result: result(reply.result) } : reply;
  }

  async extend(
    target: string,
    held: readonly HeldAction[],
    call: Call & { claimMs: number },
  ): Promise<HeldReply[]> {
    if (held.length === 0) return [];
    const named = held.map(({ workflow, fence }) => [workflow, fence, call.claimMs]);
    const request = { stream: actionStream(target), verb: 'extend', held: named };
    const replies = await this.#functions.call<boolean[]>('extend', 'stream_held', request, call);
    return replies.map(asHeld);
  }

  async settle(
    target: string,
    settlements: readonly Settlement[],
    call: Call,
  ): Promise<HeldReply[]> {
    const asked = settlements.map((one) => {
      const { workflow, fence, outcome } = one;
      const error = asJsonText(historyError(one));
      if (one.outcome === 'retry') return { workflow, fence, outcome, error, after: one.afterMs };
      const json = sized('result', workflow, asJson(one.value));
      const reason = one.outcome === 'dead' ? JSON.stringify(one.reason) : undefined;
      return { workflow, fence, outcome, error, json, reason };
    });
    if (asked.length === 0) return [];
    const [replies, hints] = await this.#functions.call<[boolean[], ReturnedHint[]]>(
      'settle',
      'workflow_settle',
      { target, settlements: asked },
      call,
    );
    this.#functions.send(hints);
    return replies.map(asHeld);
  }

  async revive(
    target: string,
    deadId: string,
    call: Call,
  ): Promise<{ kind: 'revived'; workflow: string } | { kind: 'absent' }> {
    const reply = await this.#functions.call<[string, ReturnedHint[]] | null>(
      'revive',
      'workflow_revive',
      { target, dead: positionOf(deadId) },
      call,
    );
    if (reply === null) return { kind: 'absent' };
    const [workflow, hints] = reply;
    this.#functions.send(hints);
    return { kind: 'revived', workflow };
  }

  async read(ids: readonly string[], call: Call): Promise<(WorkflowSnapshot | null)[]> {
    const found = await this.#functions.call<(RawSnapshot | null)[]>(
      'read workflows',
      'workflow_read',
      { ids },
      call,
    );
    return found.map((one) => (one === null ? null : snapshot(one)));
  }

  async results(id: string, call: ResultsCall): Promise<ResultsPage> {
    const size = Math.min(call.most ?? RESULTS_PAGE, RESULTS_PAGE);
    const request = { id, after: positionOf(call.after), most: size };
    const { page, more } = pageOf(await this.#results(request, call), size);
    return { results: page, more };
  }

  async resultOf(id: string, actionId: string, call: Call): Promise<StoredResult | null> {
    const [found = null] = await this.#results({ id, action: actionId }, call);
    return found;
  }

  async history(id: string, call: HistoryCall): Promise<HistoryPage> {
    type Row = [string, number, number, string | null, string];
    const size = Math.min(call.most ?? HISTORY_PAGE, HISTORY_PAGE);
    const request = { id, after: positionOf(call.after), most: size };
    const rows = await this.#functions.call<Row[]>(
      'read history',
      'workflow_history',
      request,
      call,
    );
    const { page, more } = pageOf(rows, size);
    const entries = page.map(([position, atMs, epoch, leaseId, what]) => {
      return { position, atMs, epoch, leaseId, what: JSON.parse(what) };
    });
    return { entries, more };
  }

  async list(call: WorkflowListCall): Promise<{ ids: readonly string[]; more: boolean }> {
    const size = Math.min(call.most ?? WORKFLOWS_PAGE, WORKFLOWS_PAGE);
    const request = { after: call.after ?? '', most: size };
    const rows = await this.#functions.call<string[]>(
      'list workflows',
      'workflow_list',
      request,
      call,
    );
    const { page: ids, more } = pageOf(rows, size);
    return { ids, more };
  }

  remove(id: string, call: Call): Promise<'removed' | 'held' | 'absent'> {
    return this.#functions.call('remove workflow', 'workflow_remove', { id }, call);
  }

  /** Calls a function whose reply has hints, and sends these. */
  async #step<R extends object>(
    operation: string,
    name: string,
    request: object,
    call: Call,
  ): Promise<R> {
    const reply = await this.#functions.call<Hinting<R>>(operation, name, request, call);
    const { hints = [], ...rest } = reply;
    this.#functions.send(hints);
    return rest as R;
  }

  async #results(request: object, call: Call): Promise<StoredResult[]> {
    const found = await this.#functions.call<RawResult[]>(
      'read results',
      'workflow_results',
      request,
      call,
    );
    return found.map(result);
  }
}

function snapshot({ state, ...rest }: RawSnapshot): WorkflowSnapshot {
  return { ...rest, state: JSON.parse(state) };
}

function result({ value, ...rest }: RawResult): StoredResult {
  return { ...rest, value: JSON.parse(value) };
}

function asHeld(isDone: boolean): HeldReply {
  return isDone ? 'done' : 'gone';
}

/** As JSON, which may stand for a NUL; undefined for no text. */
function asJsonText(text: string | undefined): string | undefined {
  return text === undefined || text === '' ? undefined : JSON.stringify(text);
}

function asAsked({ id, target, priority, body, about }: NewAction): object {
  const type = about === undefined ? undefined : JSON.stringify(about.type);
  return { id, target, priority, body, type, bytes: about?.bytes };
}

/** Positions that are malformed are before all. */
function withPositions<S extends Tenancy>(step: S): S {
  return { ...step, read: step.read.map((position) => String(positionOf(position))) };
}
