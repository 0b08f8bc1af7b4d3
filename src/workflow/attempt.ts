/**
 * One try at one action. Its handler may go on until the claim on it runs out here, which is before it does in the store; until then
 * the claim is extended for as long as the handler works.
 *
 * A handler that was asked to stop, and still runs when its claim has ended in the store, is **stuck**: another try may have begun.
 */
import type { Clock, Timer } from '../core/clock.ts';
import { ValueTooLargeError } from '../core/errors.ts';
import { type Deadline, remainingMs } from '../core/validity.ts';
import { sized } from '../store/port/limits.ts';
import type { Taken } from '../store/port/workflow-store.ts';
import { type Action, type ActionFailure, actionOf, jsonOf, originOf } from './action.ts';
import { ActionInvalidError, StepFailedError } from './errors.ts';

export interface HandlerContext {
  /** Fires when the handler should stop: its time is over, its processor stops, or another has the action now. */
  readonly signal: AbortSignal;
  /** Higher than that of everything given out before: a sink that refuses lower ones is safe from a handler that wakes too late. */
  readonly fence: number;
  readonly epoch: number;
  readonly actionId: string;
  /** The same for every try: a sink that remembers it applies the effect once. */
  readonly idempotencyKey: string;
  readonly workflowId: string;
  /** 1 for the first try. */
  readonly tries: number;
  /** Throws if another may have the action by now. Ask before every step that matters. */
  assertHeld(): void;
}

export type Ending =
  | { readonly kind: 'succeeded'; readonly value: unknown }
  /** `isFinal`: trying again would not help. */
  | {
      readonly kind: 'failed';
      readonly cause: unknown;
      readonly failure: ActionFailure;
      readonly isFinal: boolean;
    };

type Reserved = Extract<Taken, { kind: 'reserved' }>;

/** What is kept of the message of an error, in characters: with its details it has to fit into a result. */
const MOST_MESSAGE = 10_000;

const RUN_OUT = 'its claim has run out: another may have it by now';

/** Why a handler is asked to stop. */
class Stopped extends Error {
  override readonly name = 'ActionStoppedError';
}

/** It was given out as often as it may be, and nobody has ever said what came of it. */
class Exhausted extends Error {
  override readonly name = 'ActionExhaustedError';
}

export class Attempt {
  readonly workflow: string;
  readonly fence: number;
  readonly tries: number;
  readonly startedMs: number;
  readonly #taken: Reserved;
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  #claim: Deadline;
  /** For the handler's time and its claim; once it was asked to stop, for when it is stuck. */
  #timer: Timer | null = null;
  #isRunning = false;
  #onStuck: (() => void) | null = null;
  #graceMs = 0;

  constructor(clock: Clock, taken: Reserved, claim: Deadline) {
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

  /** The span that it was emitted in. */
  get origin(): string | null {
    return originOf(this.#taken.action);
  }

  extend(claim: Deadline): void {
    this.#claim = claim;
  }

  get isPastDeadline(): boolean {
    return this.#leftMs() <= 0;
  }

  /** Until the claim expires here; 0 also while the clocks disagree, until the claim has been extended: see `base/deadline.ts`. */
  #leftMs(): number {
    return remainingMs(this.#claim, this.#claim, this.#clock);
  }

  /** Its handler has been asked to stop. */
  get isStopped(): boolean {
    return this.#controller.signal.aborted;
  }

  stop(why: string): void {
    if (this.isStopped) return;
    this.#controller.abort(new Stopped(why));
    this.#timer?.cancel();
    if (!this.#isRunning) return;
    this.#timer = this.#clock.after(this.#leftMs() + this.#graceMs, () => this.#onStuck?.());
  }

  /** The claim ends in the store `graceMs` after it does here: a handler that was asked to stop and still runs then is stuck. */
  watchForStuck(graceMs: number, onStuck: () => void): void {
    this.#graceMs = graceMs;
    this.#onStuck = onStuck;
  }

  /** Nobody asks any more whether it is stuck. */
  unwatch(): void {
    this.#onStuck = null;
    this.#timer?.cancel();
  }

  /** What is to be said of an action that ends whoever tries it: it is not tried here. */
  exhausted(): Ending {
    const times = this.tries - 1;
    return failed(new Exhausted(`it was given out ${times} times, and nobody came back from it`));
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
      // A handler that was stopped says so in many ways; why it was stopped tells more.
      return failed(signal.aborted && !(error instanceof StepFailedError) ? signal.reason : error);
    } finally {
      this.#isRunning = false;
      this.#timer?.cancel();
    }
  }

  /** What can not be read fails like any other action, and is in nobody's way. */
  #action(): Action {
    try {
      return actionOf(this.workflow, this.#taken.action);
    } catch (error) {
      if (error instanceof ActionInvalidError) throw error;
      throw new ActionInvalidError({ field: 'the whole', rule: 'it can not be read' });
    }
  }

  /** One timer for both ends: of the handler's time, and of the claim, which may have been extended since. */
  #watch(timeoutMs: number): void {
    if (this.isStopped) return;
    const nowMs = this.#clock.monotonicMs();
    const leftMs = this.startedMs + timeoutMs - nowMs;
    const dueMs = Math.min(leftMs, this.#leftMs());
    if (dueMs > 0) this.#timer = this.#clock.after(dueMs, () => this.#watch(timeoutMs));
    else this.stop(leftMs <= 0 ? `it took longer than ${timeoutMs} ms` : RUN_OUT);
  }

  #context({ action_id: actionId, epoch }: Action, signal: AbortSignal): HandlerContext {
    const { fence, tries, workflow: workflowId } = this;
    const assertHeld = () => {
      if (this.isPastDeadline) this.stop(RUN_OUT);
      signal.throwIfAborted();
    };
    const idempotencyKey = actionId;
    return { signal, fence, epoch, actionId, idempotencyKey, workflowId, tries, assertHeld };
  }
}

function failed(cause: unknown): Ending {
  return { kind: 'failed', cause, failure: failureOf(cause), isFinal: isFinal(cause) };
}

function failureOf(error: unknown): ActionFailure {
  const { name, message } = error instanceof Error ? error : new Error(textOf(error));
  const details = error instanceof StepFailedError ? plain(error.details) : null;
  return { name, message: message.slice(0, MOST_MESSAGE), details };
}

function isFinal(error: unknown): boolean {
  return (
    error instanceof StepFailedError ||
    error instanceof ActionInvalidError ||
    error instanceof ValueTooLargeError
  );
}

/** Anything can be thrown, also what can not be made text of. */
function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return 'something that is no error was thrown';
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
