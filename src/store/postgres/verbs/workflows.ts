import { sized } from '../../port/limits.ts';
import type { Call } from '../../port/store.ts';
import type { HeldReply } from '../../port/stream-store.ts';
import {
  actionStream,
  type BeginReply,
  HISTORY_PAGE,
  HISTORY_STATE_MOST,
  historyError,
  type NewAction,
  RESULTS_PAGE,
  type StoredResult,
  type Taken,
  type Tenancy,
  UNREAD_MOST,
  UNRESOLVED_MOST,
  WORKFLOWS_PAGE,
  type WorkflowSnapshot,
  type WorkflowStore,
} from '../../port/workflow-store.ts';
import { asJson, pageOf, positionOf } from '../../values.ts';
import type { PostgresQuarantine } from '../postgres-quarantine.ts';
import type { FunctionConnection, ReturnedHint } from './function-connection.ts';

/** As the functions return them: states and values are JSON text. */
type RawSnapshot = WorkflowSnapshot & { readonly state: string };
type RawResult = StoredResult & { readonly value: string };
type RawTaken = Exclude<Taken, { kind: 'replay' }> | { kind: 'replay'; result: RawResult };

type Orchestrating = Pick<
  WorkflowStore,
  'begin' | 'emit' | 'update' | 'markRead' | 'unpark' | 'handoff' | 'revoke' | 'remove'
>;
type Processing = Pick<WorkflowStore, 'take' | 'reserve' | 'extend' | 'settle' | 'revive'>;
type Reading = Pick<WorkflowStore, 'read' | 'results' | 'resultOf' | 'history' | 'list'>;

export function postgresWorkflows(
  functions: FunctionConnection,
  quarantine: PostgresQuarantine,
): WorkflowStore {
  const steps = orchestrating(functions, quarantine);
  return { ...steps, ...processing(functions), ...reading(functions) };
}

function orchestrating(
  functions: FunctionConnection,
  quarantine: PostgresQuarantine,
): Orchestrating {
  return {
    async begin(id, request, call) {
      const reply = await functions.ask<BeginReply>(
        'begin',
        'workflow_begin',
        { id, ...request },
        call,
      );
      if (reply.kind !== 'begun') return reply;
      return { ...reply, workflow: snapshot(reply.workflow as RawSnapshot) };
    },
    async emit(id, step, call) {
      if (new Set(step.actions.map((action) => action.id)).size < step.actions.length)
        throw new TypeError('two actions of one emit have the same id');
      for (const action of step.actions) sized('action', action.id, action.body);
      const actions = step.actions.map(asAsked);
      const mosts = { mostUnresolved: UNRESOLVED_MOST, mostUnread: UNREAD_MOST };
      const request = { id, ...withPositions(step), actions, ...mosts };
      return functions.ask('emit', 'workflow_emit', request, call);
    },
    async update(id, step, call) {
      const state = sized('workflow state', id, asJson(step.state));
      const request = { id, ...withPositions(step), state, mostHistory: HISTORY_STATE_MOST };
      return functions.ask('update', 'workflow_update', request, call);
    },
    markRead(id, step, call) {
      return functions.ask('mark read', 'workflow_mark_read', { id, ...withPositions(step) }, call);
    },
    unpark(id, step, call) {
      return functions.ask('unpark', 'workflow_unpark', { id, ...withPositions(step) }, call);
    },
    handoff(id, step, call) {
      const { windowMs: window } = step;
      const request = { id, ...withPositions(step), window, quarantine: quarantine.longestBoundMs };
      return functions.ask('hand off', 'workflow_handoff', request, call);
    },
    revoke(leaseId, call) {
      const request = { leaseId, reason: JSON.stringify(call.reason) };
      return functions.ask('revoke tenure', 'workflow_revoke', request, call);
    },
    remove(id, call) {
      return functions.call('remove workflow', 'workflow_remove', { id }, call);
    },
  };
}

function processing(functions: FunctionConnection): Processing {
  return {
    async take(target, call) {
      const { consumer, most, claimMs: claim } = call;
      const request = { target, consumer, most, claim };
      return functions.call('take', 'workflow_take', request, call);
    },
    async reserve(target, action, call) {
      const { consumer, claimMs: claim, strictness } = call;
      const request = { target, ...action, consumer, claim, strict: strictness === 'strict' };
      const reply = await functions.call<RawTaken>('reserve', 'workflow_reserve', request, call);
      return reply.kind === 'replay' ? { kind: 'replay', result: result(reply.result) } : reply;
    },
    async extend(target, held, call) {
      if (held.length === 0) return [];
      const named = held.map(({ workflow, fence }) => [workflow, fence, call.claimMs]);
      const request = { stream: actionStream(target), verb: 'extend', held: named };
      const replies = await functions.call<boolean[]>('extend', 'stream_held', request, call);
      return replies.map(asHeld);
    },
    async settle(target, settlements, call) {
      const asked = settlements.map((one) => {
        const { workflow, fence, outcome } = one;
        const error = asJsonText(historyError(one));
        if (one.outcome === 'retry') return { workflow, fence, outcome, error, after: one.afterMs };
        const json = sized('result', workflow, asJson(one.value));
        const reason = one.outcome === 'dead' ? JSON.stringify(one.reason) : undefined;
        return { workflow, fence, outcome, error, json, reason };
      });
      if (asked.length === 0) return [];
      const [replies, hints] = await functions.call<[boolean[], ReturnedHint[]]>(
        'settle',
        'workflow_settle',
        { target, settlements: asked },
        call,
      );
      functions.send(hints);
      return replies.map(asHeld);
    },
    async revive(target, deadId, call) {
      const reply = await functions.call<[string, ReturnedHint[]] | null>(
        'revive',
        'workflow_revive',
        { target, dead: positionOf(deadId) },
        call,
      );
      if (reply === null) return { kind: 'absent' };
      const [workflow, hints] = reply;
      functions.send(hints);
      return { kind: 'revived', workflow };
    },
  };
}

function reading(functions: FunctionConnection): Reading {
  const results = async (request: object, call: Call): Promise<StoredResult[]> => {
    const found = await functions.call<RawResult[]>(
      'read results',
      'workflow_results',
      request,
      call,
    );
    return found.map(result);
  };
  return {
    async read(ids, call) {
      const found = await functions.call<(RawSnapshot | null)[]>(
        'read workflows',
        'workflow_read',
        { ids },
        call,
      );
      return found.map((one) => (one === null ? null : snapshot(one)));
    },
    async results(id, call) {
      const size = Math.min(call.most ?? RESULTS_PAGE, RESULTS_PAGE);
      const request = { id, after: positionOf(call.after), most: size };
      const { page, more } = pageOf(await results(request, call), size);
      return { results: page, more };
    },
    async resultOf(id, actionId, call) {
      const [found = null] = await results({ id, action: actionId }, call);
      return found;
    },
    async history(id, call) {
      type Row = [string, number, number, string | null, string];
      const size = Math.min(call.most ?? HISTORY_PAGE, HISTORY_PAGE);
      const request = { id, after: positionOf(call.after), most: size };
      const rows = await functions.call<Row[]>('read history', 'workflow_history', request, call);
      const { page, more } = pageOf(rows, size);
      const entries = page.map(([position, atMs, epoch, leaseId, what]) => {
        return { position, atMs, epoch, leaseId, what: JSON.parse(what) };
      });
      return { entries, more };
    },
    async list(call) {
      const size = Math.min(call.most ?? WORKFLOWS_PAGE, WORKFLOWS_PAGE);
      const request = { after: call.after ?? '', most: size };
      const rows = await functions.call<string[]>('list workflows', 'workflow_list', request, call);
      const { page: ids, more } = pageOf(rows, size);
      return { ids, more };
    },
  };
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

function asAsked({ id, target, priority, body, about, step }: NewAction): object {
  const type = about === undefined ? undefined : JSON.stringify(about.type);
  const named = step && [step.name, asJson(step.value)];
  return { id, target, priority, body, type, bytes: about?.bytes, step: named };
}

/** Positions that are malformed are before all. */
function withPositions<S extends Tenancy>(step: S): S {
  return { ...step, read: step.read.map((position) => String(positionOf(position))) };
}
