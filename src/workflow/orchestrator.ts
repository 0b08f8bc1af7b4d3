/**
 * The one writer of a workflow, from its claim to its end: it emits actions, hears of their results, and says what state the workflow is
 * in. Each of these is one step in the store, which takes it only from who holds the workflow then; so an orchestrator that was frozen,
 * cut off, revoked or replaced without knowing changes nothing.
 */
import type { Clock } from '../core/clock.ts';
import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError, HoldfastError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { checkTargetId, randomUuid } from '../core/ids.ts';
import { checkKnown } from '../core/options.ts';
import type { Random } from '../core/random.ts';
import { type Span, type Tracing, untraced } from '../core/tracing.ts';
import { LEASE_CLASSES } from '../lease/classes.ts';
import type { Lease } from '../lease/lease.ts';
import type { Store } from '../store/port/store.ts';
import type { WorkflowSnapshot } from '../store/port/workflow-store.ts';
import { type Action, type ActionResult, DEFAULT_PRIORITY, Draft, readAction } from './action.ts';
import {
  ActionInvalidError,
  FutureEpochError,
  LeaseExpiredError,
  LeaseViolationError,
  StaleEpochError,
} from './errors.ts';
import { plainState } from './plain-state.ts';
import { ResultInbox } from './result-inbox.ts';
import { type ActionDefinitions, conform, type PayloadIn, type ResultOut } from './schema.ts';
import { StepQueue } from './step-queue.ts';
import { violation } from './violation.ts';

/** A lease is worth renewing when it has less than this left. */
export const RENEW_BELOW_MS = 60_000;

export interface EmitOptions {
  /** The processor that is to do it; default what the action's definition says. */
  target?: string;
  /** 1 to 10, default 5: workflows of higher priority go first. */
  priority?: number;
  /** How long its handler may take; default what its processor says. */
  timeout?: Duration;
  /** To emit the same thing again, should it not be known whether it was: an id of one's own, a UUID. */
  actionId?: string;
}

export interface HandoffOptions {
  /** How long the successor has to claim it; default 30 s. */
  window?: Duration;
}

/** What its successor needs to claim it. */
export interface Handoff {
  readonly workflowId: string;
  readonly old_lease_id: string;
  readonly new_lease_id: string;
  readonly transfer_epoch: number;
}

export interface OrchestratorParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly tracing?: Tracing;
  readonly lease: Lease;
  readonly ttlMs: number;
  readonly timeoutMs: number;
  readonly actions: ActionDefinitions;
  readonly epoch: number;
  readonly state: unknown;
  /** What the tenure before had emitted, and has been emitted anew by the claim. */
  readonly reemitted: readonly Action[];
  /** What had been emitted by a tenure that was revoked, and has been dropped. */
  readonly dropped: readonly Action[];
  /** How the workflow is, by a request that others may share. */
  read(): Promise<WorkflowSnapshot | null>;
  onOver(): void;
}

const EMIT_OPTIONS = new Set(['target', 'priority', 'timeout', 'actionId']);

export class Orchestrator<A extends ActionDefinitions = ActionDefinitions>
  implements AsyncDisposable
{
  /** What earlier tenures had emitted and had no result yet: it was emitted anew by the claim, with new epochs. */
  readonly reemitted: readonly Action[];
  /** The same, of a tenure that was revoked: it was dropped by the claim. */
  readonly dropped: readonly Action[];
  /** As the clocks had it at the claim: whatever becomes of them, it stays. */
  readonly acquiredAt: Date;
  readonly #parts: OrchestratorParts;
  readonly #steps: StepQueue;
  readonly #inbox: ResultInbox;
  #state: unknown;
  /** To whom the workflow was handed over. */
  #successor: string | null = null;

  constructor(parts: OrchestratorParts) {
    const { lease } = parts;
    this.#parts = parts;
    this.acquiredAt = lease.acquiredAt;
    this.#state = parts.state;
    this.reemitted = parts.reemitted;
    this.dropped = parts.dropped;
    const over = lease.signal;
    const common = { ...parts, workflow: lease.key, leaseId: lease.holder, over };
    this.#steps = new StepQueue(
      {
        ...common,
        check: () => this.checkLeaseValidity(),
        onRefused: () => void this.#doubt(),
      },
      parts.epoch,
    );
    this.#inbox = new ResultInbox({
      ...common,
      onRead: (position) => this.#steps.markRead(position),
      onQuiet: () => void this.hear().catch(() => {}),
    });
    lease.signal.addEventListener('abort', () => parts.onOver(), { once: true });
  }

  get workflowId(): string {
    return this.#parts.lease.key;
  }

  /** The proof of this tenure: a UUID that no other tenure of any workflow has. */
  get leaseId(): string {
    return this.#parts.lease.holder;
  }

  /** Higher than that of every tenure of this workflow before. */
  get fence(): number {
    return this.#parts.lease.fence;
  }

  /** What the next action, or change of state, will have. */
  get epoch(): number {
    return this.#steps.epoch;
  }

  get state(): unknown {
    return this.#state;
  }

  /** Fires when this tenure is over, whatever ended it. */
  get signal(): AbortSignal {
    return this.#parts.lease.signal;
  }

  /** Wants something done. Resolves when it is on its way, durably; what comes of it is its `result`. */
  emit<K extends keyof A & string>(
    type: K,
    payload: PayloadIn<A[K]>,
    options: EmitOptions = {},
  ): Promise<Action> {
    const { tracing = untraced } = this.#parts;
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
    const { clock, random, events } = this.#parts;
    const definition = this.#definition(type);
    const target = options.target ?? definition.target;
    checkTargetId(target, 'target');
    // Only where it has to be: what is called next is not to overtake it.
    if (definition.payload !== undefined) await conform(definition.payload, payload, 'payload');
    const { priority = DEFAULT_PRIORITY, timeout, actionId = randomUuid(random) } = options;
    const { workflowId: workflow, leaseId } = this;
    const timeoutMs = timeout === undefined ? null : durationMs(timeout, 'timeout');
    const createdAtMs = clock.wallMs();
    const parts = { actionId, workflow, type, target, payload, priority, timeoutMs, createdAtMs };
    span.set({ 'holdfast.action': actionId, 'holdfast.processor': target });
    const draft = new Draft({ ...parts, origin });
    const mayBeKnown = options.actionId !== undefined;
    const epoch = await this.#guarded(this.#steps.emit(draft.stored, mayBeKnown));
    if (epoch === null) return draft.emitted(leaseId, await this.#epochOf(actionId));
    if (events.hasListener('action.emitted'))
      events.emit('action.emitted', { workflow, action: actionId, type, target, leaseId, epoch });
    return draft.emitted(leaseId, epoch);
  }

  /** What an action had that was emitted before. */
  async #epochOf(actionId: string): Promise<number> {
    const { store, timeoutMs } = this.#parts;
    const result = await store.workflows.resultOf(this.workflowId, actionId, { timeoutMs });
    if (result !== null) return result.epoch;
    const { entries } = await store.workflows.history(this.workflowId, { timeoutMs });
    const emitted = entries.findLast(
      ({ what }) =>
        (what.kind === 'emitted' || what.kind === 'reemitted') && what.actionId === actionId,
    );
    if (emitted !== undefined) return emitted.epoch - 1;
    throw new ActionInvalidError({
      field: 'action_id',
      rule: 'it was emitted too long ago to say when',
    });
  }

  /** Says what state the workflow is in: any JSON. */
  async updateState(state: unknown): Promise<void> {
    const { store, timeoutMs, events } = this.#parts;
    const json = plainState(state);
    const before = await this.#guarded(
      this.#steps.take((step) =>
        store.workflows.update(this.workflowId, { ...step, state: json }, { timeoutMs }),
      ),
    );
    this.#state = json;
    const { workflowId: workflow, leaseId } = this;
    events.emit('workflow.updated', { workflow, leaseId, epoch: before + 1, state: json });
  }

  /** The usual answer to a result: the state is `step_completed`, or `step_failed`. */
  async handleResult(result: Pick<ActionResult, 'success'>): Promise<void> {
    await this.updateState(result.success ? 'step_completed' : 'step_failed');
  }

  /** What came of an action, as soon as it is known. Rejects when this tenure is over before that. */
  result<K extends keyof A & string>(
    actionId: string,
    { signal }: { signal?: AbortSignal } = {},
  ): Promise<ActionResult<ResultOut<A[K]>>> {
    return this.#inbox.of(actionId, signal) as Promise<ActionResult<ResultOut<A[K]>>>;
  }

  /** All results that nobody has read, and then each as it comes in. What was taken from here counts as read with the next step. */
  results({ signal }: { signal?: AbortSignal } = {}): AsyncGenerator<ActionResult, void, void> {
    return this.#inbox.all(signal);
  }

  /** Whether an action could be this tenure's next: of its lease, and of its epoch. Throws what is wrong with it. */
  validateAction(value: unknown): true {
    const { lease_id: lease, action_id: id } = (value ?? {}) as Partial<Action>;
    const { workflowId, leaseId, epoch } = this;
    if (lease !== leaseId)
      throw this.#told(
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
    throw this.#told(error, action.action_id);
  }

  /** In seconds, as far as the less hopeful of this host's clocks can tell; 0 when it is over. */
  remainingTtl(): number {
    return this.#parts.lease.remainingMs() / 1_000;
  }

  /** True from the very moment at which nothing is left. */
  isExpired(): boolean {
    return this.#parts.lease.remainingMs() <= 0;
  }

  /** Throws if this tenure may not take a step any more, as far as is known here. */
  checkLeaseValidity(): void {
    const { lease, ttlMs } = this.#parts;
    if (!this.isExpired()) return;
    if (this.#successor !== null)
      throw new LeaseViolationError({
        context: {
          workflow_id: this.workflowId,
          expected_lease: this.#successor,
          received_lease: this.leaseId,
        },
      });
    const isLetGo = lease.state === 'releasing' || lease.state === 'released';
    if (!isLetGo && (lease.lossReason === 'expired' || lease.state !== 'lost')) {
      const { workflowId: workflow, leaseId, acquiredAt } = this;
      throw new LeaseExpiredError({ workflow, leaseId, acquiredAt, ttlMs });
    }
    throw new LeaseViolationError({
      context: { workflow_id: this.workflowId, expected_lease: null, received_lease: this.leaseId },
    });
  }

  /** Renews the lease if less than a minute is left; it is renewed by itself too. Says whether it was. */
  async renew(): Promise<boolean> {
    const { lease } = this.#parts;
    try {
      this.checkLeaseValidity();
    } catch (error) {
      throw this.#told(error);
    }
    return lease.remainingMs() < RENEW_BELOW_MS ? lease.renew() : false;
  }

  /** Asks the store how things are: after a `STALE_EPOCH`, to decide anew. */
  async refresh(): Promise<void> {
    this.#state = await this.#guarded(this.#steps.refresh());
  }

  /**
   * Hands the workflow to another orchestrator: whoever claims it with what this returns. From here on this one can do nothing.
   * If nobody claims it within the window, it is free for anybody.
   */
  async handoff(options: HandoffOptions = {}): Promise<Handoff> {
    checkKnown(options, new Set(['window']));
    const { store, lease, random, timeoutMs, events } = this.#parts;
    const { workflowId, leaseId } = this;
    const successor = randomUuid(random);
    const windowMs = durationMs(options.window ?? LEASE_CLASSES.workflow.claimWindowMs, 'window');
    const to = { successor, windowMs: Math.max(1, Math.floor(windowMs)) };
    const transferEpoch = await this.#guarded(
      this.#steps.take(async (step) => {
        const reply = await store.workflows.handoff(workflowId, { ...step, ...to }, { timeoutMs });
        // It had been taken already, and only the answer was lost.
        const isTaken = reply.kind === 'not-held' && reply.leaseId === successor;
        return isTaken ? { kind: 'done', epoch: step.epoch + 1 } : reply;
      }),
    );
    this.#successor = successor;
    lease.concede(successor);
    events.emit('workflow.transferred', {
      ...{ workflow: workflowId, oldLeaseId: leaseId, newLeaseId: successor, transferEpoch },
    });
    return {
      workflowId,
      old_lease_id: leaseId,
      new_lease_id: successor,
      transfer_epoch: transferEpoch,
    };
  }

  /** Lets go. What was emitted stays to be done, and its results wait for whoever claims the workflow next. */
  async release(): Promise<void> {
    const { lease } = this.#parts;
    await this.#steps.flushRead().catch(() => {});
    await lease.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** Something may be different: there are results, the lease was revoked, or a dead action is to be tried again. */
  async hear(): Promise<void> {
    // Nearly always it is a result that somebody waits for.
    if (await this.#inbox.hasMore()) return;
    const { read } = this.#parts;
    const found = await read();
    if (found?.leaseId !== this.leaseId) {
      void this.#doubt();
      return;
    }
    if (found.unread > 0 && this.#inbox.isAwaited) void this.#inbox.look();
    if (found.parked > 0) await this.#unpark();
  }

  /**
   * The store has refused us. Mostly the lease is over, and asking for a renewal shows it. If it is not, the store has lost what it knew
   * of this tenure: the lease alone is good for nothing, and keeps others from the workflow.
   */
  async #doubt(): Promise<void> {
    const { lease } = this.#parts;
    if (await lease.renew()) await lease.release();
  }

  /** What is parked while there is a tenure was revived by an operator: it is emitted anew. */
  async #unpark(): Promise<void> {
    const { store, timeoutMs } = this.#parts;
    const unpark = this.#steps.take((step) =>
      store.workflows.unpark(this.workflowId, step, { timeoutMs }),
    );
    // Unless something else has happened meanwhile: the next hint brings it here again.
    await unpark.catch(() => this.refresh());
  }

  #definition(type: string): ActionDefinitions[string] {
    const { actions } = this.#parts;
    if (Object.hasOwn(actions, type)) return actions[type] ?? {};
    if (Object.keys(actions).length === 0) return {};
    const rule = `there is no such action; there are ${Object.keys(actions).join(', ')}`;
    throw new ConfigError({ field: 'type', value: type, rule });
  }

  /** A step that was refused is told of, as well as thrown. */
  async #guarded<T>(step: Promise<T>): Promise<T> {
    try {
      return await step;
    } catch (error) {
      throw this.#told(error);
    }
  }

  #told<E>(error: E, action: string | null = null): E {
    if (error instanceof HoldfastError) {
      const facts = violation(error, action);
      if (facts !== null) this.#parts.events.emit('workflow.violation', facts);
    }
    return error;
  }
}

function asText(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
