/**
 * One try at one action. Its handler may go on until the claim on it runs out here, which is before it does in the store; until then
 * the claim is extended for as long as the handler works.
 */
import type { Clock, Timer } from '../base/clock.ts';
import { ActionInvalidError, StepFailedError } from '../base/workflow-errors.ts';
import type { Taken } from '../store/workflow-store.ts';
import { type Action, type ActionFailure, actionOf } from './action.ts';

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

export type Handler = (payload: never, context: HandlerContext) => unknown;

export type Ending =
  | { readonly kind: 'succeeded'; readonly value: unknown }
  /** `isFinal`: trying again would not help. */
  | {
      readonly kind: 'failed';
      readonly cause: unknown;
      readonly failure: ActionFailure;
      readonly isFinal: boolean;
    };

/** Why a handler is asked to stop. */
class Stopped extends Error {
  override readonly name = 'ActionStoppedError';
}

export class Attempt {
  readonly action: Action;
  readonly workflow: string;
  readonly fence: number;
  readonly tries: number;
  readonly startedMs: number;
  readonly #clock: Clock;
  readonly #controller = new AbortController();
  #deadlineMs: number;
  #timer: Timer | null = null;

  constructor(clock: Clock, taken: Extract<Taken, { kind: 'reserved' }>, deadlineMs: number) {
    this.#clock = clock;
    this.workflow = taken.workflow;
    this.fence = taken.fence;
    this.tries = taken.tries;
    this.action = actionOf(taken.workflow, taken.action);
    this.startedMs = clock.monotonicMs();
    this.#deadlineMs = deadlineMs;
  }

  get facts(): { workflow: string; action: string; type: string; target: string } {
    const { action_id, action_type, target_node_type } = this.action;
    const what = { action: action_id, type: action_type, target: target_node_type };
    return { workflow: this.workflow, ...what };
  }

  /** The claim is good until then. */
  extend(deadlineMs: number): void {
    this.#deadlineMs = deadlineMs;
  }

  get isPastDeadline(): boolean {
    return this.#clock.monotonicMs() >= this.#deadlineMs;
  }

  stop(why: string): void {
    this.#controller.abort(new Stopped(why));
  }

  /** Never rejects. */
  async run(work: (context: HandlerContext) => unknown, timeoutMs: number): Promise<Ending> {
    const { signal } = this.#controller;
    const late = `it took longer than ${timeoutMs} ms`;
    this.#timer = this.#clock.after(timeoutMs, () => this.stop(late));
    try {
      const value: unknown = await work(this.#context(signal));
      return { kind: 'succeeded', value: value ?? null };
    } catch (error) {
      // A handler that was stopped says so in many ways; why it was stopped tells more.
      const cause = signal.aborted && !(error instanceof StepFailedError) ? signal.reason : error;
      return { kind: 'failed', cause, failure: failureOf(cause), isFinal: isFinal(cause) };
    } finally {
      this.#timer.cancel();
    }
  }

  #context(signal: AbortSignal): HandlerContext {
    const { fence, tries, workflow: workflowId } = this;
    const { action_id: actionId, epoch } = this.action;
    const assertHeld = () => {
      if (this.isPastDeadline) this.stop('its claim has run out: another may have it by now');
      signal.throwIfAborted();
    };
    const idempotencyKey = actionId;
    return { signal, fence, epoch, actionId, idempotencyKey, workflowId, tries, assertHeld };
  }
}

function failureOf(error: unknown): ActionFailure {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { name, message, details: error instanceof StepFailedError ? error.details : null };
}

function isFinal(error: unknown): boolean {
  return error instanceof StepFailedError || error instanceof ActionInvalidError;
}
