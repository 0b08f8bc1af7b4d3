/**
 * Who does what orchestrators want done. Any number of processes may run a processor of the same name: each action is given to one of
 * them, one action of a workflow at a time, in the order of their epochs. Lease and epoch are looked at, and the action is reserved,
 * by the same step in the store that gives it out; so nothing is worked on that may not be.
 *
 * **Idle.** Nothing to do: a hint, or the time to look, brings it back. **Working.** As many at once as `concurrency` allows; where there is
 * room, it asks for more. A handler that does not stop when it was asked to gives up its place. **Stopping.** Takes nothing new; what is under way may finish, is asked to stop after a while, and is left to
 * others if it does not.
 */

import { FailureStreak } from '../core/backoff.ts';
import { Batcher } from '../core/batcher.ts';
import { type Clock, isDoneWithin, type Timer } from '../core/clock.ts';
import { durationMs } from '../core/duration.ts';
import type { HoldfastError } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { jittered, type Random } from '../core/random.ts';
import { type Entry, TimerHeap } from '../core/timer-heap.ts';
import { type Tracing, untraced } from '../core/tracing.ts';
import type { Deadline } from '../core/validity.ts';
import type { Store } from '../store/port/store.ts';
import { type HeldReply, streamTopic } from '../store/port/stream-store.ts';
import { actionStream, type Settlement, type Taken } from '../store/port/workflow-store.ts';
import { Subscription } from '../store/subscription.ts';
import { type Action, type ActionResult, readAction, resultOf } from './action.ts';
import { Attempt, type Ending, type HandlerContext } from './attempt.ts';
import { Claims, tooManyStuck } from './claims.ts';
import { FutureEpochError, LeaseViolationError, StaleEpochError } from './errors.ts';
import {
  type ProcessorOptions,
  type ProcessorSettings,
  readProcessorOptions,
} from './processor-options.ts';
import { type ActionDefinitions, conform } from './schema.ts';
import { settlementOf } from './settlement.ts';
import { violation } from './violation.ts';

/** Without a hint it is looked for work this often. */
const LOOK_EVERY_MS = 1_000;
/** How long one request may take. */
const TIMEOUT_MS = 5_000;
/** Outcomes in one request. */
const SETTLE_MOST = 200;
/** Retries that are due within one such span are looked for together: however many wait, a few thousand moments are remembered. */
const RETRY_SPAN_MS = 10;
const DEFAULT_STOP_MS = 10_000;

export interface ProcessorParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly instanceId: string;
  readonly tracing?: Tracing;
}

type State = 'new' | 'running' | 'stopping' | 'stopped';
type Reserved = Extract<Taken, { kind: 'reserved' }>;

interface Retry extends Entry {
  readonly span: number;
}

export class Processor<A extends ActionDefinitions = ActionDefinitions> implements AsyncDisposable {
  readonly #parts: ProcessorParts;
  readonly #settings: ProcessorSettings;
  readonly #settling: Batcher<Settlement, HeldReply>;
  readonly #hands: Claims;
  readonly #listening: Subscription;
  readonly #stall: FailureStreak;
  readonly #violations = new Map<string, number>();
  /** Aborts when it has stopped. */
  readonly #over = new AbortController();
  #state: State = 'new';
  #looking: Promise<void> | null = null;
  #isHinted = false;
  #isToLook = false;
  #timer: Timer | null = null;
  /** When what failed here may be tried again; and the same as numbers of spans, each once. */
  readonly #retries: TimerHeap<Retry>;
  readonly #retrySpans = new Set<number>();

  constructor(parts: ProcessorParts, options: ProcessorOptions<A>) {
    this.#parts = parts;
    this.#settings = readProcessorOptions(options);
    const { name: target, claimMs } = this.#settings;
    const { workflows } = parts.store;
    const call = { timeoutMs: TIMEOUT_MS };
    this.#settling = new Batcher((all) => workflows.settle(target, all, call), SETTLE_MOST);
    const stall = {
      onStalled: (error: unknown) =>
        parts.events.emit('processor.stalled', { processor: target, error }),
      onResumed: (afterMs: number) =>
        parts.events.emit('processor.resumed', { processor: target, afterMs }),
    };
    this.#stall = new FailureStreak(parts.clock, stall);
    const crowded = new FailureStreak(parts.clock, stall);
    this.#hands = new Claims({
      ...{ workflows, clock: parts.clock, target, claimMs },
      onStuck: (attempt, hasPlace) => {
        this.#tellStuck(attempt);
        if (hasPlace) crowded.failed(tooManyStuck());
        else this.#lookSoon();
      },
      onUnstuck: () => crowded.succeeded(),
    });
    this.#retries = new TimerHeap(parts.clock, () => this.#retry());
    const look = () => void this.#look();
    this.#listening = new Subscription(parts, streamTopic(actionStream(target)), look);
  }

  get name(): string {
    return this.#settings.name;
  }

  get state(): State {
    return this.#state;
  }

  /** How many actions are under way here. */
  get running(): number {
    return this.#hands.size;
  }

  /** How often something came that its lease or its epoch did not allow, by code. */
  get violations(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#violations);
  }

  /** Begins to take actions. Resolves when it has begun to look for them. */
  async start(): Promise<this> {
    if (this.#state !== 'new') return this;
    this.#state = 'running';
    void this.#listening.open();
    await this.#look();
    return this;
  }

  /** Takes nothing new, and lets what is under way finish; asks it to stop after `within` (10 s). Resolves when all is over. */
  async stop({ within = DEFAULT_STOP_MS }: { within?: number | string } = {}): Promise<void> {
    const withinMs = durationMs(within as number, 'within');
    if (this.#state === 'stopped') return;
    this.#state = 'stopping';
    this.#timer?.cancel();
    this.#retries.clear();
    this.#listening.close();
    const { clock } = this.#parts;
    if (!(await isDoneWithin(clock, withinMs, this.#idle()))) {
      this.#hands.stopAll('its processor stops');
      await isDoneWithin(clock, withinMs, this.#idle());
    }
    this.#hands.empty();
    this.#over.abort();
    this.#state = 'stopped';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /**
   * Does one action that its caller has in hand, and gives its result: at once, if it has been done before. Throws `LEASE_VIOLATION`,
   * `STALE_EPOCH` or `FUTURE_EPOCH` if it may not be done, before anything is.
   */
  async process(value: unknown): Promise<ActionResult> {
    const action = this.#readForProcessing(value);
    const { workflow_id: workflow, action_id: id } = action;
    const { store } = this.#parts;
    const claim = this.#hands.claimNow();
    const taken = await this.#reserve(action, this.#settings.claimMs);
    if (taken.kind === 'replay') return resultOf(workflow, taken.result);
    const failure = await this.#start(taken, claim);
    const result = await store.workflows.resultOf(workflow, id, { timeoutMs: TIMEOUT_MS });
    // It is tried again later, or another has it now; this try has come to nothing.
    if (result === null) throw failure ?? new StaleEpochError(staleFacts(action));
    return resultOf(workflow, result);
  }

  /** Whether `process` would do it, or had done it before; throws what it would throw, and changes nothing. */
  async validateAction(value: unknown): Promise<true> {
    await this.#reserve(this.#readForProcessing(value), 0);
    return true;
  }

  async #reserve(
    action: Action,
    claimMs: number,
  ): Promise<Extract<Taken, { kind: 'reserved' | 'replay' }>> {
    const { store, instanceId } = this.#parts;
    const { name, strictness } = this.#settings;
    const { workflow_id: workflow, action_id: id, lease_id: leaseId, epoch } = action;
    const call = { consumer: instanceId, claimMs, strictness, timeoutMs: TIMEOUT_MS };
    const taken = await store.workflows.reserve(name, { workflow, id, leaseId, epoch }, call);
    if (taken.kind !== 'reserved' && taken.kind !== 'replay') throw this.#refused(taken);
    return taken;
  }

  /** What was asked for before it was told to stop still comes in, and is given back. */
  async #idle(): Promise<void> {
    await this.#looking;
    await this.#hands.done();
  }

  #readForProcessing(value: unknown): Action {
    const { lease_id: lease = null, workflow_id } = (value ?? {}) as Partial<Action>;
    if (lease === null)
      throw this.#told(
        new LeaseViolationError({
          context: {
            workflow_id: String(workflow_id ?? 'unknown'),
            expected_lease: null,
            received_lease: null,
          },
        }),
        null,
      );
    return readAction(value);
  }

  /** Takes as much as there is room for, until there is nothing to take. Never rejects. */
  #look(): Promise<void> {
    if (this.#looking !== null) this.#isHinted = true;
    this.#looking ??= this.#lookNow().then((pauseMs) => {
      this.#looking = null;
      this.#lookLater(pauseMs);
    });
    return this.#looking;
  }

  /** What ends in one turn makes room for one request, not for one each. */
  #lookSoon(): void {
    if (this.#isToLook) return;
    this.#isToLook = true;
    this.#parts.clock.soon(() => {
      this.#isToLook = false;
      if (this.#state === 'running') void this.#look();
    });
  }

  async #lookNow(): Promise<number> {
    try {
      do this.#isHinted = false;
      while ((await this.#takeSome()) || this.#isHinted);
      this.#stall.succeeded();
      return LOOK_EVERY_MS;
    } catch (error) {
      return this.#stall.failed(error);
    }
  }

  /** Says whether there may be more. */
  async #takeSome(): Promise<boolean> {
    const { store, instanceId } = this.#parts;
    const { name, concurrency, claimMs } = this.#settings;
    const most = concurrency - this.#hands.size;
    if (this.#state !== 'running' || most <= 0) return false;
    const claim = this.#hands.claimNow();
    const call = { consumer: instanceId, most, claimMs, timeoutMs: TIMEOUT_MS };
    const all = await store.workflows.take(name, call);
    for (const taken of all) {
      if (taken.kind === 'reserved') void this.#startOrGiveBack(taken, claim);
      else if (taken.kind !== 'replay') this.#refused(taken);
    }
    return all.length === most;
  }

  #startOrGiveBack(taken: Reserved, claim: Deadline): Promise<unknown> {
    if (this.#state === 'running') return this.#start(taken, claim);
    const { workflow, fence } = taken;
    const back = this.#settling.submit({ workflow, fence, outcome: 'retry', afterMs: 0 });
    // If that fails, too, it is given out again when its claim has run out.
    return back.catch(() => {});
  }

  #lookLater(ms: number): void {
    if (this.#state !== 'running') return;
    void this.#listening.open();
    this.#timer?.cancel();
    this.#timer = this.#parts.clock.after(ms, () => void this.#look());
  }

  /** It can be tried again then, and nobody tells us. */
  #retryLater(inMs: number): void {
    if (this.#state !== 'running') return;
    const span = Math.ceil((this.#parts.clock.monotonicMs() + inMs + 1) / RETRY_SPAN_MS);
    if (this.#retrySpans.has(span)) return;
    this.#retrySpans.add(span);
    this.#retries.schedule({ span, dueMs: 0, slot: -1 }, span * RETRY_SPAN_MS);
  }

  #retry(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    for (let due = this.#retries.takeFirst(nowMs); due; due = this.#retries.takeFirst(nowMs))
      this.#retrySpans.delete(due.span);
    void this.#look();
  }

  /** Works on one action, and brings in what came of it. Never rejects; says what went wrong, if anything did. */
  #start(taken: Reserved, claim: Deadline): Promise<unknown> {
    const attempt = new Attempt(this.#parts.clock, taken, claim);
    const done = this.#attempt(attempt);
    this.#hands.hold(attempt, done);
    return done.finally(() => this.#lookSoon());
  }

  async #attempt(attempt: Attempt): Promise<unknown> {
    const { events } = this.#parts;
    const ending = await this.#try(attempt);
    const isStopping = this.#state === 'stopping' || this.#state === 'stopped';
    const settlement = settlementOf(attempt, ending, {
      mostTries: isStopping ? Number.POSITIVE_INFINITY : this.#settings.mostTries,
      backoffMs: () =>
        isStopping ? 0 : this.#settings.backoffMs(attempt.tries, this.#parts.random),
    });
    let reply: string;
    try {
      reply = await this.#settle(attempt, settlement);
    } catch (error) {
      // Its claim runs out, and it is tried again: by whom it may, for whatever it did carries its key.
      return error;
    }
    if (reply === 'gone') events.emit('action.gone', { ...attempt.facts, fence: attempt.fence });
    else this.#tell(attempt, ending, settlement);
    return ending.kind === 'failed' ? ending.cause : null;
  }

  async #try(attempt: Attempt): Promise<Ending> {
    const { events } = this.#parts;
    const { mostTries, timeoutMs } = this.#settings;
    const { fence, tries } = attempt;
    // It may be what ended those who had it before.
    if (tries > mostTries) return attempt.exhausted();
    if (events.hasListener('action.started'))
      events.emit('action.started', { ...attempt.facts, fence, tries });
    return attempt.run((action, context) => this.#traced(attempt, action, context), timeoutMs);
  }

  /** Tells the store what came of it, as often as it takes while the claim lasts: work that was done should not be done again. */
  async #settle(attempt: Attempt, settlement: Settlement): Promise<string> {
    const { clock, random, store } = this.#parts;
    for (let isFirst = true; ; isFirst = false) {
      let pauseMs: number;
      try {
        const reply = await this.#settling.submit(settlement);
        if (reply === 'done' || isFirst) return reply;
        const { workflow, actionId } = attempt;
        // Perhaps it was heard before, and only the answer was lost.
        const call = { timeoutMs: TIMEOUT_MS };
        return (await store.workflows.resultOf(workflow, actionId, call)) === null ? reply : 'done';
      } catch (error) {
        pauseMs = this.#stall.failed(error);
        if (attempt.isPastDeadline) throw error;
      }
      await clock.sleep(jittered(pauseMs, random), this.#over.signal);
    }
  }

  #traced(attempt: Attempt, action: Action, context: HandlerContext): unknown {
    const { tracing = untraced } = this.#parts;
    const { workflow_id: workflow, action_id: id, action_type: type } = action;
    const attributes = {
      ...{ 'holdfast.workflow': workflow, 'holdfast.action': id, 'holdfast.action_type': type },
      ...{ 'holdfast.processor': this.name, 'holdfast.fence': attempt.fence },
      'holdfast.tries': attempt.tries,
    };
    const start = { name: 'holdfast.action', attributes, cause: () => attempt.origin };
    return tracing.run({ ...start, isRoot: true, kind: 'consumer' }, (span) => {
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

  #tell(attempt: Attempt, ending: Ending, settlement: Settlement): void {
    const { events, clock } = this.#parts;
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
    if (retryInMs !== null) this.#retryLater(retryInMs);
  }

  #tellStuck(attempt: Attempt): void {
    const { events, clock } = this.#parts;
    const runsForMs = clock.monotonicMs() - attempt.startedMs;
    const { fence, tries } = attempt;
    events.emit('action.stuck', { ...attempt.facts, fence, tries, runsForMs });
  }

  #refused(taken: Exclude<Taken, { kind: 'reserved' | 'replay' }>): HoldfastError {
    const { workflow, id } = taken;
    if (taken.kind === 'lease')
      return this.#told(
        new LeaseViolationError({
          context: {
            workflow_id: workflow,
            expected_lease: taken.expected,
            received_lease: taken.received,
          },
        }),
        id,
      );
    const facts = {
      workflow_id: workflow,
      action_epoch: taken.epoch,
      current_epoch: taken.current,
    };
    const error = taken.kind === 'stale' ? new StaleEpochError(facts) : new FutureEpochError(facts);
    return this.#told(error, id);
  }

  #told<E extends HoldfastError & { code: string }>(error: E, action: string | null): E {
    this.#violations.set(error.code, (this.#violations.get(error.code) ?? 0) + 1);
    const facts = violation(error, action);
    if (facts !== null) this.#parts.events.emit('workflow.violation', facts);
    return error;
  }
}

function staleFacts({ workflow_id, epoch }: Action) {
  return { workflow_id, action_epoch: epoch, current_epoch: epoch };
}
