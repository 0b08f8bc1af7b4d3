/**
 * The steps of one tenure, one after the other: each expects the epoch that the step before has
 * left. Actions that are emitted while a step is under way go together in the next step.
 *
 * A step without an answer may have been taken. The queue sends it again, unchanged, until the
 * store answers: no step is taken twice. After too long the caller gets `OUTCOME_UNKNOWN`, and the
 * queue reads the workflow before its next step.
 */
import { backoff } from '../core/backoff.ts';
import { timeLeft } from '../core/clock.ts';
import { OutcomeUnknownError } from '../core/errors.ts';
import {
  type HandoffReply,
  type NewAction,
  type Step,
  type StepReply,
  UNREAD_MOST,
  UNRESOLVED_MOST,
} from '../store/port/workflow-store.ts';
import type { Runtime } from '../store/runtime.ts';
import { FutureEpochError, StaleEpochError, WorkflowFullError } from './errors.ts';
import type { WorkflowTenure } from './workflow-tenure.ts';

/** Actions in one request. */
const MAX_ACTIONS = 100;
/** Positions of read results in one request. The rest waits for the next step. */
const MAX_READ = 500;
/** How long a step without an answer is sent again. */
const MAX_RETRY_MS = 30_000;
const PAUSES = { minMs: 50, maxMs: 1_000 };

type SendStep = (step: Step) => Promise<StepReply | HandoffReply>;

interface PendingStep {
  /** The actions to emit; null for any other step. */
  readonly actions: readonly NewAction[] | null;
  readonly goesAlone: boolean;
  /** Whether the request also says which results have been read. */
  readonly marksRead: boolean;
  readonly send: SendStep;
  /**
   * With the epoch before the step, or before this part of it; null if it had been taken long
   * before.
   */
  resolve(epoch: number | null): void;
  reject(error: unknown): void;
}

export class StepQueue {
  readonly #rt: Runtime;
  readonly #tenure: WorkflowTenure;
  #epoch: number;
  readonly #pending: PendingStep[] = [];
  /** Positions of results that were read, and that the store does not know of yet. */
  readonly #read = new Set<string>();
  #isSending = false;
  /** Whether `#epoch` may be wrong: a step was given up without an answer. */
  #isInDoubt = false;

  constructor(rt: Runtime, tenure: WorkflowTenure, epoch: number) {
    this.#rt = rt;
    this.#tenure = tenure;
    this.#epoch = epoch;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /**
   * Resolves with the epoch of the action; null if the store knew the action and did not emit it
   * again. Only an action with an id of the caller's own, `mayBeKnown`, can be known. It goes
   * alone, because the store would refuse the other actions of its request with it.
   */
  emit(action: NewAction, mayBeKnown: boolean): Promise<number | null> {
    const send = (step: Step) => this.#emit(step, [action]);
    return this.#enqueue({ actions: [action], goesAlone: mayBeKnown, marksRead: true, send });
  }

  /** Takes a step that goes alone. Resolves with the epoch before it. */
  async take(send: SendStep): Promise<number> {
    const step = { actions: null, goesAlone: true, marksRead: true, send };
    return (await this.#enqueue(step)) ?? this.#epoch;
  }

  /** Reads epoch and state from the store, after the steps before. Resolves with the state. */
  async refresh(): Promise<unknown> {
    let state: unknown;
    const send = async (): Promise<StepReply> => {
      state = await this.#readAgain();
      return { kind: 'done', epoch: this.#epoch };
    };
    await this.#enqueue({ actions: null, goesAlone: true, marksRead: false, send });
    return state;
  }

  /** The next step tells the store that this result was read. */
  markRead(position: string): void {
    this.#read.add(position);
  }

  /** Tells the store now which results were read. */
  async flushRead(): Promise<void> {
    const { workflow, timeoutMs } = this.#tenure;
    while (this.#read.size > 0) {
      const step = this.#nextStep();
      await this.#rt.store.workflows.markRead(workflow, step, { timeoutMs });
      for (const position of step.read) this.#read.delete(position);
    }
  }

  #enqueue(step: Omit<PendingStep, 'resolve' | 'reject'>): Promise<number | null> {
    const { actions, goesAlone, marksRead, send } = step;
    return new Promise((resolve, reject) => {
      this.#pending.push({ actions, goesAlone, marksRead, send, resolve, reject });
      if (!this.#isSending) void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    for (let group = this.#nextGroup(); group.length > 0; group = this.#nextGroup()) {
      try {
        await this.#sendGroup(group);
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#isSending = false;
  }

  /** The first pending step, and those that can go with it. */
  #nextGroup(): PendingStep[] {
    const first = this.#pending[0];
    if (first === undefined || first.goesAlone) return this.#pending.splice(0, 1);
    const end = this.#pending.findIndex(({ goesAlone }, i) => goesAlone || i === MAX_ACTIONS);
    return this.#pending.splice(0, end === -1 ? this.#pending.length : end);
  }

  async #sendGroup(group: readonly PendingStep[]): Promise<void> {
    const first = group[0];
    if (first === undefined) return;
    this.#tenure.check();
    if (this.#isInDoubt) await this.#readAgain();
    const isAlone = group.length === 1;
    const actions = isAlone ? (first.actions ?? []) : group.flatMap((one) => one.actions ?? []);
    const send = isAlone ? first.send : (step: Step) => this.#emit(step, actions);
    const epochBefore = this.#epoch;
    let step = this.#nextStep();
    let reply = await this.#sendUntilAnswered(() => send(step));
    if (reply.kind === 'full' && this.#read.size > step.read.length) {
      // More results were read than one request can mark: mark the others first.
      await this.flushRead().catch(() => {});
      step = this.#nextStep();
      reply = await this.#sendUntilAnswered(() => send(step));
    }
    this.#isInDoubt = false;
    if (reply.kind !== 'done') throw this.#refusal(reply, actions.length);
    if (first.marksRead) for (const position of step.read) this.#read.delete(position);
    this.#epoch = reply.epoch;
    const isTaken = actions.length === 0 || reply.epoch === epochBefore + actions.length;
    for (let i = 0; i < group.length; i++) group[i]?.resolve(isTaken ? epochBefore + i : null);
  }

  async #readAgain(): Promise<unknown> {
    const { workflow, leaseId, timeoutMs } = this.#tenure;
    const [found] = await this.#rt.store.workflows.read([workflow], { timeoutMs });
    if (found?.leaseId !== leaseId) throw this.#notHeld(found?.leaseId ?? null);
    this.#epoch = found.epoch;
    this.#isInDoubt = false;
    return found.state;
  }

  #emit(step: Step, actions: readonly NewAction[]): Promise<StepReply> {
    const { workflow, timeoutMs } = this.#tenure;
    const { leaseId, epoch, read } = step;
    const request = { leaseId, epoch, read, actions };
    return this.#rt.store.workflows.emit(workflow, request, { timeoutMs });
  }

  #nextStep(): Step {
    const read = [...this.#read].slice(0, MAX_READ);
    return { leaseId: this.#tenure.leaseId, epoch: this.#epoch, read };
  }

  async #sendUntilAnswered<R>(send: () => Promise<R>): Promise<R> {
    const { clock, random } = this.#rt;
    const { signal } = this.#tenure;
    const leftMs = timeLeft(clock, MAX_RETRY_MS);
    const pauses = backoff(PAUSES, random);
    let unknown: OutcomeUnknownError | null = null;
    for (;;) {
      try {
        this.#tenure.check();
      } catch (error) {
        // The step may have been taken while it was allowed: `error` would deny that.
        throw unknown ?? error;
      }
      let pauseMs: number;
      try {
        return await send();
      } catch (error) {
        if (error instanceof OutcomeUnknownError) unknown = error;
        // Nothing has happened, and nothing is in doubt.
        if (unknown === null) throw error;
        this.#isInDoubt = true;
        pauseMs = pauses.nextMs();
        if (leftMs() <= pauseMs) throw unknown;
      }
      await clock.sleep(pauseMs, signal).catch(() => {});
      if (signal.aborted) throw unknown;
    }
  }

  #refusal(reply: Exclude<StepReply | HandoffReply, { kind: 'done' }>, emitted: number): Error {
    const { workflow } = this.#tenure;
    if (reply.kind === 'not-held') return this.#notHeld(reply.leaseId);
    if (reply.kind === 'full') {
      const { unresolved, unread } = reply;
      const isUnresolved = unresolved + emitted > UNRESOLVED_MOST;
      const limit = isUnresolved ? 'unresolved' : 'unread';
      const most = isUnresolved ? UNRESOLVED_MOST : UNREAD_MOST;
      return new WorkflowFullError({ workflow, limit, most, unresolved, unread });
    }
    const facts = { workflow_id: workflow, action_epoch: this.#epoch, current_epoch: reply.epoch };
    return reply.epoch > this.#epoch ? new StaleEpochError(facts) : new FutureEpochError(facts);
  }

  /**
   * The store has `found` as the lease of the workflow, or denies this step although it has ours.
   */
  #notHeld(found: string | null): Error {
    void this.#tenure.verify();
    return this.#tenure.violation(found === this.#tenure.leaseId ? null : found);
  }
}
