/**
 * The results of one workflow, as they come in. A hint says that there are some. While a caller
 * waits, results are also polled for, in case the hint was lost. A result that was handed out
 * counts as read with the orchestrator's next step.
 */
import type { Timer } from '../core/clock.ts';
import type { StoredResult } from '../store/port/workflow-store.ts';
import type { Runtime } from '../store/runtime.ts';
import { type ActionResult, resultOf } from './action.ts';
import type { StepQueue } from './step-queue.ts';
import type { WorkflowTenure } from './workflow-tenure.ts';

/** How often a waiting caller polls, in case a hint was lost. */
const POLL_EVERY_MS = 2_000;

export class ResultQueue {
  readonly #rt: Runtime;
  readonly #tenure: WorkflowTenure;
  readonly #steps: StepQueue;
  readonly #onPoll: () => void;
  /**
   * By position, in order, without those that were handed out. An action that was revived has
   * several.
   */
  readonly #unread = new Map<string, StoredResult>();
  /**
   * Callers that wait for the result of one action. Each gets it, even if `all` hands it out first.
   */
  readonly #listeners = new Map<string, Set<(result: StoredResult) => void>>();
  /** Positions of results that were handed out before `refresh` read them among the unread. */
  readonly #handedOutEarly = new Set<string>();
  /** The position of the last result that was read. */
  #after: string | undefined;
  #waiters = new Set<() => void>();
  #refreshing: Promise<void> | null = null;
  #isToRefreshAgain = false;
  #timer: Timer | null = null;

  /** `onPoll` is called while a caller waits, every `POLL_EVERY_MS`. */
  constructor(rt: Runtime, tenure: WorkflowTenure, steps: StepQueue, onPoll: () => void) {
    this.#rt = rt;
    this.#tenure = tenure;
    this.#steps = steps;
    this.#onPoll = onPoll;
    tenure.signal.addEventListener('abort', () => this.#wakeAll());
  }

  /** Whether a caller waits for a result now. A later caller refreshes before it waits. */
  get isAwaited(): boolean {
    return this.#waiters.size > 0;
  }

  /**
   * Refreshes if a caller waits, and says whether there were new results. False if it was
   * refreshing already.
   */
  async hasMore(): Promise<boolean> {
    if (!this.isAwaited || this.#refreshing !== null) return false;
    const before = this.#after;
    await this.refresh();
    return this.#after !== before;
  }

  /** Reads new results. Never rejects: callers keep waiting, and the next poll tries again. */
  refresh(): Promise<void> {
    if (this.#refreshing !== null) this.#isToRefreshAgain = true;
    else if (!this.#tenure.signal.aborted)
      this.#refreshing = this.#readNew()
        .catch(() => {})
        .then(() => {
          this.#refreshing = null;
          if (!this.#isToRefreshAgain) return;
          this.#isToRefreshAgain = false;
          void this.refresh();
        });
    return this.#refreshing ?? Promise.resolve();
  }

  /** The result of one action, when it is in. */
  async of(actionId: string, signal?: AbortSignal): Promise<ActionResult> {
    const { workflow, timeoutMs } = this.#tenure;
    const got: { result: StoredResult | null } = { result: this.#lastUnread(actionId) };
    const unlisten = this.#listen(actionId, (result) => {
      got.result = result;
    });
    try {
      // It may have been read before: by an earlier step, or an earlier tenure.
      got.result ??= await this.#rt.store.workflows.resultOf(workflow, actionId, { timeoutMs });
      while (got.result === null) await this.#nextChange(signal);
      return this.#handOut(got.result);
    } finally {
      unlisten();
    }
  }

  /** All unread results, and then each as it comes in. */
  async *all(signal?: AbortSignal): AsyncGenerator<ActionResult, void, void> {
    await this.refresh();
    for (;;) {
      const [first] = this.#unread.values();
      if (first !== undefined) yield this.#handOut(first);
      else await this.#nextChange(signal);
    }
  }

  #listen(actionId: string, onResult: (result: StoredResult) => void): () => void {
    const listeners = this.#listeners.get(actionId) ?? new Set();
    this.#listeners.set(actionId, listeners.add(onResult));
    return () => {
      listeners.delete(onResult);
      if (listeners.size === 0 && this.#listeners.get(actionId) === listeners)
        this.#listeners.delete(actionId);
    };
  }

  #handOut(stored: StoredResult): ActionResult {
    if (!this.#unread.delete(stored.position)) this.#handedOutEarly.add(stored.position);
    this.#steps.markRead(stored.position);
    return resultOf(this.#tenure.workflow, stored);
  }

  #lastUnread(actionId: string): StoredResult | null {
    let last: StoredResult | null = null;
    for (const result of this.#unread.values()) if (result.actionId === actionId) last = result;
    return last;
  }

  async #readNew(): Promise<void> {
    const { workflow, timeoutMs } = this.#tenure;
    const early = [...this.#handedOutEarly];
    for (;;) {
      const call = { timeoutMs, after: this.#after };
      const { results, more } = await this.#rt.store.workflows.results(workflow, call);
      for (const result of results) {
        this.#after = result.position;
        if (this.#handedOutEarly.has(result.position)) continue;
        this.#unread.set(result.position, result);
        for (const onResult of this.#listeners.get(result.actionId) ?? []) onResult(result);
      }
      if (results.length > 0) this.#wakeAll();
      if (!more) break;
    }
    // These were met now, or had been read by an earlier step. After a failure they are still to be
    // met.
    for (const position of early) this.#handedOutEarly.delete(position);
  }

  /** Resolves when there may be a new result. */
  #nextChange(signal?: AbortSignal): Promise<void> {
    const aborted = () => [this.#tenure.signal, signal].find((one) => one?.aborted);
    return new Promise((resolve, reject) => {
      const over = aborted();
      if (over !== undefined) return reject(over.reason);
      const wake = () => {
        this.#waiters.delete(wake);
        signal?.removeEventListener('abort', wake);
        if (this.#waiters.size === 0) this.#timer?.cancel();
        const ended = aborted();
        if (ended === undefined) resolve();
        else reject(ended.reason);
      };
      this.#waiters.add(wake);
      signal?.addEventListener('abort', wake);
      this.#pollLater();
      void this.refresh();
    });
  }

  #pollLater(): void {
    this.#timer?.cancel();
    this.#timer = this.#rt.clock.after(POLL_EVERY_MS, () => {
      this.#onPoll();
      if (this.#waiters.size > 0) this.#pollLater();
    });
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiters]) wake();
  }
}
