/**
 * One try at one action. The handler may run until its claim expires here, which is earlier than in
 * the store. `ClaimSet` extends the claim while the handler runs.
 *
 * An attempt is **stuck** if its handler was asked to stop, and still runs when the claim has
 * expired in the store: another try may have begun.
 */
import type { Clock, Timer } from '../core/clock.ts';
import { ValueTooLargeError } from '../core/errors.ts';
import { type Deadline, remainingMs } from '../core/validity.ts';
import { sized } from '../store/port/limits.ts';
import type { Settlement, Taken } from '../store/port/workflow-store.ts';
import { type Action, type ActionFailure, actionOf, jsonOf, originOf, retryOf } from './action.ts';
import { ActionInvalidError, StepFailedError } from './errors.ts';
import type { RetryLimits } from './retry-policy.ts';

export interface HandlerContext {
  /**
   * Fires when the handler must stop: its time is over, its processor stops, or its claim has
   * ended.
   */
  readonly signal: AbortSignal;
  /**
   * Higher than the fence of every earlier try. Your database can refuse writes with a lower one.
   */
  readonly fence: number;
  readonly epoch: number;
  readonly actionId: string;
  /** The same for every try: a database that remembers it applies the effect once. */
  readonly idempotencyKey: string;
  readonly workflowId: string;
  /** 1 for the first try. */
  readonly tries: number;
  /**
   * Throws if another process may have the action by now. Call it before every step that matters.
   */
  assertHeld(): void;
}

export type Ending =
  | { readonly kind: 'succeeded'; readonly value: unknown }
  /** `isFinal`: a retry would not help. */
  | {
      readonly kind: 'failed';
      readonly cause: unknown;
      readonly failure: ActionFailure;
      readonly isFinal: boolean;
    };

export type ReservedAction = Extract<Taken, { kind: 'reserved' }>;

/** Characters kept of an error message: with its details it must fit into a result. */
const MAX_MESSAGE_LENGTH = 10_000;

const CLAIM_EXPIRED = 'its claim has expired: another process may have the action by now';

/** The reason of `context.signal`. */
class ActionStoppedError extends Error {
  override readonly name = 'ActionStoppedError';
}

/** Every try that the action may have ended without reporting a result. */
class ActionExhaustedError extends Error {
  override readonly name = 'ActionExhaustedError';
}

export class Attempt {
  readonly workflow: string;
  readonly fence: number;
  readonly tries: number;
  readonly startedMs: number;
  readonly #taken: ReservedAction;
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  #claim: Deadline;
  /** For the end of the handler's time and of its claim; after `stop`, for when it is stuck. */
  #timer: Timer | null = null;
  #isRunning = false;
  #onStuck: (() => void) | null = null;
  #graceMs = 0;

  constructor(clock: Clock, taken: ReservedAction, claim: Deadline) {
    this.#clock = clock;
    this.#taken = taken;
    this.workflow = taken.workflow;
    this.fence = taken.fence;
    this.tries = taken.tries;
    this.startedMs = clock.monotonicMs();
    this.#claim = claim;
  }

  get facts(): { workflow: string; action: string; type: string; target: string } {
    const { id: action, target, body } = this.#taken.action;
    return { workflow: this.workflow, action, type: typeIn(body), target };
  }

  get actionId(): string {
    return this.#taken.action.id;
  }

  /** The span that the action was emitted in. */
  get origin(): string | null {
    return originOf(this.#taken.action);
  }

  /** The policy that the action was emitted with. */
  get retry(): RetryLimits | null {
    try {
      return retryOf(this.#taken.action);
    } catch {
      // An action that cannot be read fails when it runs.
      return null;
    }
  }

  extend(claim: Deadline): void {
    this.#claim = claim;
  }

  get isPastDeadline(): boolean {
    return this.#leftMs() <= 0;
  }

  /**
   * Until the claim expires here. 0 while the clocks disagree, until the claim is extended: see
   * `core/validity.ts`.
   */
  #leftMs(): number {
    return remainingMs(this.#claim, this.#claim, this.#clock);
  }

  /** Whether the handler was asked to stop. */
  get isStopped(): boolean {
    return this.#controller.signal.aborted;
  }

  stop(why: string): void {
    if (this.isStopped) return;
    this.#controller.abort(new ActionStoppedError(why));
    this.#timer?.cancel();
    if (!this.#isRunning) return;
    this.#timer = this.#clock.after(this.#leftMs() + this.#graceMs, () => this.#onStuck?.());
  }

  /**
   * The claim expires in the store `graceMs` later than here: a stopped handler that still runs
   * then is stuck.
   */
  watchForStuck(graceMs: number, onStuck: () => void): void {
    this.#graceMs = graceMs;
    this.#onStuck = onStuck;
  }

  /** `onStuck` is not called any more. */
  unwatch(): void {
    this.#onStuck = null;
    this.#timer?.cancel();
  }

  /** How an action ends whose tries are used up: it may have ended the processes that tried it. */
  exhausted(): Ending {
    const triesBefore = this.tries - 1;
    return failed(
      new ActionExhaustedError(`${triesBefore} attempts ended without reporting a result`),
    );
  }

  /** What to tell the store about this attempt: its result, or when to try again. */
  settlement(ending: Ending, maxTries: number, backoffMs: () => number): Settlement {
    const { workflow, fence } = this;
    if (ending.kind === 'succeeded')
      return { workflow, fence, outcome: 'succeeded', value: ending.value };
    const { failure, isFinal } = ending;
    if (isFinal) return { workflow, fence, outcome: 'failed', value: failure };
    const error = failure.message;
    if (this.tries < maxTries)
      return { workflow, fence, outcome: 'retry', afterMs: backoffMs(), error };
    return { workflow, fence, outcome: 'dead', value: failure, reason: failure.message };
  }

  /** Never rejects. */
  async run(
    work: (action: Action, context: HandlerContext) => unknown,
    defaultTimeoutMs: number,
  ): Promise<Ending> {
    const { signal } = this.#controller;
    try {
      const action = this.#action();
      this.#isRunning = true;
      this.#watch(action.timeout_ms ?? defaultTimeoutMs);
      const value: unknown = (await work(action, this.#context(action, signal))) ?? null;
      sized('result', this.actionId, jsonOf(value, 'result'));
      return { kind: 'succeeded', value };
    } catch (error) {
      // A stopped handler may throw anything: the reason why it was stopped says more.
      return failed(signal.aborted && !(error instanceof StepFailedError) ? signal.reason : error);
    } finally {
      this.#isRunning = false;
      this.#timer?.cancel();
    }
  }

  /** An action that cannot be read fails like any other, and does not block the next ones. */
  #action(): Action {
    try {
      return actionOf(this.workflow, this.#taken.action);
    } catch (error) {
      if (error instanceof ActionInvalidError) throw error;
      throw new ActionInvalidError({ field: 'the whole', rule: 'it cannot be read' });
    }
  }

  /**
   * One timer for two deadlines: of the handler's time, and of the claim, which may have been
   * extended.
   */
  #watch(timeoutMs: number): void {
    if (this.isStopped) return;
    const nowMs = this.#clock.monotonicMs();
    const leftMs = this.startedMs + timeoutMs - nowMs;
    const dueMs = Math.min(leftMs, this.#leftMs());
    if (dueMs > 0) this.#timer = this.#clock.after(dueMs, () => this.#watch(timeoutMs));
    else this.stop(leftMs <= 0 ? `its handler took longer than ${timeoutMs} ms` : CLAIM_EXPIRED);
  }

  #context({ action_id: actionId, epoch }: Action, signal: AbortSignal): HandlerContext {
    const { fence, tries, workflow: workflowId } = this;
    const assertHeld = () => {
      if (this.isPastDeadline) this.stop(CLAIM_EXPIRED);
      signal.throwIfAborted();
    };
    const idempotencyKey = actionId;
    return { signal, fence, epoch, actionId, idempotencyKey, workflowId, tries, assertHeld };
  }
}

function failed(cause: unknown): Ending {
  return { kind: 'failed', cause, failure: failureOf(cause), isFinal: isFinal(cause) };
}

export function failureOf(error: unknown): ActionFailure {
  const { name, message } = error instanceof Error ? error : new Error(textOf(error));
  const details = error instanceof StepFailedError ? plain(error.details) : null;
  return { name, message: message.slice(0, MAX_MESSAGE_LENGTH), details };
}

function isFinal(error: unknown): boolean {
  return (
    error instanceof StepFailedError ||
    error instanceof ActionInvalidError ||
    error instanceof ValueTooLargeError
  );
}

/** Anything can be thrown, even a value that has no text. */
function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return 'a value that is no Error was thrown';
  }
}

function plain(details: unknown): unknown {
  try {
    return JSON.parse(sized('result', 'details', jsonOf(details, 'details')));
  } catch (error) {
    return error instanceof ValueTooLargeError ? error.message : textOf(details);
  }
}

function typeIn(body: string): string {
  try {
    return String((JSON.parse(body) as Partial<Action> | null)?.action_type);
  } catch {
    return 'unreadable';
  }
}
