/**
 * The one writer of a workflow, from its claim to its end: emits actions, gets their results, and
 * sets the state of the workflow. Each of these is one step in the store, which takes it only from
 * the holder of the workflow's lease. So an orchestrator that was frozen, cut off, revoked or
 * replaced changes nothing.
 */
import { createHash } from 'node:crypto';
import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError, HoldfastError } from '../core/errors.ts';
import { checkTargetId, randomUuid } from '../core/ids.ts';
import { checkKnown } from '../core/options.ts';
import type { Span } from '../core/tracing.ts';
import { LEASE_CLASSES } from '../lease/timings.ts';
import type { BeginReply } from '../store/port/workflow-store.ts';
import type { Runtime } from '../store/runtime.ts';
import {
  type Action,
  type ActionResult,
  actionOf,
  DEFAULT_PRIORITY,
  type Draft,
  draftAction,
  emittedAction,
  readAction,
} from './action.ts';
import {
  ActionInvalidError,
  FutureEpochError,
  LeaseViolationError,
  StaleEpochError,
  WorkflowStepError,
} from './errors.ts';
import type { CallFacts } from './kept-step.ts';
import { ResultQueue } from './result-queue.ts';
import { type RetryPolicy, readRetry } from './retry-policy.ts';
import { type ActionDefinitions, conform, type PayloadIn, type ResultOut } from './schema.ts';
import { StepQueue } from './step-queue.ts';
import { violation } from './violation.ts';
import { type ReceivedSignal, type StepContext, WorkflowRun } from './workflow-run.ts';
import type { WorkflowTenure } from './workflow-tenure.ts';

/** `renew` renews a lease only when less than this is left. */
export const RENEW_BELOW_MS = 60_000;

export interface EmitOptions {
  /** The processor that executes the action; default the `target` of the action's definition. */
  target?: string;
  /** 1 to 10, default 5: workflows of higher priority go first. */
  priority?: number;
  /** How long the handler may take; default the `timeout` of the processor. */
  timeout?: Duration;
  /** An id of your own, a UUID: emitting the same id again does not emit a second action. */
  actionId?: string;
  /** How often the action is tried; default the `retry` of its definition, or of its processor. */
  retry?: RetryPolicy;
}

export interface CallOptions extends Omit<EmitOptions, 'actionId' | 'target'> {
  /** The name of the step; default the action type. It is unique in its workflow. */
  as?: string;
  /** The processor that executes the action; default the `target` of the action's definition. */
  to?: string;
}

export interface StepOptions {
  /** How often the step is tried in this process before it has failed; default once. */
  retry?: RetryPolicy;
}

export interface WaitOptions {
  /** How long to wait, from the first time the workflow came here. */
  timeout?: Duration;
  /** The name of the step; default the name of the signal. */
  as?: string;
}

export interface HandoffOptions {
  /** How long the successor has to claim the workflow; default 30 s. */
  window?: Duration;
}

/** The successor passes it to `workflows.claim`. */
export interface Handoff {
  readonly workflowId: string;
  readonly old_lease_id: string;
  readonly new_lease_id: string;
  readonly transfer_epoch: number;
}

export type BegunTenure = Extract<BeginReply, { kind: 'begun' }>;

const EMIT_OPTIONS = new Set(['target', 'priority', 'timeout', 'actionId', 'retry']);
const CALL_OPTIONS = new Set(['as', 'to', 'priority', 'timeout', 'retry']);
/** A policy that leaves something out has this. */
const ACTION_RETRY = { tries: 5, minMs: 200, maxMs: 60_000 };
const STEP_RETRY = { tries: 1, minMs: 200, maxMs: 60_000 };
const MAX_SLEEP_MS = 3_650 * 86_400_000;
/** Characters of a payload that are kept with a call, to say what does not fit. */
const MAX_PAYLOAD_TEXT = 200;

/** What is kept of a workflow's function, for the class that runs it. */
export let runOf: (order: Orchestrator) => WorkflowRun;

export class Orchestrator<A extends ActionDefinitions = ActionDefinitions, S = unknown>
  implements AsyncDisposable
{
  static {
    runOf = (order) => order.#named;
  }

  /** Actions of earlier tenures without a result. The claim emitted them again, with new epochs. */
  readonly reemitted: readonly Action[];
  /** Actions of a revoked tenure without a result. The claim dropped them. */
  readonly dropped: readonly Action[];
  /**
   * When the lease was acquired, by the clocks at that time. Setting a clock does not change it.
   */
  readonly acquiredAt: Date;
  readonly #rt: Runtime;
  readonly #tenure: WorkflowTenure;
  readonly #actions: ActionDefinitions;
  readonly #steps: StepQueue;
  readonly #results: ResultQueue;
  readonly #named: WorkflowRun;
  /** The hash of each call of this tenure, by its name. */
  readonly #calls = new Map<string, CallFacts>();
  #state: S;

  constructor(rt: Runtime, tenure: WorkflowTenure, begun: BegunTenure, actions: A) {
    const { workflow, reemitted, dropped } = begun;
    this.#rt = rt;
    this.#tenure = tenure;
    this.#actions = actions;
    this.acquiredAt = tenure.acquiredAt;
    this.#state = workflow.state as S;
    this.reemitted = reemitted.map((action) => actionOf(workflow.id, action));
    this.dropped = dropped.map((action) => actionOf(workflow.id, action));
    this.#steps = new StepQueue(rt, tenure, workflow.epoch);
    const onPoll = () => void this.hear().catch(() => {});
    this.#results = new ResultQueue(rt, tenure, this.#steps, onPoll);
    this.#named = new WorkflowRun(rt, tenure);
  }

  get workflowId(): string {
    return this.#tenure.workflow;
  }

  /** The id of this tenure's lease: a UUID that no other tenure of any workflow has. */
  get leaseId(): string {
    return this.#tenure.leaseId;
  }

  /** Higher than the fence of every earlier tenure of this workflow. */
  get fence(): number {
    return this.#tenure.lease.fence;
  }

  /** The epoch that the next action, or change of state, gets. */
  get epoch(): number {
    return this.#steps.epoch;
  }

  get state(): S {
    return this.#state;
  }

  /** Fires when this tenure is over, for any reason. */
  get signal(): AbortSignal {
    return this.#tenure.signal;
  }

  /** Emits an action. Resolves when the store has it; `result` waits for its result. */
  emit<K extends keyof A & string>(
    type: K,
    payload: PayloadIn<A[K]>,
    options: EmitOptions = {},
  ): Promise<Action> {
    const { tracing } = this.#rt;
    const attributes = { 'holdfast.workflow': this.workflowId, 'holdfast.action_type': type };
    const emitted = tracing.run({ name: 'holdfast.emit', attributes, kind: 'producer' }, (span) =>
      this.#emit(type, payload, options, { span, origin: tracing.origin() }),
    );
    return Promise.resolve(emitted);
  }

  async #emit<K extends keyof A & string>(
    type: K,
    payload: PayloadIn<A[K]>,
    options: EmitOptions,
    { span, origin }: { span: Span; origin: string | null },
  ): Promise<Action> {
    checkKnown(options, EMIT_OPTIONS);
    const definition = this.#definition(type);
    // Awaited only if there is a schema: without one, two calls keep their order.
    if (definition.payload !== undefined) await conform(definition.payload, payload, 'payload');
    const draft = this.#draft(type, payload, options, origin);
    const { actionId, target } = draft.facts;
    span.set({ 'holdfast.action': actionId, 'holdfast.processor': target });
    const epoch = await this.#send(draft, options.actionId !== undefined);
    return emittedAction(draft, this.leaseId, epoch ?? (await this.#epochOf(actionId)));
  }

  #draft(type: string, payload: unknown, options: EmitOptions, origin: string | null): Draft {
    const { clock, random } = this.#rt;
    const definition = this.#definition(type);
    const { target = definition.target, retry = definition.retry, timeout } = options;
    const { priority = DEFAULT_PRIORITY, actionId = randomUuid(random) } = options;
    checkTargetId(target, 'target');
    return draftAction({
      actionId,
      workflow: this.workflowId,
      type,
      target,
      payload,
      priority,
      timeoutMs: timeout === undefined ? null : durationMs(timeout, 'timeout'),
      createdAtMs: clock.wallMs(),
      origin,
      retry: retry === undefined ? undefined : readRetry(retry, ACTION_RETRY),
    });
  }

  /** Returns the epoch of the action; null if it was emitted before. */
  async #send({ facts, stored }: Draft, mayBeKnown: boolean): Promise<number | null> {
    const { events } = this.#rt;
    const { workflow, actionId: action, type, target } = facts;
    const epoch = await this.#reported(this.#steps.emit(stored, mayBeKnown));
    if (epoch !== null && events.hasListener('action.emitted')) {
      const { leaseId } = this;
      events.emit('action.emitted', { workflow, action, type, target, leaseId, epoch });
    }
    return epoch;
  }

  /**
   * Emits an action and waits for its result. Called again under the same name, in this tenure or a
   * later one, it finds the action that is under way or done. Throws `WORKFLOW_STEP_FAILED` if the
   * action failed.
   */
  async call<K extends keyof A & string>(
    type: K,
    payload: PayloadIn<A[K]>,
    options: CallOptions = {},
  ): Promise<ResultOut<A[K]>> {
    checkKnown(options, CALL_OPTIONS);
    const { as = type, to: target, priority, timeout, retry } = options;
    const definition = this.#definition(type);
    if (definition.payload !== undefined) await conform(definition.payload, payload, 'payload');
    const actionId = this.#named.idOf(as);
    const { tracing } = this.#rt;
    const emit = { actionId, ...defined({ target, priority, timeout, retry }) };
    const draft = this.#draft(type, payload, emit, tracing.origin());
    const found = await this.#named.find(as, 'call');
    const facts = callFacts(draft);
    this.#checkCall(as, found?.value as CallFacts | undefined, facts);
    const result = await this.#named.line(as, () => this.#call(as, draft, facts));
    if (result.success) return result.value as ResultOut<A[K]>;
    const failure = result.error ?? { name: 'Error', message: 'it has no error', details: null };
    const { workflowId: workflow } = this;
    throw new WorkflowStepError({
      workflow,
      step: as,
      failure,
      isCall: true,
      isDead: result.is_dead,
    });
  }

  async #call(name: string, draft: Draft, value: CallFacts): Promise<ActionResult> {
    const { workflow, timeoutMs } = this.#tenure;
    const { actionId } = draft.facts;
    const isKept = (await this.#named.find(name, 'call')) !== undefined;
    const isDone =
      isKept &&
      (await this.#rt.store.workflows.resultOf(workflow, actionId, { timeoutMs })) !== null;
    if (!isDone) {
      // A kept call whose action was dropped, or is under way: the same id is emitted once.
      await this.#send({ ...draft, stored: { ...draft.stored, step: { name, value } } }, isKept);
      this.#named.keptCall(name, value);
    }
    return this.#results.of(actionId);
  }

  #checkCall(name: string, kept: CallFacts | undefined, now: CallFacts): void {
    const before = kept ?? this.#calls.get(name) ?? now;
    this.#calls.set(name, before);
    if (before.hash !== now.hash) throw this.#named.mismatch(name, callText(before), callText(now));
  }

  /**
   * Runs `run` here, under the lease, and keeps what it returns: any JSON. Called again under the
   * same name, in this tenure or a later one, it returns that and does not run. A failure is kept,
   * too, and thrown as `WORKFLOW_STEP_FAILED`.
   */
  async step<T>(
    name: string,
    run: (context: StepContext) => T | Promise<T>,
    options: StepOptions = {},
  ): Promise<T> {
    checkKnown(options, new Set(['retry']));
    return this.#reported(this.#named.step(name, run, readRetry(options.retry ?? {}, STEP_RETRY)));
  }

  /**
   * Resolves when so much time has passed since the workflow first came here, by the store's clock.
   * The function of a workflow is suspended meanwhile, and holds no lease.
   */
  async sleep(name: string, duration: Duration): Promise<void> {
    const ms = durationMs(duration, 'duration');
    if (ms > MAX_SLEEP_MS)
      throw new ConfigError({
        field: 'duration',
        value: duration,
        rule: 'it must be at most 3650d',
      });
    return this.#reported(this.#named.sleep(name, ms));
  }

  /**
   * Resolves with the next signal of this name that no other wait has received; null if none came
   * within the timeout. The function of a workflow is suspended meanwhile, and holds no lease.
   */
  waitFor<T = unknown>(
    signal: string,
    options: WaitOptions & { timeout: Duration },
  ): Promise<ReceivedSignal<T> | null>;
  waitFor<T = unknown>(signal: string, options?: WaitOptions): Promise<ReceivedSignal<T>>;
  async waitFor<T>(signal: string, options: WaitOptions = {}): Promise<ReceivedSignal<T> | null> {
    checkKnown(options, new Set(['timeout', 'as']));
    const { timeout, as = signal } = options;
    const timeoutMs = timeout === undefined ? null : durationMs(timeout, 'timeout');
    const received = this.#reported(this.#named.waitFor(signal, as, timeoutMs));
    return received as Promise<ReceivedSignal<T> | null>;
  }

  /** The epoch of an action that was emitted before. */
  async #epochOf(actionId: string): Promise<number> {
    const { workflows } = this.#rt.store;
    const { workflow, timeoutMs } = this.#tenure;
    const result = await workflows.resultOf(workflow, actionId, { timeoutMs });
    if (result !== null) return result.epoch;
    const { entries } = await workflows.history(workflow, { timeoutMs });
    const emitted = entries.findLast(
      ({ what }) =>
        (what.kind === 'emitted' || what.kind === 'reemitted') && what.actionId === actionId,
    );
    if (emitted !== undefined) return emitted.epoch - 1;
    throw new ActionInvalidError({
      field: 'action_id',
      value: actionId,
      rule: 'it was emitted too long ago: its epoch is no longer known',
    });
  }

  /** Sets the state of the workflow: any JSON. */
  async updateState(state: S): Promise<void> {
    const { store, events } = this.#rt;
    const { workflow, leaseId, timeoutMs } = this.#tenure;
    const json = plainState(state);
    const before = await this.#reported(
      this.#steps.take((step) =>
        store.workflows.update(workflow, { ...step, state: json }, { timeoutMs }),
      ),
    );
    this.#state = json as S;
    events.emit('workflow.updated', { workflow, leaseId, epoch: before + 1, state: json });
  }

  /** Sets the state to `step_completed` or `step_failed`, as the result says. */
  async handleResult(result: Pick<ActionResult, 'success'>): Promise<void> {
    await this.updateState((result.success ? 'step_completed' : 'step_failed') as S);
  }

  /** Resolves with the result of an action. Rejects if this tenure ends before there is one. */
  result<K extends keyof A & string>(
    actionId: string,
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<ActionResult<ResultOut<A[K]>>> {
    return this.#results.of(actionId, signal) as Promise<ActionResult<ResultOut<A[K]>>>;
  }

  /**
   * All unread results, and then each as it comes in. A result counts as read with the next step.
   */
  results({ signal }: { signal?: AbortSignal } = {}): AsyncGenerator<ActionResult, void, void> {
    return this.#results.all(signal);
  }

  /**
   * Whether an action has the lease and the epoch that this tenure's next action would have; throws
   * if not.
   */
  validateAction(value: unknown): true {
    const { lease_id: lease, action_id: id } = (value ?? {}) as Partial<Action>;
    const { workflowId, leaseId, epoch } = this;
    if (lease !== leaseId)
      throw this.#report(
        new LeaseViolationError({
          context: {
            workflow_id: workflowId,
            expected_lease: leaseId,
            received_lease: asText(lease),
          },
        }),
        asText(id),
      );
    const action = readAction(value);
    if (action.epoch === epoch) return true;
    const facts = { workflow_id: workflowId, action_epoch: action.epoch, current_epoch: epoch };
    const error = action.epoch < epoch ? new StaleEpochError(facts) : new FutureEpochError(facts);
    throw this.#report(error, action.action_id);
  }

  /** In seconds, by the clock of this host that says less; 0 when the tenure is over. */
  remainingTtl(): number {
    return this.#tenure.lease.remainingMs() / 1_000;
  }

  /** Whether the lease has no time left. */
  isExpired(): boolean {
    return this.#tenure.isExpired;
  }

  /** Throws if this tenure may not take a step any more, as far as this process knows. */
  checkLeaseValidity(): void {
    this.#tenure.check();
  }

  /**
   * Renews the lease if less than a minute is left, and says whether it did. It is also renewed
   * automatically.
   */
  async renew(): Promise<boolean> {
    const { lease } = this.#tenure;
    try {
      this.checkLeaseValidity();
    } catch (error) {
      throw this.#report(error);
    }
    return lease.remainingMs() < RENEW_BELOW_MS ? lease.renew() : false;
  }

  /** Reads epoch and state from the store: after a `STALE_EPOCH`, before you decide again. */
  async refresh(): Promise<void> {
    this.#state = (await this.#reported(this.#steps.refresh())) as S;
  }

  /**
   * Hands the workflow to the orchestrator that claims it with the returned handoff. This
   * orchestrator can do nothing any more. If no process claims the workflow within the window, it
   * is free for any.
   */
  async handoff(options: HandoffOptions = {}): Promise<Handoff> {
    checkKnown(options, new Set(['window']));
    const { store, random, events } = this.#rt;
    const { workflow, leaseId, timeoutMs } = this.#tenure;
    const successor = randomUuid(random);
    const windowMs = durationMs(options.window ?? LEASE_CLASSES.workflow.claimWindowMs, 'window');
    const to = { successor, windowMs: Math.max(1, Math.floor(windowMs)) };
    const transferEpoch = await this.#reported(
      this.#steps.take(async (step) => {
        const request = { ...step, ...to };
        const reply = await store.workflows.handoff(workflow, request, { timeoutMs });
        // The step was taken before, and only the answer was lost.
        const isTaken = reply.kind === 'not-held' && reply.leaseId === successor;
        return isTaken ? { kind: 'done', epoch: step.epoch + 1 } : reply;
      }),
    );
    this.#tenure.concede(successor);
    events.emit('workflow.transferred', {
      workflow,
      oldLeaseId: leaseId,
      newLeaseId: successor,
      transferEpoch,
    });
    return {
      workflowId: workflow,
      old_lease_id: leaseId,
      new_lease_id: successor,
      transfer_epoch: transferEpoch,
    };
  }

  /** Ends the tenure. Emitted actions are still executed; their results wait for the next claim. */
  async release(): Promise<void> {
    await this.#steps.flushRead().catch(() => {});
    await this.#tenure.lease.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /**
   * A hint: there may be results, the lease may be revoked, or a dead action is to be tried again.
   */
  async hear(): Promise<void> {
    void this.#named.hear().catch(() => {});
    // Nearly always the hint is about a result that a caller waits for.
    if (await this.#results.hasMore()) return;
    const found = await this.#tenure.read();
    if (found?.leaseId !== this.leaseId) {
      void this.#tenure.verify();
      return;
    }
    if (found.unread > 0 && this.#results.isAwaited) void this.#results.refresh();
    if (found.parked > 0) await this.#unpark();
  }

  /** An action that is parked during a tenure was revived by an operator: it is emitted again. */
  async #unpark(): Promise<void> {
    const { workflow, timeoutMs } = this.#tenure;
    const unpark = this.#steps.take((step) =>
      this.#rt.store.workflows.unpark(workflow, step, { timeoutMs }),
    );
    // Refused if another step came first. The next hint leads here again.
    await unpark.catch(() => this.refresh());
  }

  #definition(type: string): ActionDefinitions[string] {
    const actions = this.#actions;
    if (Object.hasOwn(actions, type)) return actions[type] ?? {};
    if (Object.keys(actions).length === 0) return {};
    const rule = `there is no such action; there are ${Object.keys(actions).join(', ')}`;
    throw new ConfigError({ field: 'type', value: type, rule });
  }

  /** A step that was refused is reported by an event, as well as thrown. */
  async #reported<T>(step: Promise<T>): Promise<T> {
    try {
      return await step;
    } catch (error) {
      throw this.#report(error);
    }
  }

  #report<E>(error: E, action: string | null = null): E {
    if (error instanceof HoldfastError) {
      const facts = violation(error, action);
      if (facts !== null) this.#rt.events.emit('workflow.violation', facts);
    }
    return error;
  }
}

function defined<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

function callFacts({ facts: { type, target }, payload }: Draft): CallFacts {
  const hash = createHash('sha256').update(payload).digest('hex').slice(0, 16);
  return { type, target, hash: `${type} ${target} ${hash}`, payload: shortText(payload) };
}

function shortText(json: string): string {
  return json.length <= MAX_PAYLOAD_TEXT ? json : `${json.slice(0, MAX_PAYLOAD_TEXT)}…`;
}

function callText({ type, target, payload }: CallFacts): string {
  return `a call of ${type} to ${target} with ${payload}`;
}

function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** A copy, so that later changes by the caller do not count. */
function plainState(state: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(state ?? null));
  } catch {
    throw new ConfigError({ field: 'state', value: typeof state, rule: 'it must be JSON' });
  }
}
