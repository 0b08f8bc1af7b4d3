/**
 * The named steps of one workflow, as one tenure takes them. The store keeps each step by its name;
 * a step that is kept is not taken again, in this tenure or a later one.
 *
 * **Open lines.** A line of the function is *active* while its step runs or its action is under
 * way, and *waiting* while it sleeps or waits for a signal. A waiting line continues when its time
 * has come, or when a signal came. When all open lines wait, the function can be suspended:
 * `onIdle` is called, and says whether it was. A line of a suspended function never continues here.
 */
import type { Timer } from '../core/clock.ts';
import { ConfigError, GuardNotOfferedError, ValueTooLargeError } from '../core/errors.ts';
import { checkTargetId } from '../core/ids.ts';
import { retryStore } from '../core/retry.ts';
import { type GuardableTransaction, runIn } from '../lease/guard.ts';
import { sized } from '../store/port/limits.ts';
import type {
  KeepStep,
  LoadedRun,
  RunStore,
  StepKind,
  StoredSignal,
  StoredStep,
} from '../store/port/run-store.ts';
import { HISTORY_ERROR_MOST } from '../store/port/workflow-store.ts';
import type { Runtime } from '../store/runtime.ts';
import { failureOf } from './attempt.ts';
import {
  LeaseViolationError,
  StepFailedError,
  StepMismatchError,
  StepTransactionError,
  WorkflowNotFoundError,
  WorkflowStepError,
  WorkflowStepsError,
} from './errors.ts';
import {
  derivedUuid,
  type FailedTry,
  type StepOutcome,
  type StepValue,
  type WaitFact,
  type WaitValue,
} from './kept-step.ts';
import { type RetryLimits, retryPauseMs } from './retry-policy.ts';
import type { WorkflowTenure } from './workflow-tenure.ts';

export interface StepContext {
  /** The same for every try, in every tenure: a database that remembers it applies a step once. */
  readonly idempotencyKey: string;
  /** Higher than the fence of every earlier tenure of the workflow. */
  readonly fence: number;
  /** Fires when the tenure is over: another instance may run the step. */
  readonly signal: AbortSignal;
  /** 1 for the first try in this process. */
  readonly tries: number;
  /** PostgreSQL: ties a transaction of yours to the workflow's lease. See `Lease.guard`. */
  guard(transaction: GuardableTransaction): Promise<void>;
  /**
   * PostgreSQL: keeps the result of the step in a transaction of yours. Call it last in the
   * transaction. Your rows and the result are committed together, or neither is. Returns `result`.
   */
  keep<T>(transaction: GuardableTransaction, result: T): Promise<T>;
}

/** A signal that a workflow received. */
export interface ReceivedSignal<Value = unknown> {
  readonly value: Value;
  /** When it was sent, by the store's clock. */
  readonly at: Date;
}

interface Wait {
  readonly fact: WaitFact;
  wake(): void;
}

/** While a line waits here, signals are also looked for this often, in case a hint was lost. */
const POLL_EVERY_MS = 5_000;
/** Of the tries of a step that failed, the step keeps the last ones. */
const MAX_FAILED_TRIES = 10;
/** The longest timer of one round: a longer one would overflow. */
const MAX_TIMER_MS = 86_400_000;

export class WorkflowRun {
  /** Whether a step was kept that stays: one that failed is taken again with the next try. */
  hasProgress = false;
  /** Called when all open lines wait. Resolves with whether the function was suspended. */
  onIdle: ((waits: readonly WaitFact[]) => Promise<boolean>) | null = null;
  readonly #rt: Runtime;
  readonly #tenure: WorkflowTenure;
  readonly #steps = new Map<string, StoredStep>();
  /** Steps under way, by name: a second call with the same name waits for the first. */
  readonly #underWay = new Map<string, Promise<unknown>>();
  /** The names that `waitFor` has used in this tenure. */
  readonly #waitedFor = new Set<string>();
  readonly #waits = new Set<Wait>();
  /** Signals that lines of this tenure receive, or have received. */
  readonly #receivedIds = new Set<string>();
  #signals: readonly StoredSignal[] = [];
  #signalCount = 0;
  #loading: Promise<LoadedRun> | null = null;
  #active = 0;
  #isIdling = false;
  #isClosed = false;
  /** The store's clock minus this host's monotonic clock, as of the last reply. */
  #aheadMs = 0;

  constructor(rt: Runtime, tenure: WorkflowTenure) {
    this.#rt = rt;
    this.#tenure = tenure;
  }

  /** How many signals came that this tenure knows of. */
  get signalCount(): number {
    return this.#signalCount;
  }

  /** By the store's clock. */
  nowMs(): number {
    return this.#rt.clock.monotonicMs() + this.#aheadMs;
  }

  /** Reads what is kept, once. */
  load(): Promise<LoadedRun> {
    this.#loading ??= this.#read();
    return this.#loading;
  }

  /** Reads signals that have come since. */
  async refresh(): Promise<void> {
    await this.#read();
  }

  /** Opens no more lines: they stay where they are. Resolves when the active steps have ended. */
  async close(): Promise<void> {
    this.onIdle = null;
    this.#isClosed = true;
    await Promise.allSettled(this.#underWay.values());
  }

  /** A signal may have come. */
  async hear(): Promise<void> {
    if (this.#waits.size === 0) return;
    await this.#read();
    this.#wakeAll();
  }

  /** The step of this name, if it is kept; throws if it is of another kind. */
  async find(name: string, kind: StepKind): Promise<StoredStep | undefined> {
    checkTargetId(name, 'name');
    await this.load();
    if (this.#isClosed) await new Promise(() => {});
    const step = this.#steps.get(name);
    if (step !== undefined && step.kind !== kind)
      throw this.mismatch(name, NOUNS[step.kind], NOUNS[kind]);
    return step;
  }

  mismatch(step: string, kept: string, now: string): StepMismatchError {
    return new StepMismatchError({ workflow: this.#tenure.workflow, step, kept, now });
  }

  /** Follows from workflow and name alone. */
  idOf(name: string): string {
    return derivedUuid(this.#tenure.workflow, name);
  }

  /** Runs `work` as an active line. Of two with one name, the second gets what the first gets. */
  line<T>(name: string, work: () => Promise<T>): Promise<T> {
    const known = this.#underWay.get(name);
    if (known !== undefined) return known as Promise<T>;
    const running = this.active(work).finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, running);
    return running;
  }

  async active<T>(work: () => Promise<T>): Promise<T> {
    this.#active++;
    try {
      return await work();
    } finally {
      this.#active--;
      this.#checkIdle();
    }
  }

  /** The step of a call is kept by the store with its action. */
  keptCall(name: string, value: unknown): void {
    this.#keep({ name, kind: 'call', isDone: true, value }, this.nowMs());
  }

  async step<T>(
    name: string,
    run: (context: StepContext) => T | Promise<T>,
    retry: RetryLimits,
  ): Promise<T> {
    const found = await this.find(name, 'step');
    if (found !== undefined) return this.#outcome(name, found.value as StepValue) as T;
    return this.line(name, async () => {
      const beganMs = this.#rt.clock.monotonicMs();
      const work = { name, run, retry, beganMs, failed: [], hasTransaction: false };
      let outcome: StepOutcome;
      let cause: unknown;
      try {
        const result = await this.#try(work);
        const inTransaction = this.#steps.get(name);
        if (inTransaction !== undefined)
          return this.#outcome(name, inTransaction.value as StepValue) as T;
        outcome = { ok: this.#plain(name, result) };
      } catch (error) {
        // Another tenure runs the step again: this outcome does not count.
        if (this.#tenure.signal.aborted) throw this.#tenure.signal.reason;
        if (error instanceof ConfigError || error instanceof ValueTooLargeError) throw error;
        cause = error;
        outcome = { error: failureOf(error) };
      }
      const value = this.#valueOf(work, outcome);
      await this.#send({ name, kind: 'step', isDone: true, value });
      // A transaction that was open until now may have committed: then the store has kept that.
      if (work.hasTransaction) return this.#outcome(name, await this.#readStep(name), cause) as T;
      return this.#outcome(name, value, cause) as T;
    });
  }

  #valueOf({ beganMs, failed }: StepWork<unknown>, outcome: StepOutcome): StepValue {
    const tookMs = Math.round(this.#rt.clock.monotonicMs() - beganMs);
    return { ...outcome, tookMs, ...(failed.length > 0 && { failed: [...failed] }) };
  }

  /** Keeps the result of a step in a transaction of the user. */
  async #keepIn<T>(work: StepWork<unknown>, to: GuardableTransaction, result: T): Promise<T> {
    const { guard, name: store } = this.#rt.store;
    const { workflow, leaseId } = this.#tenure;
    const { name } = work;
    if (guard === undefined) throw new GuardNotOfferedError({ store, key: workflow });
    this.#tenure.check();
    const ok = this.#plain(name, result);
    const step = { leaseId, name, kind: 'step', value: this.#valueOf(work, { ok }) } as const;
    work.hasTransaction = true;
    await runIn(to, guard.keepSql(workflow, step), (said) => this.#keepRefusal(name, said));
    return ok as T;
  }

  #keepRefusal(step: string, said: string): Error | undefined {
    const [, why, facts = ''] = /\bSTEP_REFUSED (kept|not-held|full)([ \w.-]*)/.exec(said) ?? [];
    const { workflow } = this.#tenure;
    switch (why) {
      case undefined:
        return undefined;
      case 'kept':
        return new StepTransactionError({ workflow, step, reason: 'kept' });
      case 'full': {
        const [steps = 0, signals = 0, bytes = 0] = facts.trim().split(' ').map(Number);
        return new WorkflowStepsError({ workflow, steps, signals, bytes });
      }
      default:
        return this.#notHeld(facts.trim() || null);
    }
  }

  /** Whether a transaction of the user has kept the step. One that is still open has not. */
  async #isKept(name: string): Promise<boolean> {
    await this.#read();
    if (!this.#steps.has(name)) return false;
    this.hasProgress = true;
    return true;
  }

  /** A step as the store has kept it, whatever this process has asked for. */
  async #readStep(name: string): Promise<StepValue> {
    const { steps } = await this.#read();
    const found = steps.find((step) => step.name === name) as StoredStep;
    this.#keep(found, found.atMs);
    return found.value as StepValue;
  }

  async sleep(name: string, ms: number): Promise<void> {
    const found = await this.find(name, 'sleep');
    const before = (found?.value as { readonly ms: number } | undefined)?.ms ?? ms;
    if (before !== ms) throw this.mismatch(name, `a sleep of ${before} ms`, `one of ${ms} ms`);
    if (found?.isDone) return;
    const step = { name, kind: 'sleep', value: { ms } } as const;
    const { atMs } = found ?? (await this.active(() => this.#send({ ...step, isDone: ms === 0 })));
    const untilMs = atMs + ms;
    while (this.nowMs() < untilMs) await this.#wait({ sleep: name, untilMs });
    if (ms > 0) await this.active(() => this.#send({ ...step, isDone: true }));
  }

  /** Null if no signal of this name came within the time. */
  async waitFor(
    signal: string,
    as: string,
    timeoutMs: number | null,
  ): Promise<ReceivedSignal | null> {
    checkTargetId(signal, 'signal');
    const found = await this.find(as, 'signal');
    this.#checkOnce(as);
    const kept = found?.value as WaitValue | undefined;
    if (kept !== undefined && kept.signal !== signal)
      throw this.mismatch(as, `a wait for '${kept.signal}'`, `one for '${signal}'`);
    if (found?.isDone) return receivedOf(kept);
    const step = { name: as, kind: 'signal' } as const;
    let atMs = found?.atMs;
    for (;;) {
      const [came] = this.#signals.filter(({ name }) => name === signal);
      if (came !== undefined) return this.active(() => this.#receive(as, signal, came));
      if (atMs === undefined && timeoutMs !== null) {
        const value = { signal, timeoutMs };
        ({ atMs } = await this.active(() => this.#send({ ...step, isDone: false, value })));
      }
      const untilMs = timeoutMs === null || atMs === undefined ? null : atMs + timeoutMs;
      if (untilMs !== null && this.nowMs() >= untilMs) {
        // One that came just before the time was over still counts.
        await this.active(() => this.#read());
        if (this.#signals.some(({ name }) => name === signal)) continue;
        const value = { signal, received: null };
        await this.active(() => this.#send({ ...step, isDone: true, value }));
        return null;
      }
      await this.#wait({ signal, as, untilMs });
    }
  }

  async #receive(as: string, signal: string, came: StoredSignal): Promise<ReceivedSignal> {
    this.#receivedIds.add(came.id);
    this.#signals = this.#signals.filter(({ id }) => id !== came.id);
    const received = { value: came.value, atMs: came.atMs };
    const value = { signal, received };
    await this.#send({ name: as, kind: 'signal', isDone: true, value, receives: came.id });
    return receivedOf(value) as ReceivedSignal;
  }

  #checkOnce(as: string): void {
    if (!this.#waitedFor.has(as)) return void this.#waitedFor.add(as);
    const rule = 'a signal is received once: give each waitFor a name of its own with { as }';
    throw new ConfigError({ field: 'as', value: as, rule });
  }

  /**
   * Returns what `run` returned, or anything if a transaction of the user has kept the step. Adds
   * to `failed` each try that another follows; of many, the last `MAX_FAILED_TRIES`.
   */
  async #try(work: StepWork<unknown>): Promise<unknown> {
    const { clock, random, events } = this.#rt;
    const { name, run, retry, failed } = work;
    const { signal, lease, workflow } = this.#tenure;
    for (let tries = 1; ; tries++) {
      this.#tenure.check();
      const context: StepContext = {
        idempotencyKey: this.idOf(name),
        fence: lease.fence,
        signal,
        tries,
        guard: (transaction) => lease.guard(transaction),
        keep: (transaction, result) => this.#keepIn(work, transaction, result),
      };
      try {
        const result = await run(context);
        if (!work.hasTransaction || (await this.#isKept(name))) return result;
        throw new StepTransactionError({ workflow, step: name, reason: 'uncommitted' });
      } catch (error) {
        // The answer to a COMMIT may be lost: what the store has counts.
        const mayBeKept = work.hasTransaction && !(error instanceof LeaseViolationError);
        if (mayBeKept && (await this.#isKept(name))) return null;
        if (tries >= retry.tries || error instanceof StepFailedError) throw error;
        signal.throwIfAborted();
        const retryInMs = retryPauseMs(retry, tries, random);
        const why = failureOf(error).message;
        failed.push({
          tries,
          atMs: Math.round(this.nowMs()),
          error: why.slice(0, HISTORY_ERROR_MOST),
        });
        if (failed.length > MAX_FAILED_TRIES) failed.shift();
        events.emit('step.failed', { workflow, step: name, tries, why, retryInMs });
        await clock.sleep(retryInMs, signal);
      }
    }
  }

  /** The value as the store keeps it, so that a replay returns the same. */
  #plain(name: string, value: unknown): unknown {
    let json: string | undefined;
    let why = '';
    try {
      json = JSON.stringify(value ?? null);
    } catch (error) {
      why = error instanceof Error ? `: ${error.message.split('\n')[0]}` : '';
    }
    if (json === undefined) {
      const rule = `the result of a step is JSON${why}`;
      throw new ConfigError({ field: `step '${name}'`, value: typeof value, rule });
    }
    return JSON.parse(sized('workflow step', name, json)) as unknown;
  }

  #outcome(step: string, value: StepOutcome, cause?: unknown): unknown {
    if ('ok' in value) return value.ok;
    const { workflow } = this.#tenure;
    const facts = { workflow, step, failure: value.error, isCall: false, isDead: false };
    throw new WorkflowStepError(facts, { cause });
  }

  /**
   * Resolves when there may be something new for a waiting line. Rejects when the tenure is over.
   */
  #wait(fact: WaitFact): Promise<void> {
    const { clock } = this.#rt;
    const { signal } = this.#tenure;
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      let timer: Timer | null = null;
      const wake = () => {
        timer?.cancel();
        this.#waits.delete(wait);
        signal.removeEventListener('abort', over);
        resolve();
      };
      const over = () => {
        timer?.cancel();
        this.#waits.delete(wait);
        reject(signal.reason);
      };
      const wait = { fact, wake };
      const leftMs = fact.untilMs === null ? MAX_TIMER_MS : fact.untilMs - this.nowMs();
      const pollMs = 'signal' in fact ? POLL_EVERY_MS : MAX_TIMER_MS;
      const look = async () => {
        if ('signal' in fact) await this.#read().catch(() => {});
        wake();
      };
      timer = clock.after(Math.max(1, Math.min(leftMs, pollMs)), () => void look());
      signal.addEventListener('abort', over, { once: true });
      this.#waits.add(wait);
      this.#checkIdle();
    });
  }

  /** After this turn: the function may have other lines to open. */
  #checkIdle(): void {
    if (this.onIdle === null || this.#isIdling || !this.#isIdle) return;
    this.#isIdling = true;
    this.#rt.clock.soon(() => void this.#idle());
  }

  get #isIdle(): boolean {
    return this.#active === 0 && this.#waits.size > 0;
  }

  async #idle(): Promise<void> {
    if (this.#isIdle) {
      const waits = [...this.#waits].map(({ fact }) => fact);
      // A suspended function never continues here: its lines stay as they are.
      if (await this.onIdle?.(waits)) return;
      await this.#read().catch(() => {});
    }
    this.#isIdling = false;
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const { wake } of [...this.#waits]) wake();
  }

  /** Keeps a step, again and again until the store answers: the same name is kept once. */
  async #send(step: Omit<KeepStep, 'leaseId'>): Promise<{ atMs: number }> {
    const { workflow, leaseId, signal, timeoutMs } = this.#tenure;
    this.#tenure.check();
    const reply = await retryStore(this.#rt, signal, () =>
      this.#runs.keep(workflow, { ...step, leaseId }, { timeoutMs }),
    );
    if (reply.kind === 'full') {
      const { steps, signals, bytes } = reply;
      throw new WorkflowStepsError({ workflow, steps, signals, bytes });
    }
    if (reply.kind === 'not-held') throw this.#notHeld(reply.leaseId);
    this.#setClock(reply.nowMs);
    this.#keep(step, reply.atMs);
    return reply;
  }

  /** The store says that `found` has the workflow, or denies a step of the lease that has it. */
  #notHeld(found: string | null): LeaseViolationError {
    void this.#tenure.verify();
    return this.#tenure.violation(found === this.#tenure.leaseId ? null : found);
  }

  #keep({ name, kind, isDone, value }: Omit<KeepStep, 'leaseId'>, atMs: number): void {
    this.#steps.set(name, { name, kind, isDone, value, atMs });
    if (kind !== 'step' || 'ok' in (value as StepOutcome)) this.hasProgress = true;
  }

  async #read(): Promise<LoadedRun> {
    const { workflow, signal, timeoutMs } = this.#tenure;
    const found = await retryStore(this.#rt, signal, () =>
      this.#runs.load(workflow, { timeoutMs }),
    );
    if (found === null) throw new WorkflowNotFoundError({ workflow });
    for (const step of found.steps)
      if (this.#steps.get(step.name)?.isDone !== true) this.#steps.set(step.name, step);
    // A signal that a line receives just now may be in the reply still.
    this.#signals = found.signals.filter(({ id }) => !this.#receivedIds.has(id));
    this.#signalCount = found.signalCount;
    this.#setClock(found.nowMs);
    return found;
  }

  #setClock(nowMs: number): void {
    this.#aheadMs = nowMs - this.#rt.clock.monotonicMs();
  }

  get #runs(): RunStore {
    return this.#rt.store.runs;
  }
}

interface StepWork<T> {
  readonly name: string;
  readonly run: (context: StepContext) => T | Promise<T>;
  readonly retry: RetryLimits;
  readonly beganMs: number;
  readonly failed: FailedTry[];
  /** Whether a transaction of the user was asked to keep the step: it may have, or may yet. */
  hasTransaction: boolean;
}

const NOUNS = { step: 'a step', call: 'a call', sleep: 'a sleep', signal: 'a wait for a signal' };

function receivedOf(kept: WaitValue | undefined): ReceivedSignal | null {
  const { received = null } = kept ?? {};
  return received === null ? null : { value: received.value, at: new Date(received.atMs) };
}
