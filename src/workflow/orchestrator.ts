/**
 * The one writer of a workflow, from its claim to its end: emits actions, gets their results, and
 * sets the state of the workflow. Each of these is one step in the store, which takes it only from
 * the holder of the workflow's lease. So an orchestrator that was frozen, cut off, revoked or
 * replaced changes nothing.
 */
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
  draftAction,
  emittedAction,
  readAction,
} from './action.ts';
import {
  ActionInvalidError,
  FutureEpochError,
  LeaseViolationError,
  StaleEpochError,
} from './errors.ts';
import { ResultQueue } from './result-queue.ts';
import { type ActionDefinitions, conform, type PayloadIn, type ResultOut } from './schema.ts';
import { StepQueue } from './step-queue.ts';
import { violation } from './violation.ts';
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

const EMIT_OPTIONS = new Set(['target', 'priority', 'timeout', 'actionId']);

export class Orchestrator<A extends ActionDefinitions = ActionDefinitions>
  implements AsyncDisposable
{
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
  #state: unknown;

  constructor(rt: Runtime, tenure: WorkflowTenure, begun: BegunTenure, actions: A) {
    const { workflow, reemitted, dropped } = begun;
    this.#rt = rt;
    this.#tenure = tenure;
    this.#actions = actions;
    this.acquiredAt = tenure.acquiredAt;
    this.#state = workflow.state;
    this.reemitted = reemitted.map((action) => actionOf(workflow.id, action));
    this.dropped = dropped.map((action) => actionOf(workflow.id, action));
    this.#steps = new StepQueue(rt, tenure, workflow.epoch);
    const onPoll = () => void this.hear().catch(() => {});
    this.#results = new ResultQueue(rt, tenure, this.#steps, onPoll);
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

  get state(): unknown {
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
    const { clock, random, events } = this.#rt;
    const definition = this.#definition(type);
    const target = options.target ?? definition.target;
    checkTargetId(target, 'target');
    // Awaited only if there is a schema: without one, two calls keep their order.
    if (definition.payload !== undefined) await conform(definition.payload, payload, 'payload');
    const { priority = DEFAULT_PRIORITY, timeout, actionId = randomUuid(random) } = options;
    const { workflowId: workflow, leaseId } = this;
    const timeoutMs = timeout === undefined ? null : durationMs(timeout, 'timeout');
    const createdAtMs = clock.wallMs();
    span.set({ 'holdfast.action': actionId, 'holdfast.processor': target });
    const draft = draftAction({
      actionId,
      workflow,
      type,
      target,
      payload,
      priority,
      timeoutMs,
      createdAtMs,
      origin,
    });
    const mayBeKnown = options.actionId !== undefined;
    const epoch = await this.#reported(this.#steps.emit(draft.stored, mayBeKnown));
    if (epoch === null) return emittedAction(draft, leaseId, await this.#epochOf(actionId));
    if (events.hasListener('action.emitted'))
      events.emit('action.emitted', { workflow, action: actionId, type, target, leaseId, epoch });
    return emittedAction(draft, leaseId, epoch);
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
      rule: 'it was emitted too long ago: its epoch is no longer known',
    });
  }

  /** Sets the state of the workflow: any JSON. */
  async updateState(state: unknown): Promise<void> {
    const { store, events } = this.#rt;
    const { workflow, leaseId, timeoutMs } = this.#tenure;
    const json = plainState(state);
    const before = await this.#reported(
      this.#steps.take((step) =>
        store.workflows.update(workflow, { ...step, state: json }, { timeoutMs }),
      ),
    );
    this.#state = json;
    events.emit('workflow.updated', { workflow, leaseId, epoch: before + 1, state: json });
  }

  /** Sets the state to `step_completed` or `step_failed`, as the result says. */
  async handleResult(result: Pick<ActionResult, 'success'>): Promise<void> {
    await this.updateState(result.success ? 'step_completed' : 'step_failed');
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
    this.#state = await this.#reported(this.#steps.refresh());
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

function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

/** A copy, so that later changes by the caller do not count. */
function plainState(state: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(state ?? null));
  } catch {
    throw new ConfigError({ field: 'state', value: typeof state, rule: 'it is JSON' });
  }
}
