/**
 * What one instance does with workflows, as its user would have it: it competes for each of them,
 * and the holder of one emits actions, waits for their results and says what state it is in, until
 * it lets go, or hands over, or is stopped by what happens to it. It also runs the processors,
 * whose handlers ask before each act, and send their fence along.
 */

import type { Holdfast } from '../../src/holdfast.ts';
import type { Action } from '../../src/workflow/action.ts';
import type { HandlerContext } from '../../src/workflow/attempt.ts';
import { FutureEpochError, StaleEpochError } from '../../src/workflow/errors.ts';
import type { Handoff, Orchestrator } from '../../src/workflow/orchestrator.ts';
import type { Audit } from './audit.ts';
import type { Counters } from './counters.ts';
import type { Courier, Recipient } from './courier.ts';
import type { Device } from './device.ts';
import type { SimProcess } from './host.ts';
import type { Path } from './network.ts';
import { FUNCTION_IDS } from './workflow-audit.ts';

/** What all instances of a world know of workflows. */
export interface WorkflowSetting {
  readonly ids: readonly string[];
  readonly processors: readonly string[];
  readonly ttlMs: number;
  readonly courier: Courier;
  /** The share of hints about results that get lost. */
  readonly deafness: number;
  /**
   * Most tries fail, orchestrators leave before what they emitted is done, and the next one
   * revives what is dead.
   */
  readonly isTroubled: boolean;
}

export interface WorkflowCrewParts {
  readonly setting: WorkflowSetting;
  readonly process: SimProcess;
  readonly path: Path;
  readonly holdfast: Holdfast;
  readonly audit: Audit;
  readonly counters: Counters;
  readonly device: Device;
  /** Aborts when the instance is told to stop. */
  readonly over: AbortSignal;
}

/** What a handler is told of what it is to do. */
interface Task {
  readonly ms: number;
  /** So many tries come to nothing. */
  readonly fails: number;
}

/** How long an action is a processor's without a sign of life, in TTLs. */
export const CLAIM_SHARE = 0.5;

const ACTION = 'STEP';
/** How long a handler takes, mostly at most; and one in so many, up to the longest. */
const TASK_USUAL_MS = 500;
const TASK_LONG_MS = 20_000;
const LONG_ONE_IN = 12;
/** One in so many fails once, and one in so many whenever it is tried. */
const FAILS_ONE_IN = 10;
const POISON_ONE_IN = 50;
const TRIES = 3;
/**
 * The same where there is trouble; and how long a handler takes there, and an orchestrator that
 * leaves looks on.
 */
const TROUBLED_FAILS_ONE_IN = 2;
const TROUBLED_POISON_ONE_IN = 4;
const TROUBLED_MS = 3_000;
const ACTS = 2;
/** Of one tenure, and of actions at once. */
const MOST_ROUNDS = 6;
const MOST_ACTIONS = 3;
/** How long a result is waited for: after a loss of data it may never come. */
const RESULT_WITHIN_MS = 120_000;
/** A workflow that another has is waited for this long. */
const CLAIM_WAIT_MS = 60_000;
const PAUSE_MOST_MS = 10_000;
/** A workflow of the function is started this often, by whoever comes first. */
const FUNCTION_EVERY_MS = 60_000;

export class WorkflowCrew implements Recipient {
  readonly process: SimProcess;
  readonly #parts: WorkflowCrewParts;

  constructor(parts: WorkflowCrewParts) {
    this.#parts = parts;
    this.process = parts.process;
  }

  start(): void {
    const { setting, holdfast } = this.#parts;
    const claim = setting.ttlMs * CLAIM_SHARE;
    for (const name of setting.processors) {
      const handlers = {
        [ACTION]: (task: unknown, context: HandlerContext) =>
          this.#handle(name, task as Task, context),
      };
      const options = { name, role: 'effect', handlers, claim, tries: TRIES } as const;
      void holdfast.processor(options).start();
    }
    for (const id of setting.ids) void this.#compete(id);
    void this.#runFunctions().catch(() => {});
    setting.courier.register(this);
  }

  /** Another process has handed a workflow over. */
  receive(handoff: Handoff): void {
    void this.#claim(handoff.workflowId, handoff);
  }

  /** Runs a function, starts a workflow of it now and then, and sends it signals. */
  async #runFunctions(): Promise<void> {
    const { setting, holdfast, over } = this.#parts;
    const { process } = this;
    const options = { ttl: setting.ttlMs, retry: { tries: 1_000, backoff: '100ms..5s' } };
    void holdfast.workflow('order', (order) => this.#order(order), options).run();
    while (!over.aborted && !process.isDead) {
      await process.sleep(process.random.next() * PAUSE_MOST_MS, over);
      const id = `${FUNCTION_IDS}${Math.floor(process.wallMs() / FUNCTION_EVERY_MS)}`;
      await holdfast.workflows.start('order', id).catch(() => {});
      if (this.#oneIn(2)) await holdfast.workflows.signal(id, 'go', 'x').catch(() => {});
    }
  }

  async #order(order: Orchestrator): Promise<number> {
    const { setting, audit } = this.#parts;
    const { process } = this;
    const id = order.workflowId;
    const step = (name: string) =>
      order.step(name, async ({ signal }) => {
        audit.workflows?.functions.stepRuns(id, name, order.leaseId);
        await process.sleep(process.random.next() * (setting.ttlMs / 4), signal);
        return name;
      });
    await step('first');
    await step('second');
    const to = setting.processors[0] ?? '';
    await order.call(ACTION, { ms: 100, fails: 0 }, { as: 'call', to });
    await order.sleep('nap', setting.ttlMs);
    await step('third');
    const timeout = 2 * setting.ttlMs;
    const first = await order.waitFor('go', { as: 'go-1', timeout });
    const second = await order.waitFor('go', { as: 'go-2', timeout });
    await step('last');
    this.#parts.counters.add('function done');
    return Number(first !== null) + Number(second !== null);
  }

  /** As an operator would: ends any tenure, or retries a dead letter. */
  async intervene(chance: number): Promise<void> {
    const { holdfast, setting } = this.#parts;
    const { workflows } = holdfast;
    const id = setting.ids[Math.floor(chance * setting.ids.length)] ?? '';
    const view = await workflows.get(id);
    if (view?.leaseId && this.#oneIn(2)) await workflows.revokeLease(view.leaseId, 'simulated');
    else await this.#reviveAll();
  }

  async #reviveAll(): Promise<void> {
    const { deadLetters } = this.#parts.holdfast.workflows;
    for await (const { id: dead } of deadLetters.list()) {
      // Where nearly everything fails, what is revived each time would be more and more.
      if (this.#parts.setting.isTroubled && this.#oneIn(2)) await deadLetters.drop(dead);
      else await deadLetters.retry(dead);
    }
  }

  async #compete(id: string): Promise<void> {
    const { over, setting } = this.#parts;
    const { process } = this;
    while (!over.aborted && !process.isDead) {
      await process.sleep(process.random.next() * PAUSE_MOST_MS, over).catch(() => {});
      if (setting.isTroubled && !over.aborted) await this.#reviveAll().catch(() => {});
      if (!over.aborted) await this.#claim(id);
    }
  }

  /**
   * Never rejects: held by others, lost, refused, the store is away, or we stop; all of it is told
   * otherwise.
   */
  async #claim(id: string, handoff?: Handoff): Promise<void> {
    const { holdfast, setting, over, audit, path } = this.#parts;
    const from = handoff === undefined ? { wait: CLAIM_WAIT_MS } : { handoff };
    const options = { ttl: setting.ttlMs, signal: over, resume: this.#oneIn(2), ...from };
    try {
      const orchestrator = await holdfast.workflows.claim(id, options);
      audit.workflows?.tenant(orchestrator.leaseId, () => path.isCutOut || path.isCutBack);
      try {
        await this.#serve(orchestrator);
      } finally {
        await orchestrator.release();
      }
    } catch {
      // As above.
    }
  }

  async #serve(orchestrator: Orchestrator): Promise<void> {
    const { setting } = this.#parts;
    const { process } = this;
    const rounds = Math.floor(process.random.next() * (MOST_ROUNDS + 1));
    for (let round = 0; round < rounds; round++) {
      await this.#patiently(orchestrator, () => this.#round(orchestrator, round));
      await process.sleep(process.random.next() * setting.ttlMs, orchestrator.signal);
    }
    if (setting.isTroubled) {
      await this.#emitSome(orchestrator);
      await process.sleep(process.random.next() * TROUBLED_MS, orchestrator.signal);
      return;
    }
    if (!this.#oneIn(3)) return;
    const window = setting.ttlMs / 3;
    this.#parts.setting.courier.send(process, await orchestrator.handoff({ window }));
  }

  /** Where the store has another epoch, it is asked how things are, and gone on from there. */
  async #patiently(orchestrator: Orchestrator, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const isEpoch = error instanceof StaleEpochError || error instanceof FutureEpochError;
      if (!isEpoch) throw error;
      await orchestrator.refresh();
    }
  }

  #emitSome(orchestrator: Orchestrator): Promise<Action[]> {
    const { setting } = this.#parts;
    const count = 1 + Math.floor(this.process.random.next() * MOST_ACTIONS);
    return Promise.all(
      Array.from({ length: count }, () => {
        const at = Math.floor(this.process.random.next() * setting.processors.length);
        const target = setting.processors[setting.isTroubled ? 0 : at] ?? '';
        const timeout = 2 * TASK_LONG_MS;
        return orchestrator.emit(ACTION, this.#task(), { target, timeout });
      }),
    );
  }

  async #round(orchestrator: Orchestrator, round: number): Promise<void> {
    const emitted = await this.#emitSome(orchestrator);
    for (const { action_id } of emitted) await this.#hear(orchestrator, action_id);
    await orchestrator.updateState({ round });
  }

  async #hear(orchestrator: Orchestrator, action: string): Promise<void> {
    const { audit } = this.#parts;
    const { process } = this;
    const enough = new AbortController();
    const timer = process.after(RESULT_WITHIN_MS, () => enough.abort(new Error('it never came')));
    const heard = audit.workflows?.waits({ process, workflow: orchestrator.workflowId, action });
    try {
      await orchestrator.result(action, { signal: enough.signal });
      this.#parts.counters.add('result heard');
    } finally {
      timer.cancel();
      heard?.();
    }
  }

  #task(): Task {
    if (this.#parts.setting.isTroubled) {
      const fails = this.#oneIn(TROUBLED_POISON_ONE_IN)
        ? TRIES
        : Number(this.#oneIn(TROUBLED_FAILS_ONE_IN));
      return { ms: this.process.random.next() * TROUBLED_MS, fails };
    }
    const fails = this.#oneIn(POISON_ONE_IN) ? TRIES : Number(this.#oneIn(FAILS_ONE_IN));
    const mostMs = fails === 0 && this.#oneIn(LONG_ONE_IN) ? TASK_LONG_MS : TASK_USUAL_MS;
    return { ms: this.process.random.next() * mostMs, fails };
  }

  async #handle(name: string, { ms, fails }: Task, context: HandlerContext): Promise<string> {
    const { audit, device } = this.#parts;
    const { process } = this;
    const { actionId, workflowId, fence, tries, signal } = context;
    const isValid = () => isAllowed(context);
    const target = `action:${actionId}`;
    const done = audit.claim({ process, target, isAttempt: true, isValid });
    try {
      for (let act = 0; act < ACTS; act++) {
        await process.sleep(ms / ACTS, signal);
        context.assertHeld();
        device.write(process, `action:${workflowId}/${name}`, fence);
      }
      if (tries <= fails) throw new Error('simulated');
      return 'ok';
    } finally {
      done();
    }
  }

  #oneIn(count: number): boolean {
    return this.process.random.next() * count < 1;
  }
}

/** Whether an attempt may continue. */
function isAllowed({ assertHeld }: HandlerContext): boolean {
  try {
    assertHeld();
    return true;
  } catch {
    return false;
  }
}
