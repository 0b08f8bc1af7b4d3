/**
 * Executes the actions that orchestrators emit. Any number of processes may run a processor of the
 * same name: the store gives each action to one of them, one action of a workflow at a time, in the
 * order of their epochs. The step of the store that gives out an action also checks its lease and
 * epoch.
 *
 * **New.** Until `start()`. **Running.** Takes as many actions as `concurrency` allows, on a hint,
 * when a place becomes free, when a retry is due, and every second. **Stopping.** Takes no new
 * actions; those under way may finish, are asked to stop after a while, and are left to other
 * processes if they do not. **Stopped.** Permanently.
 */

import { Batcher } from '../core/batcher.ts';
import { isDoneWithin } from '../core/clock.ts';
import { durationMs } from '../core/duration.ts';
import type { HoldfastError } from '../core/errors.ts';
import { Loop } from '../core/loop.ts';
import { type TimerEntry, TimerHeap } from '../core/timer-heap.ts';
import type { Deadline } from '../core/validity.ts';
import { type HeldReply, streamTopic } from '../store/port/stream-store.ts';
import { actionStream, type Settlement, type Taken } from '../store/port/workflow-store.ts';
import type { Runtime } from '../store/runtime.ts';
import { Subscription } from '../store/subscription.ts';
import { type Action, type ActionResult, readAction, resultOf } from './action.ts';
import { Attempt, type Ending, type HandlerContext, type ReservedAction } from './attempt.ts';
import { ClaimSet } from './claim-set.ts';
import { FutureEpochError, LeaseViolationError, StaleEpochError } from './errors.ts';
import {
  type ProcessorOptions,
  type ProcessorSettings,
  readProcessorOptions,
} from './processor-options.ts';
import { retryPauseMs } from './retry-policy.ts';
import { type ActionDefinitions, conform } from './schema.ts';
import { violation } from './violation.ts';

/** How often actions are polled for without a hint. */
const POLL_EVERY_MS = 1_000;
/** How long one request may take. */
const TIMEOUT_MS = 5_000;
/** Outcomes in one request. */
const MAX_SETTLEMENTS = 200;
/**
 * Retries that are due within one such span share a round, so few moments are kept for many
 * retries.
 */
const RETRY_SPAN_MS = 10;
const DEFAULT_STOP_MS = 10_000;

export type State = 'new' | 'running' | 'stopping' | 'stopped';

interface RetrySpan extends TimerEntry {
  readonly span: number;
}

export class Processor<A extends ActionDefinitions = ActionDefinitions> implements AsyncDisposable {
  readonly #rt: Runtime;
  readonly #settings: ProcessorSettings;
  readonly #settlements: Batcher<Settlement, HeldReply>;
  readonly #claims: ClaimSet;
  readonly #hints: Subscription;
  readonly #loop: Loop;
  readonly #violations = new Map<string, number>();
  /** Aborts when the processor has stopped. */
  readonly #stopped = new AbortController();
  #state: State = 'new';
  /** Places of attempts whose handlers have ended, and whose outcomes are not stored yet. */
  #settling = 0;
  /** The last request for actions got as many as there were places: there may be more. */
  #isBusy = false;
  /** When failed actions may be tried again; each span once. */
  readonly #retries: TimerHeap<RetrySpan>;
  readonly #retrySpans = new Set<number>();

  constructor(rt: Runtime, options: ProcessorOptions<A>) {
    this.#rt = rt;
    this.#settings = readProcessorOptions(options);
    const { name, claimMs } = this.#settings;
    const { store, clock, events } = rt;
    const settle = (all: readonly Settlement[]) =>
      store.workflows.settle(name, all, { timeoutMs: TIMEOUT_MS });
    this.#settlements = new Batcher(settle, MAX_SETTLEMENTS);
    this.#claims = new ClaimSet(rt, name, claimMs);
    this.#loop = new Loop(rt, {
      everyMs: POLL_EVERY_MS,
      round: () => this.#takeAll(),
      onStalled: (error) => events.emit('processor.stalled', { processor: name, error }),
      onResumed: (afterMs) => events.emit('processor.resumed', { processor: name, afterMs }),
    });
    this.#retries = new TimerHeap(clock, () => this.#onRetryDue());
    this.#hints = new Subscription(rt, streamTopic(actionStream(name)), () => this.#loop.wake());
  }

  get name(): string {
    return this.#settings.name;
  }

  get state(): State {
    return this.#state;
  }

  /** How many actions are under way here: until the store has their outcomes. */
  get running(): number {
    return this.#claims.size;
  }

  /** How many actions were refused because of their lease or epoch, by error code. */
  get violations(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#violations);
  }

  /** Begins to take actions. Resolves when it has asked the store for the first time. */
  async start(): Promise<this> {
    if (this.#state !== 'new') return this;
    this.#state = 'running';
    await this.#loop.start();
    return this;
  }

  /**
   * Takes no new actions, and lets those under way finish; asks them to stop after `within` (10 s).
   * Resolves when all have ended, or `within` has passed again.
   */
  async stop({ within = DEFAULT_STOP_MS }: { within?: number | string } = {}): Promise<void> {
    const withinMs = durationMs(within as number, 'within');
    if (this.#state === 'stopped') return;
    this.#state = 'stopping';
    this.#retries.clear();
    this.#hints.close();
    const { clock } = this.#rt;
    if (!(await isDoneWithin(clock, withinMs, this.#idle()))) {
      this.#claims.stopAll('its processor stops');
      await isDoneWithin(clock, withinMs, this.#idle());
    }
    this.#claims.close();
    this.#stopped.abort();
    this.#state = 'stopped';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /**
   * Executes one given action and returns its result, or returns the result that it already has.
   * Throws `LEASE_VIOLATION`, `STALE_EPOCH` or `FUTURE_EPOCH` if the action may not be executed,
   * before its handler runs.
   */
  async process(value: unknown): Promise<ActionResult> {
    const action = this.#readForProcessing(value);
    const { workflow_id: workflow, action_id: id, epoch } = action;
    const claim = this.#claims.claimNow();
    const taken = await this.#reserve(action, this.#settings.claimMs);
    if (taken.kind === 'replay') return resultOf(workflow, taken.result);
    const failure = await this.#start(taken, claim);
    const call = { timeoutMs: TIMEOUT_MS };
    const result = await this.#rt.store.workflows.resultOf(workflow, id, call);
    if (result !== null) return resultOf(workflow, result);
    // This try has no result: the action is tried again later, or another process has it now.
    const facts = { workflow_id: workflow, action_epoch: epoch, current_epoch: epoch };
    throw failure ?? new StaleEpochError(facts);
  }

  /**
   * Whether `process` would execute the action, or return its result. Throws what `process` would
   * throw.
   */
  async validateAction(value: unknown): Promise<true> {
    await this.#reserve(this.#readForProcessing(value), 0);
    return true;
  }

  /** Checks lease and epoch, and claims the action for `claimMs`; 0 claims nothing. */
  async #reserve(
    action: Action,
    claimMs: number,
  ): Promise<Extract<Taken, { kind: 'reserved' | 'replay' }>> {
    const { store, instanceId } = this.#rt;
    const { name, strictness } = this.#settings;
    const { workflow_id: workflow, action_id: id, lease_id: leaseId, epoch } = action;
    const call = { consumer: instanceId, claimMs, strictness, timeoutMs: TIMEOUT_MS };
    const taken = await store.workflows.reserve(name, { workflow, id, leaseId, epoch }, call);
    if (taken.kind !== 'reserved' && taken.kind !== 'replay') throw this.#refusal(taken);
    return taken;
  }

  /**
   * Resolves when no action is asked for or under way. Actions that still arrive are given back.
   */
  async #idle(): Promise<void> {
    await this.#loop.stop();
    await this.#claims.done();
  }

  #readForProcessing(value: unknown): Action {
    const { lease_id: lease = null, workflow_id } = (value ?? {}) as Partial<Action>;
    if (lease !== null) return readAction(value);
    const context = {
      workflow_id: String(workflow_id ?? 'unknown'),
      expected_lease: null,
      received_lease: null,
    };
    throw this.#report(new LeaseViolationError({ context }), null);
  }

  /** One round: takes as many actions as there are places, until there are no more. */
  async #takeAll(): Promise<undefined> {
    void this.#hints.open();
    while (await this.#takeSome());
  }

  /** Returns whether there may be more. */
  async #takeSome(): Promise<boolean> {
    const { store, instanceId } = this.#rt;
    const { name, concurrency, claimMs } = this.#settings;
    // A handler that has ended leaves its place before the store has its outcome. So the outcomes
    // and the request for the next actions go together.
    const ended = Math.min(this.#settling, concurrency);
    const most = concurrency - this.#claims.size + ended;
    if (this.#state !== 'running' || most <= 0) return false;
    const claim = this.#claims.claimNow();
    const call = { consumer: instanceId, most, claimMs, timeoutMs: TIMEOUT_MS };
    const all = await store.workflows.take(name, call);
    for (const taken of all) {
      if (taken.kind === 'reserved') void this.#startOrGiveBack(taken, claim);
      else if (taken.kind !== 'replay') this.#refusal(taken);
    }
    this.#isBusy = all.length === most;
    return this.#isBusy;
  }

  #startOrGiveBack(taken: ReservedAction, claim: Deadline): Promise<unknown> {
    if (this.#state === 'running') return this.#start(taken, claim);
    const { workflow, fence } = taken;
    const back = this.#settlements.submit({ workflow, fence, outcome: 'retry', afterMs: 0 });
    // If that fails, the action is given out again when its claim has expired.
    return back.catch(() => {});
  }

  /** The store sends no hint when a retry is due. */
  #scheduleRetry(inMs: number): void {
    if (this.#state !== 'running') return;
    const span = Math.ceil((this.#rt.clock.monotonicMs() + inMs + 1) / RETRY_SPAN_MS);
    if (this.#retrySpans.has(span)) return;
    this.#retrySpans.add(span);
    this.#retries.schedule({ span, dueAtMs: 0, index: -1 }, span * RETRY_SPAN_MS);
  }

  #onRetryDue(): void {
    const nowMs = this.#rt.clock.monotonicMs();
    for (let due = this.#retries.takeFirst(nowMs); due; due = this.#retries.takeFirst(nowMs))
      this.#retrySpans.delete(due.span);
    this.#loop.wake();
  }

  /**
   * Executes one action and reports its outcome. Never rejects; resolves with what went wrong, if
   * anything did.
   */
  #start(taken: ReservedAction, claim: Deadline): Promise<unknown> {
    const attempt = new Attempt(this.#rt.clock, taken, claim);
    const done = this.#execute(attempt);
    void this.#claims.hold(attempt, done).then(() => this.#loop.wake());
    return done;
  }

  async #execute(attempt: Attempt): Promise<unknown> {
    const ending = await this.#run(attempt);
    const retry = attempt.retry ?? this.#settings.retry;
    const isStopping = this.#state === 'stopping' || this.#state === 'stopped';
    // A try that its own processor ended does not count.
    const settlement = isStopping
      ? attempt.settlement(ending, Number.POSITIVE_INFINITY, () => 0)
      : attempt.settlement(ending, retry.tries, () =>
          retryPauseMs(retry, attempt.tries, this.#rt.random),
        );
    let reply: HeldReply;
    const placesLeft = this.#claims.has(attempt) ? 1 : 0;
    this.#settling += placesLeft;
    try {
      const settled = this.#settle(attempt, settlement);
      if (this.#isBusy) this.#loop.wake();
      reply = await settled;
    } catch (error) {
      // The claim expires and another try follows, with the same idempotency key.
      return error;
    } finally {
      this.#settling -= placesLeft;
    }
    if (reply === 'gone')
      this.#rt.events.emit('action.gone', { ...attempt.facts, fence: attempt.fence });
    else this.#reportEnding(attempt, ending, settlement);
    return ending.kind === 'failed' ? ending.cause : null;
  }

  async #run(attempt: Attempt): Promise<Ending> {
    const { events } = this.#rt;
    const { retry, timeoutMs } = this.#settings;
    const { fence, tries } = attempt;
    // The action itself may have ended the processes that tried it.
    if (tries > (attempt.retry ?? retry).tries) return attempt.exhausted();
    if (events.hasListener('action.started'))
      events.emit('action.started', { ...attempt.facts, fence, tries });
    return attempt.run((action, context) => this.#traced(attempt, action, context), timeoutMs);
  }

  /**
   * Tells the store the outcome, again and again while the claim lasts: finished work should not be
   * repeated.
   */
  async #settle(attempt: Attempt, settlement: Settlement): Promise<HeldReply> {
    const { clock, store } = this.#rt;
    for (let isFirst = true; ; isFirst = false) {
      let pauseMs: number;
      try {
        const reply = await this.#settlements.submit(settlement);
        if (reply === 'done' || isFirst) return reply;
        const { workflow, actionId } = attempt;
        // An earlier request may have arrived, and only its answer was lost.
        const call = { timeoutMs: TIMEOUT_MS };
        return (await store.workflows.resultOf(workflow, actionId, call)) === null ? reply : 'done';
      } catch (error) {
        pauseMs = this.#loop.failed(error);
        if (attempt.isPastDeadline) throw error;
      }
      await clock.sleep(pauseMs, this.#stopped.signal);
    }
  }

  #traced(attempt: Attempt, action: Action, context: HandlerContext): unknown {
    const start = {
      name: 'holdfast.action',
      isRoot: true,
      kind: 'consumer',
      cause: () => attempt.origin,
      attributes: {
        'holdfast.workflow': action.workflow_id,
        'holdfast.action': action.action_id,
        'holdfast.action_type': action.action_type,
        'holdfast.processor': this.name,
        'holdfast.fence': attempt.fence,
        'holdfast.tries': attempt.tries,
      },
    } as const;
    return this.#rt.tracing.run(start, (span) => {
      span.watch(context);
      return this.#handle(action, context);
    });
  }

  async #handle(action: Action, context: HandlerContext): Promise<unknown> {
    const { actions, handle } = this.#settings;
    const { action_type: type } = action;
    const payload = await conform(actions[type]?.payload, action.payload, 'payload');
    return conform(actions[type]?.result, await handle(type, payload, context), 'result');
  }

  #reportEnding(attempt: Attempt, ending: Ending, settlement: Settlement): void {
    const { events, clock } = this.#rt;
    const { fence, tries, startedMs } = attempt;
    if (ending.kind === 'succeeded') {
      const tookMs = clock.monotonicMs() - startedMs;
      if (events.hasListener('action.done'))
        events.emit('action.done', { ...attempt.facts, fence, tookMs });
      return;
    }
    const retryInMs = settlement.outcome === 'retry' ? settlement.afterMs : null;
    const isDead = settlement.outcome === 'dead';
    const why = ending.failure.message;
    events.emit('action.failed', { ...attempt.facts, fence, tries, why, retryInMs, isDead });
    if (retryInMs !== null) this.#scheduleRetry(retryInMs);
  }

  /** Counts and reports an action that the store refused to give out. */
  #refusal(taken: Exclude<Taken, { kind: 'reserved' | 'replay' }>): HoldfastError {
    const { workflow, id } = taken;
    if (taken.kind === 'lease') {
      const { expected, received } = taken;
      const context = { workflow_id: workflow, expected_lease: expected, received_lease: received };
      return this.#report(new LeaseViolationError({ context }), id);
    }
    const facts = {
      workflow_id: workflow,
      action_epoch: taken.epoch,
      current_epoch: taken.current,
    };
    const error = taken.kind === 'stale' ? new StaleEpochError(facts) : new FutureEpochError(facts);
    return this.#report(error, id);
  }

  #report<E extends HoldfastError & { code: string }>(error: E, action: string | null): E {
    this.#violations.set(error.code, (this.#violations.get(error.code) ?? 0) + 1);
    const facts = violation(error, action);
    if (facts !== null) this.#rt.events.emit('workflow.violation', facts);
    return error;
  }
}
