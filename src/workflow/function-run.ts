/**
 * One run of a workflow's function in this process, from its claim to the moment at which this
 * process has nothing more to do with it.
 *
 * **Claiming.** The workflow is claimed, and what is kept of it is loaded. If another instance
 * holds it, or it has ended, this run is over. **Running.** The function runs from its first line.
 * **Suspended.** All open lines of the function wait: the store has what for, and until when.
 * **Left.** The instance stops: its steps may end, and the store has the run as due at once.
 * **Ended.** The function returned, or threw: the store has the result, or when to try again.
 * **Lost.** The tenure is over, for any other reason. After each of the last four the lease is
 * released, and no line of the function continues here.
 */
import { isDoneWithin } from '../core/clock.ts';
import { HoldfastError, kindOf } from '../core/errors.ts';
import { retryStore } from '../core/retry.ts';
import type { LoadedRun, PauseReply, PauseStep } from '../store/port/run-store.ts';
import type { Runtime } from '../store/runtime.ts';
import type { ActionFailure } from './action.ts';
import { failureOf } from './attempt.ts';
import { StepFailedError, WorkflowStepError } from './errors.ts';
import type { WaitFact } from './kept-step.ts';
import { type Orchestrator, runOf } from './orchestrator.ts';
import { type RetryLimits, retryPauseMs } from './retry-policy.ts';

/** The function, without its types. */
export interface FunctionSettings {
  readonly name: string;
  readonly retry: RetryLimits;
  claim(id: string): Promise<Orchestrator>;
  run(order: Orchestrator, input: unknown): unknown;
}

type Ending =
  | { readonly kind: 'done'; readonly value: unknown }
  | { readonly kind: 'failed'; readonly cause: unknown }
  /** The store has it already, or this process may not say any more. */
  | { readonly kind: 'over' };

/** Errors of a workflow beyond this are cut off. */
const MAX_CAUSES = 10;

export class FunctionRun {
  readonly id: string;
  readonly #rt: Runtime;
  readonly #settings: FunctionSettings;
  #order: Orchestrator | null = null;
  /** Ends the run: the function is suspended or left. */
  #leave: () => void = () => {};
  readonly #left = new Promise<Ending>((resolve) => {
    this.#leave = () => resolve({ kind: 'over' });
  });

  constructor(rt: Runtime, settings: FunctionSettings, id: string) {
    this.#rt = rt;
    this.#settings = settings;
    this.id = id;
  }

  /** Never rejects: a run that fails here is due again, for any instance. */
  async run(): Promise<void> {
    try {
      this.#order = await this.#settings.claim(this.id);
    } catch {
      return;
    }
    try {
      await this.#serve(this.#order);
    } catch {
      // The lease is lost, or the store does not answer: the run is due when the lease is free.
    } finally {
      await this.#order.release();
    }
  }

  /** Lets the step under way end, for so long, and leaves the run to another instance. */
  async leave(withinMs: number): Promise<void> {
    const order = this.#order;
    if (order === null) return this.#leave();
    await isDoneWithin(this.#rt.clock, withinMs, runOf(order).close());
    const waits = { signal: 'another instance' };
    await this.#pause(order, { phase: 'suspended', wakeInMs: 0, waits }).catch(() => {});
    this.#leave();
  }

  async #serve(order: Orchestrator): Promise<void> {
    const loaded = await runOf(order).load();
    const { run } = loaded;
    const hasEnded = run === null || run.phase === 'done' || run.phase === 'failed';
    if (hasEnded || run.function !== this.#settings.name) return;
    runOf(order).onIdle = (waits) => this.#suspend(order, waits);
    const lost = new Promise<Ending>((resolve) => {
      order.signal.addEventListener('abort', () => resolve({ kind: 'over' }), { once: true });
    });
    const ending = await Promise.race([this.#execute(order, loaded), this.#left, lost]);
    if (ending.kind === 'done') await this.#finish(order, ending.value);
    if (ending.kind === 'failed') await this.#fail(order, loaded, ending.cause);
  }

  async #execute(order: Orchestrator, { input }: LoadedRun): Promise<Ending> {
    try {
      const value: unknown = (await this.#settings.run(order, input)) ?? null;
      return { kind: 'done', value };
    } catch (cause) {
      return { kind: 'failed', cause };
    }
  }

  async #suspend(order: Orchestrator, waits: readonly WaitFact[]): Promise<boolean> {
    const nowMs = runOf(order).nowMs();
    const untilMs = waits.flatMap((wait) => wait.untilMs ?? []);
    const wakeInMs = untilMs.length === 0 ? null : Math.max(0, Math.min(...untilMs) - nowMs);
    const { workflowId: workflow } = order;
    try {
      const reply = await this.#pause(order, { phase: 'suspended', wakeInMs, waits });
      if (reply.kind === 'signalled') return false;
    } catch {
      // The tenure is over: what the store has counts.
      return true;
    }
    const { name } = this.#settings;
    this.#rt.events.emit('workflow.suspended', { workflow, function: name, wakeInMs });
    this.#leave();
    return true;
  }

  async #finish(order: Orchestrator, value: unknown): Promise<void> {
    const { workflowId: workflow } = order;
    try {
      await this.#pauseKnowingAll(order, { phase: 'done', value: plainResult(workflow, value) });
    } catch (error) {
      // A result that cannot be kept is an error of the function.
      if (kindOf(error) === 'invalid') return this.#fail(order, null, error);
      throw error;
    }
    this.#rt.events.emit('workflow.completed', { workflow, function: this.#settings.name });
  }

  async #fail(order: Orchestrator, loaded: LoadedRun | null, cause: unknown): Promise<void> {
    const { workflowId: workflow } = order;
    const steps = runOf(order);
    const { name, retry } = this.#settings;
    // A try that kept a step is progress: tries count while there is none.
    const tries = (steps.hasProgress ? 0 : (loaded?.run?.tries ?? 0)) + 1;
    const isOver = tries >= retry.tries || isFinal(cause);
    const retryInMs = isOver ? null : retryPauseMs(retry, tries, this.#rt.random);
    const failure: ActionFailure = failureOf(cause);
    await this.#pauseKnowingAll(order, {
      phase: isOver ? 'failed' : 'retrying',
      wakeInMs: retryInMs,
      tries,
      value: failure,
      forgets: failedSteps(cause),
    });
    const why = failure.message;
    this.#rt.events.emit('workflow.failed', { workflow, function: name, tries, why, retryInMs });
  }

  /** A signal that comes meanwhile is kept, and changes nothing about the end. */
  async #pauseKnowingAll(order: Orchestrator, step: Partial<PauseStep>): Promise<void> {
    while ((await this.#pause(order, step)).kind === 'signalled') await runOf(order).refresh();
  }

  async #pause(order: Orchestrator, step: Partial<PauseStep>): Promise<PauseReply> {
    const { workflowId, leaseId, signal } = order;
    const steps = runOf(order);
    const rest = { wakeInMs: null, tries: 0, waits: null, value: null, forgets: [] };
    const full = { phase: 'running', leaseId, signalCount: steps.signalCount, ...rest } as const;
    const call = { timeoutMs: 5_000 };
    const reply = await retryStore(this.#rt, signal, () =>
      this.#rt.store.runs.pause(workflowId, { ...full, ...step }, call),
    );
    if (reply.kind === 'not-held') throw new Error(`workflow '${workflowId}' is held elsewhere`);
    return reply;
  }
}

/** The result as JSON; throws what `sized` throws, and for what is not JSON. */
function plainResult(workflow: string, value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value)) as unknown;
  } catch {
    throw new StepFailedError(
      `the function of workflow '${workflow}' returned ${typeof value}, which is not JSON. Return what JSON.stringify can write.`,
    );
  }
}

/** Whether another try would end the same way. */
function isFinal(cause: unknown): boolean {
  if (cause instanceof StepFailedError) return true;
  // The result of an action stays what it is.
  if (cause instanceof WorkflowStepError) return cause.isCall;
  return cause instanceof HoldfastError && kindOf(cause) === 'invalid';
}

/** The steps whose failure ended the function, along the causes: they are to run again. */
function failedSteps(thrown: unknown): string[] {
  const names: string[] = [];
  let cause = thrown;
  for (let n = 0; n < MAX_CAUSES && cause instanceof Error; n++, cause = cause.cause)
    if (cause instanceof WorkflowStepError && !cause.isCall) names.push(cause.step);
  return names;
}
