/**
 * The steps of one tenure, one after the other: each expects the epoch that the one before it has left. What is emitted while
 * a step is under way goes together in the next.
 *
 * A step whose answer did not come may have been taken. It is sent again, as it was, until the store says: every step can be,
 * without being taken twice. If that takes too long, its caller is told so; and before anything else is done the store is asked
 * how things are.
 */
import { type Clock, timeLeft } from '../core/clock.ts';
import { OutcomeUnknownError } from '../core/errors.ts';
import { jittered, type Random } from '../core/random.ts';
import type { Store } from '../store/port/store.ts';
import {
  type HandoffReply,
  type NewAction,
  type Step,
  type StepReply,
  UNREAD_MOST,
  UNRESOLVED_MOST,
} from '../store/port/workflow-store.ts';
import {
  FutureEpochError,
  LeaseViolationError,
  StaleEpochError,
  WorkflowFullError,
} from './errors.ts';

/** Actions in one request. */
const BATCH = 100;
/** Of how many results a request says that they have been read: the rest waits for the next. */
const READ_MOST = 500;
/** How long an answer is sought for. */
const DOUBT_MOST_MS = 30_000;
const AGAIN_FIRST_MS = 50;
const AGAIN_MOST_MS = 1_000;

export interface StepsParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly workflow: string;
  readonly leaseId: string;
  readonly timeoutMs: number;
  /** Aborts when the tenure is over: then nobody seeks an answer any more. */
  readonly over: AbortSignal;
  /** Throws if this tenure may not take a step any more, as far as is known here. */
  check(): void;
  /** The store says that it may not: whatever is known here should be looked at again. */
  onRefused(): void;
}

interface Waiting {
  /** What is to be emitted; null for a step of another kind. */
  readonly actions: readonly NewAction[] | null;
  readonly goesAlone: boolean;
  /** Whether the store hears with it what has been read. */
  readonly tellsRead: boolean;
  readonly run: (step: Step) => Promise<StepReply | HandoffReply>;
  /** With the epoch before the step, or before this part of it; null if it had been taken long before. */
  resolve(epoch: number | null): void;
  reject(error: unknown): void;
}

export class StepQueue {
  readonly #parts: StepsParts;
  #epoch: number;
  readonly #waiting: Waiting[] = [];
  /** Results that have been read, and the store does not know it yet. */
  readonly #read = new Set<string>();
  #isRunning = false;
  #isInDoubt = false;

  constructor(parts: StepsParts, epoch: number) {
    this.#parts = parts;
    this.#epoch = epoch;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /**
   * Resolves with the epoch of the action; null if it was known already, and so not emitted again. That can be only where its id
   * is the caller's own, `mayBeKnown`: then it goes alone, for the others of its request would be refused with it.
   */
  emit(action: NewAction, mayBeKnown: boolean): Promise<number | null> {
    const run = (step: Step) => this.#emit(step, [action]);
    return this.#enqueue({ actions: [action], goesAlone: mayBeKnown, tellsRead: true, run });
  }

  /** A step that goes alone. Resolves with the epoch before it. */
  async take(run: (step: Step) => Promise<StepReply | HandoffReply>): Promise<number> {
    const step = { actions: null, goesAlone: true, tellsRead: true, run };
    return (await this.#enqueue(step)) ?? this.#epoch;
  }

  /** Asks the store how things are, once what is under way is done; says what the state is. */
  async refresh(): Promise<unknown> {
    let state: unknown;
    const run = async (): Promise<StepReply> => {
      state = await this.#lookAgain();
      return { kind: 'done', epoch: this.#epoch };
    };
    await this.#enqueue({ actions: null, goesAlone: true, tellsRead: false, run });
    return state;
  }

  /** The store is told with the next step. */
  markRead(position: string): void {
    this.#read.add(position);
  }

  /** Tells the store now what has been read, if it does not know. */
  async flushRead(): Promise<void> {
    const { store, workflow, timeoutMs } = this.#parts;
    while (this.#read.size > 0) {
      const step = this.#step();
      await store.workflows.markRead(workflow, step, { timeoutMs });
      for (const position of step.read) this.#read.delete(position);
    }
  }

  #enqueue(step: Omit<Waiting, 'resolve' | 'reject'>): Promise<number | null> {
    const { actions, goesAlone, tellsRead, run } = step;
    return new Promise((resolve, reject) => {
      this.#waiting.push({ actions, goesAlone, tellsRead, run, resolve, reject });
      if (!this.#isRunning) void this.#runAll();
    });
  }

  async #runAll(): Promise<void> {
    this.#isRunning = true;
    for (let next = this.#nextGroup(); next.length > 0; next = this.#nextGroup()) {
      try {
        await this.#runGroup(next);
      } catch (error) {
        for (const { reject } of next) reject(error);
      }
    }
    this.#isRunning = false;
  }

  /** The first, and what can go with it. */
  #nextGroup(): Waiting[] {
    const first = this.#waiting[0];
    if (first === undefined || first.goesAlone) return this.#waiting.splice(0, 1);
    const end = this.#waiting.findIndex(({ goesAlone }, i) => goesAlone || i === BATCH);
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  async #runGroup(group: readonly Waiting[]): Promise<void> {
    const first = group[0];
    if (first === undefined) return;
    this.#parts.check();
    if (this.#isInDoubt) await this.#lookAgain();
    const isAlone = group.length === 1;
    const actions = isAlone ? (first.actions ?? []) : group.flatMap((one) => one.actions ?? []);
    const run = isAlone ? first.run : (step: Step) => this.#emit(step, actions);
    const before = this.#epoch;
    let step = this.#step();
    let reply = await this.#untilAnswered(() => run(step));
    if (reply.kind === 'full' && this.#read.size > step.read.length) {
      // One request cannot say of all results that they have been read: the others say it first.
      await this.flushRead().catch(() => {});
      step = this.#step();
      reply = await this.#untilAnswered(() => run(step));
    }
    this.#isInDoubt = false;
    if (reply.kind !== 'done') throw this.#refusal(reply, actions.length);
    if (first.tellsRead) for (const position of step.read) this.#read.delete(position);
    this.#epoch = reply.epoch;
    const isTaken = actions.length === 0 || reply.epoch === before + actions.length;
    for (let i = 0; i < group.length; i++) group[i]?.resolve(isTaken ? before + i : null);
  }

  async #lookAgain(): Promise<unknown> {
    const { store, workflow, leaseId, timeoutMs } = this.#parts;
    const [found] = await store.workflows.read([workflow], { timeoutMs });
    if (found?.leaseId !== leaseId) throw this.#notHeld(found?.leaseId ?? null);
    this.#epoch = found.epoch;
    this.#isInDoubt = false;
    return found.state;
  }

  #emit(step: Step, actions: readonly NewAction[]): Promise<StepReply> {
    const { store, workflow, timeoutMs } = this.#parts;
    const { leaseId, epoch, read } = step;
    return store.workflows.emit(workflow, { leaseId, epoch, read, actions }, { timeoutMs });
  }

  #step(): Step {
    const read = [...this.#read].slice(0, READ_MOST);
    return { leaseId: this.#parts.leaseId, epoch: this.#epoch, read };
  }

  async #untilAnswered<R>(send: () => Promise<R>): Promise<R> {
    const { clock, random, check, over } = this.#parts;
    const leftMs = timeLeft(clock, DOUBT_MOST_MS);
    let unknown: OutcomeUnknownError | null = null;
    for (let pauseMs = AGAIN_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, AGAIN_MOST_MS)) {
      try {
        check();
      } catch (error) {
        // It may have been taken while it was allowed: who is told that it was not would be told wrong.
        throw unknown ?? error;
      }
      try {
        return await send();
      } catch (error) {
        if (error instanceof OutcomeUnknownError) unknown = error;
        // Nothing has happened, and nothing is in doubt.
        if (unknown === null) throw error;
        this.#isInDoubt = true;
        if (leftMs() <= pauseMs) throw unknown;
      }
      await clock.sleep(jittered(pauseMs, random), over).catch(() => {});
      if (over.aborted) throw unknown;
    }
  }

  #refusal(reply: Exclude<StepReply | HandoffReply, { kind: 'done' }>, emitted: number): Error {
    const { workflow } = this.#parts;
    if (reply.kind === 'not-held') return this.#notHeld(reply.leaseId);
    if (reply.kind === 'full') {
      const { unresolved, unread } = reply;
      const isUnresolved = unresolved + emitted > UNRESOLVED_MOST;
      const limit = isUnresolved ? 'unresolved' : 'unread';
      const most = isUnresolved ? UNRESOLVED_MOST : UNREAD_MOST;
      return new WorkflowFullError({ workflow, limit, most, unresolved, unread });
    }
    const facts = { workflow_id: workflow, action_epoch: this.#epoch, current_epoch: reply.epoch };
    return reply.epoch > this.#epoch ? new StaleEpochError(facts) : new FutureEpochError(facts);
  }

  #notHeld(expected: string | null): LeaseViolationError {
    const { workflow, leaseId, onRefused } = this.#parts;
    onRefused();
    return new LeaseViolationError({
      context: {
        workflow_id: workflow,
        expected_lease: expected === leaseId ? null : expected,
        received_lease: leaseId,
      },
    });
  }
}
