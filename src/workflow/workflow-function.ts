/**
 * A workflow as a function. Any number of instances may run it: the store gives each workflow that
 * is due to one of them, and the lease of the workflow decides who continues it.
 *
 * **New.** Workflows can be started, signalled and awaited; none runs here. **Running.** By
 * `run()`:
 * takes as many workflows as `concurrency` allows, on a hint, when a place becomes free, when the
 * next one is due, and every `POLL_EVERY_MS`. **Stopping.** By `stop()`: takes none, and leaves
 * those under way to other instances when their steps have ended. **Stopped.** Permanently.
 */
import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { checkTargetId } from '../core/ids.ts';
import { Loop } from '../core/loop.ts';
import { checkKnown } from '../core/options.ts';
import { runTopic } from '../store/port/run-store.ts';
import type { Runtime } from '../store/runtime.ts';
import { Subscription } from '../store/subscription.ts';
import { FunctionRun, type FunctionSettings } from './function-run.ts';
import type { Orchestrator } from './orchestrator.ts';
import { type RetryPolicy, readRetry } from './retry-policy.ts';
import type { ActionDefinitions } from './schema.ts';
import type { ResultOptions, StartOutcome, Workflows } from './workflows.ts';

export interface WorkflowFunctionOptions<A extends ActionDefinitions = ActionDefinitions> {
  /** The action types of its calls, with their targets and schemas; default any. */
  actions?: A;
  /** How many workflows run here at once; default 64. Suspended ones do not count. */
  concurrency?: number;
  /**
   * How long the store keeps a workflow for its instance without a renewal; default 30 s. After a
   * crash another instance continues it then.
   */
  ttl?: Duration;
  /** How often the function is tried without progress; default 5 times, `'1s..1m'` apart. */
  retry?: RetryPolicy;
}

/** The code of a workflow. Its lines run again after a crash; its steps do not. */
export type WorkflowCode<Input, Output, A extends ActionDefinitions, S> = (
  order: Orchestrator<A, S>,
  input: Input,
) => Output | Promise<Output>;

const OPTIONS = new Set(['actions', 'concurrency', 'ttl', 'retry']);
const DEFAULT_RETRY = { tries: 5, minMs: 1_000, maxMs: 60_000 };
const MAX_CONCURRENCY = 10_000;
/** How often due workflows are looked for without a hint: eight times a minute. */
const POLL_EVERY_MS = 7_500;
/** Workflows that other instances run are looked at no more often than this. */
const MIN_LOOK_MS = 1_000;
/** An instance has so long to claim a workflow that the store gave it; less if its TTL is less. */
const MAX_GRACE_MS = 10_000;
const TIMEOUT_MS = 5_000;
const DEFAULT_STOP_MS = 10_000;

export class WorkflowFunction<
  Input = unknown,
  Output = unknown,
  A extends ActionDefinitions = ActionDefinitions,
  S = unknown,
> implements AsyncDisposable
{
  readonly name: string;
  readonly #rt: Runtime;
  readonly #workflows: Workflows;
  readonly #settings: FunctionSettings;
  readonly #concurrency: number;
  readonly #graceMs: number;
  readonly #runs = new Map<FunctionRun, Promise<void>>();
  readonly #loop: Loop;
  readonly #hints: Subscription;
  #state: 'new' | 'running' | 'stopping' | 'stopped' = 'new';

  constructor(
    rt: Runtime,
    workflows: Workflows,
    code: WorkflowCode<Input, Output, A, S>,
    options: WorkflowFunctionOptions<A> & { name: string },
  ) {
    const { name, ...given } = options;
    checkTargetId(name, 'name');
    checkKnown(given, OPTIONS);
    if (typeof code !== 'function')
      throw new ConfigError({ field: 'run', value: typeof code, rule: 'it must be a function' });
    const { concurrency = 64, ttl = '30s', actions } = options;
    if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > MAX_CONCURRENCY) {
      const rule = `it must be a whole number from 1 to ${MAX_CONCURRENCY}`;
      throw new ConfigError({ field: 'concurrency', value: concurrency, rule });
    }
    this.#graceMs = Math.min(durationMs(ttl, 'ttl'), MAX_GRACE_MS);
    this.name = name;
    this.#rt = rt;
    this.#workflows = workflows;
    this.#concurrency = concurrency;
    const claim = { ttl, resume: true, ...(actions && { actions }) };
    this.#settings = {
      name,
      retry: readRetry(options.retry ?? {}, DEFAULT_RETRY),
      claim: (id) => workflows.claim<A, S>(id, claim) as Promise<Orchestrator>,
      run: (order, input) => code(order as Orchestrator<A, S>, input as Input),
    };
    const { events } = rt;
    this.#loop = new Loop(rt, {
      everyMs: POLL_EVERY_MS,
      round: () => this.#takeDue(),
      onStalled: (error) => events.emit('function.stalled', { function: name, error }),
      onResumed: (afterMs) => events.emit('function.resumed', { function: name, afterMs }),
    });
    this.#hints = new Subscription(rt, runTopic(name), () => this.#loop.wake());
  }

  get state(): 'new' | 'running' | 'stopping' | 'stopped' {
    return this.#state;
  }

  /** How many workflows run here now. */
  get running(): number {
    return this.#runs.size;
  }

  /**
   * Starts a workflow, or finds the one of this id. Any instance that runs the function takes it.
   */
  start(id: string, input: Input): Promise<StartOutcome> {
    return this.#workflows.start(this.name, id, input);
  }

  /** Sends a signal to a workflow. It is kept until a line of the function waits for it. */
  signal(id: string, name: string, value?: unknown): Promise<void> {
    return this.#workflows.signal(id, name, value);
  }

  /** Resolves with what the function returned; throws `WORKFLOW_FAILED` if it failed. */
  result(id: string, options?: ResultOptions): Promise<Output> {
    return this.#workflows.result(id, options) as Promise<Output>;
  }

  /** Runs workflows in this process, until `stop()`. Resolves when it has looked for the first. */
  async run(): Promise<this> {
    if (this.#state !== 'new') return this;
    this.#state = 'running';
    await this.#loop.start();
    return this;
  }

  /**
   * Takes no more workflows. The steps under way may end within `within` (10 s); then the workflows
   * are left to other instances.
   */
  async stop({ within = DEFAULT_STOP_MS }: { within?: Duration } = {}): Promise<void> {
    const withinMs = durationMs(within, 'within');
    if (this.#state === 'stopped') return;
    this.#state = 'stopping';
    this.#hints.close();
    await this.#loop.stop();
    await Promise.all([...this.#runs.keys()].map((run) => run.leave(withinMs)));
    await Promise.all(this.#runs.values());
    this.#state = 'stopped';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** One round. Returns when the next workflow is due. */
  async #takeDue(): Promise<number | undefined> {
    void this.#hints.open();
    const most = this.#concurrency - this.#runs.size;
    if (this.#state !== 'running' || most <= 0) return undefined;
    const call = { most, graceMs: this.#graceMs, timeoutMs: TIMEOUT_MS };
    const reply = await this.#rt.store.runs.due([this.name], call);
    for (const { id } of reply.runs) this.#start(id);
    if (this.#runs.size >= this.#concurrency) return undefined;
    const { nextInMs, givenInMs } = reply;
    const lookInMs = Math.max(givenInMs ?? POLL_EVERY_MS, MIN_LOOK_MS);
    return Math.min(nextInMs ?? POLL_EVERY_MS, lookInMs);
  }

  #start(id: string): void {
    const run = new FunctionRun(this.#rt, this.#settings, id);
    const over = run.run().then(() => {
      this.#runs.delete(run);
      this.#loop.wake();
    });
    this.#runs.set(run, over);
  }
}
