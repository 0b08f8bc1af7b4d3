import { TOMBSTONE } from '../../port/lease-store.ts';
import { sized } from '../../port/limits.ts';
import type { Call } from '../../port/store.ts';
import type { HeldReply } from '../../port/stream-store.ts';
import {
  type ActionRef,
  actionStream,
  type BeginReply,
  type BeginRequest,
  type EmitStep,
  FIRST_STATE,
  type HandoffReply,
  type HandoffStep,
  type HeldAction,
  HISTORY_PAGE,
  type HistoryCall,
  type HistoryPage,
  historyError,
  type NewAction,
  type NotHeld,
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
import { scripts } from '../scripts.ts';
import { actionOf, actionsOf, historyOf, resultOf, unreadOf } from './action-texts.ts';
import {
  asJson,
  atMost,
  fromJson,
  isStreamId,
  TAKE_MOST,
  type WorkConnection,
} from './work-connection.ts';

type ScriptStep = [kind: number, number: number | string | null, fenceOrUnread?: number];
type ScriptSnapshot = [
  facts: [
    leaseId: string | null,
    epoch: string,
    state: string,
    createdMs: string,
    changedMs: string,
    begun: string | null,
    channel: string | null,
  ],
  unresolved: number,
  parked: number,
  unread: number,
];
type ScriptBegin = [2, string | null] | [1, ScriptSnapshot, string[], string[]];
type ScriptTaken =
  | [kind: 1, workflow: string, id: string, record: string, fence: number, tries: number]
  | [kind: 0, workflow: string, id: string, received: string, expected: string | null];
type ScriptReserved =
  | ['reserved', record: string, fence: number, tries: number]
  | ['lease', string | null]
  | ['replay', string]
  | ['stale' | 'future', number];

export class RedisWorkflows implements WorkflowStore {
  readonly #work: WorkConnection;

  constructor(work: WorkConnection) {
    this.#work = work;
  }

  async begin(id: string, request: BeginRequest, call: Call): Promise<BeginReply> {
    const { leaseId, fence, inbox, resume } = request;
    const channel = this.#work.keys.channel(inbox);
    const args = [
      id,
      leaseId,
      String(fence),
      channel,
      resume ? '1' : '0',
      JSON.stringify(FIRST_STATE),
    ];
    const reply = (await this.#work.run(scripts['workflow/begin'], args, call)) as ScriptBegin;
    if (reply[0] === 2) return notHeld(reply[1]);
    const [, found, reemitted, dropped] = reply;
    const workflow = this.#snapshot(id, found);
    return {
      kind: 'begun',
      workflow,
      reemitted: actionsOf(reemitted),
      dropped: actionsOf(dropped),
    };
  }

  /** Every action passes here, so it takes one request and makes few lists. */
  async emit(id: string, step: EmitStep, call: Call): Promise<StepReply> {
    const args = stepArgs(id, step);
    for (const action of step.actions) {
      const { id: actionId, target, priority, body, about } = action;
      args.push(actionId, target, String(priority), sized('action', actionId, body));
      args.push(about === undefined ? '' : `${about.bytes} ${about.type}`, ...stepTexts(action));
    }
    return stepReply((await this.#work.run(scripts['workflow/emit'], args, call)) as ScriptStep);
  }

  async update(id: string, step: UpdateStep, call: Call): Promise<StepReply> {
    const args = [
      ...stepArgs(id, step),
      sized('workflow state', id, asJson(step.state, 'a state')),
    ];
    return stepReply((await this.#work.run(scripts['workflow/update'], args, call)) as ScriptStep);
  }

  async markRead(id: string, step: Tenancy, call: Call): Promise<StepReply> {
    const args = [id, step.leaseId, ...readArgs(step)];
    return stepReply(
      (await this.#work.run(scripts['workflow/mark-read'], args, call)) as ScriptStep,
    );
  }

  async unpark(id: string, step: Step, call: Call): Promise<StepReply> {
    const reply = await this.#work.run(scripts['workflow/unpark'], stepArgs(id, step), call);
    return stepReply(reply as ScriptStep);
  }

  async handoff(id: string, step: HandoffStep, call: Call): Promise<HandoffReply> {
    const args = [...stepArgs(id, step), step.successor, String(step.windowMs)];
    const found = (await this.#work.run(scripts['workflow/handoff'], args, call)) as ScriptStep;
    const reply = stepReply(found);
    if (reply.kind === 'done') return { ...reply, fence: found[2] ?? 0 };
    if (reply.kind === 'full') throw new TypeError('a handoff needs no room');
    return reply;
  }

  async revoke(leaseId: string, call: RevokeTenureCall): Promise<RevokeTenureReply> {
    const reply = await this.#work.run(scripts['workflow/revoke'], [leaseId, call.reason], call);
    if (reply === null) return { kind: 'not-found' };
    const [workflow, revokedAtMs] = reply as [string, string];
    return { kind: 'revoked', workflow, revokedAtMs: Number(revokedAtMs) };
  }

  async take(target: string, call: TakeCall): Promise<Taken[]> {
    const args = [
      target,
      call.consumer,
      String(atMost(call.most, TAKE_MOST)),
      String(call.claimMs),
    ];
    const found = (await this.#work.run(scripts['workflow/take'], args, call)) as ScriptTaken[];
    return found.map(takenOf);
  }

  async reserve(target: string, action: ActionRef, call: ReserveCall): Promise<Taken> {
    const { workflow, id, leaseId, epoch } = action;
    const args = [
      target,
      workflow,
      id,
      leaseId,
      String(epoch),
      call.consumer,
      String(call.claimMs),
      call.strictness === 'strict' ? '1' : '0',
    ];
    const reply = (await this.#work.run(scripts['workflow/reserve'], args, call)) as ScriptReserved;
    switch (reply[0]) {
      case 'reserved':
        return takenOf([1, workflow, id, reply[1], reply[2], reply[3]]);
      case 'lease':
        return takenOf([0, workflow, id, leaseId, reply[1]]);
      case 'replay':
        return {
          kind: 'replay',
          result: resultOf(this.#work.keys.workflow('results', workflow), id, reply[1]),
        };
      default:
        return { kind: reply[0], workflow, id, epoch, current: reply[1] };
    }
  }

  extend(
    target: string,
    held: readonly HeldAction[],
    call: Call & { claimMs: number },
  ): Promise<HeldReply[]> {
    const lanes = held.map(({ workflow, fence }) => ({ lane: workflow, fence }));
    return this.#work.extend(actionStream(target), lanes, call);
  }

  async settle(
    target: string,
    settlements: readonly Settlement[],
    call: Call,
  ): Promise<HeldReply[]> {
    const each = settlements.map((settlement) => {
      const { workflow, fence, outcome } = settlement;
      return [workflow, String(fence), outcome, ...settlementArgs(settlement)];
    });
    return this.#work.runHeld(scripts['workflow/settle'], [target], each, call);
  }

  async revive(target: string, deadId: string, call: Call) {
    if (!isStreamId(deadId)) return { kind: 'absent' } as const;
    const workflow = await this.#work.run(scripts['workflow/revive'], [target, deadId], call);
    if (workflow === null) return { kind: 'absent' } as const;
    return { kind: 'revived', workflow: workflow as string } as const;
  }

  async read(ids: readonly string[], call: Call): Promise<(WorkflowSnapshot | null)[]> {
    const each = ids.map((id) => [id]);
    const replies = await this.#work.runEach(scripts['workflow/read'], [], each, call);
    return replies.map((reply, i) => {
      return reply === null ? null : this.#snapshot(ids[i] ?? '', reply as ScriptSnapshot);
    });
  }

  async results(id: string, { after, most, timeoutMs }: ResultsCall): Promise<ResultsPage> {
    const call = { after, size: atMost(most, RESULTS_PAGE), timeoutMs };
    const key = this.#work.keys.workflow('unread', id);
    const { rows, more } = await this.#work.page('results', key, call);
    return { results: rows.map((row) => unreadOf(key, row)), more };
  }

  async resultOf(id: string, actionId: string, call: Call): Promise<StoredResult | null> {
    const key = this.#work.keys.workflow('results', id);
    const found = await this.#work.send('result', ['HGET', key, actionId], call);
    return found === null ? null : resultOf(key, actionId, found as string);
  }

  async history(id: string, { after, most, timeoutMs }: HistoryCall): Promise<HistoryPage> {
    const call = { after, size: atMost(most, HISTORY_PAGE), timeoutMs };
    const key = this.#work.keys.workflow('history', id);
    const { rows, more } = await this.#work.page('history', key, call);
    return { entries: rows.map(historyOf), more };
  }

  async list(call: WorkflowListCall): Promise<{ ids: readonly string[]; more: boolean }> {
    const size = atMost(call.most, WORKFLOWS_PAGE);
    const from = call.after === undefined ? '-' : `(${call.after}`;
    const key = this.#work.keys.workflows;
    const args = ['ZRANGEBYLEX', key, from, '+', 'LIMIT', '0', String(size + 1)] as const;
    const found = (await this.#work.send('list', args, call)) as string[];
    return { ids: found.slice(0, size), more: found.length > size };
  }

  async remove(id: string, call: Call): Promise<'removed' | 'held' | 'absent'> {
    const reply = await this.#work.run(scripts['workflow/remove'], [id], call);
    return reply as 'removed' | 'held' | 'absent';
  }

  #snapshot(id: string, found: ScriptSnapshot): WorkflowSnapshot {
    return snapshotOf(id, this.#work.keys.channel(''), found);
  }
}

function stepArgs(id: string, step: Step): string[] {
  const args = [id, step.leaseId, String(step.epoch)];
  if (step.read.length === 0) args.push('0');
  else args.push(...readArgs(step));
  return args;
}

function readArgs({ read }: Tenancy): string[] {
  const positions = read.filter(isStreamId);
  return [String(positions.length), ...positions];
}

function stepReply([kind, found, more]: ScriptStep): StepReply {
  if (kind === 1) return { kind: 'done', epoch: Number(found) };
  if (kind === 2) return notHeld(found as string | null);
  if (kind === 3) return { kind: 'epoch', epoch: Number(found) };
  return { kind: 'full', unresolved: Number(found), unread: Number(more) };
}

/** A tombstone is no holder. */
function notHeld(holder: string | null): NotHeld {
  return { kind: 'not-held', leaseId: holder === TOMBSTONE ? null : holder };
}

/** The step of a call: its value as JSON, and its name. */
function stepTexts({ step }: NewAction): [string, string] {
  if (step === undefined) return ['', ''];
  return [sized('workflow step', step.name, asJson(step.value, 'a step')), step.name];
}

/** The value as JSON, the reason or the ms of the pause, and the error. */
function settlementArgs(settlement: Settlement): [string, string, string] {
  const error = historyError(settlement);
  if (settlement.outcome === 'retry') return ['', String(settlement.afterMs), error];
  const json = sized('result', settlement.workflow, asJson(settlement.value ?? null, 'a result'));
  return [json, settlement.outcome === 'dead' ? settlement.reason : '', error];
}

function takenOf(taken: ScriptTaken): Taken {
  const [kind, workflow, id] = taken;
  if (kind === 0) {
    const [, , , received, expected] = taken;
    return { kind: 'lease', workflow, id, received, expected };
  }
  const [, , , record, fence, tries] = taken;
  return { kind: 'reserved', workflow, action: actionOf(id, record), fence, tries };
}

function snapshotOf(
  id: string,
  prefix: string,
  [facts, unresolved, parked, unread]: ScriptSnapshot,
): WorkflowSnapshot {
  const [leaseId, epoch, state, createdMs, changedMs, begun, channel] = facts;
  return {
    id,
    leaseId,
    inbox: begun === '1' && channel !== null ? channel.slice(prefix.length) : null,
    epoch: Number(epoch),
    state: fromJson(state, id),
    unresolved,
    parked,
    unread,
    createdAtMs: Number(createdMs),
    changedAtMs: Number(changedMs),
  };
}
