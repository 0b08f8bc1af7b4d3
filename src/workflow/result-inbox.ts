/**
 * The results of one workflow, as they come in. A hint says that there are some, and without one they are looked for now and then while
 * somebody waits. What has been handed out counts as read with the orchestrator's next step.
 */
import type { Clock, Timer } from '../base/clock.ts';
import type { Store } from '../store/store.ts';
import type { StoredResult } from '../store/workflow-store.ts';
import { type ActionResult, resultOf } from './action.ts';

/** While somebody waits, results are looked for this often, should the hint be lost. */
const LOOK_EVERY_MS = 2_000;

export interface ResultInboxParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly workflow: string;
  readonly timeoutMs: number;
  /** Aborts when the tenure is over: then nobody needs to wait any more. */
  readonly over: AbortSignal;
  onRead(position: string): void;
}

export class ResultInbox {
  readonly #parts: ResultInboxParts;
  /** In order; what was handed out is not here any more. */
  readonly #unread = new Map<string, StoredResult>();
  #after: string | undefined;
  #waiters = new Set<() => void>();
  #looking: Promise<void> | null = null;
  #isAskedAgain = false;
  #timer: Timer | null = null;

  constructor(parts: ResultInboxParts) {
    this.#parts = parts;
    parts.over.addEventListener('abort', () => this.#wake());
  }

  /** Looks for what is new. Never rejects: who waits is told of nothing, and it is looked for again. */
  look(): Promise<void> {
    if (this.#looking !== null) this.#isAskedAgain = true;
    else if (!this.#parts.over.aborted)
      this.#looking = this.#lookOnce()
        .catch(() => {})
        .then(() => {
          this.#looking = null;
          if (!this.#isAskedAgain) return;
          this.#isAskedAgain = false;
          void this.look();
        });
    return this.#looking ?? Promise.resolve();
  }

  /** The result of one action, when it is in. */
  async of(actionId: string, signal?: AbortSignal): Promise<ActionResult> {
    const { store, workflow, timeoutMs } = this.#parts;
    let isKnown = false;
    for (;;) {
      const unread = this.#unread.get(actionId);
      if (unread !== undefined) return this.#handOut(unread);
      // It may have been read before: by an earlier step, or an earlier tenure.
      const known = isKnown
        ? null
        : await store.workflows.resultOf(workflow, actionId, { timeoutMs });
      if (known !== null) return this.#handOut(known);
      isKnown = true;
      await this.#next(signal);
    }
  }

  /** All that is unread, and then what comes in. */
  async *all(signal?: AbortSignal): AsyncGenerator<ActionResult, void, void> {
    await this.look();
    for (;;) {
      const [first] = this.#unread.values();
      if (first !== undefined) yield this.#handOut(first);
      else await this.#next(signal);
    }
  }

  #handOut(stored: StoredResult): ActionResult {
    this.#unread.delete(stored.actionId);
    this.#parts.onRead(stored.position);
    return resultOf(this.#parts.workflow, stored);
  }

  async #lookOnce(): Promise<void> {
    const { store, workflow, timeoutMs } = this.#parts;
    for (;;) {
      const after = this.#after;
      const call = { timeoutMs, ...(after !== undefined && { after }) };
      const { results, more } = await store.workflows.results(workflow, call);
      for (const result of results) {
        this.#unread.set(result.actionId, result);
        this.#after = result.position;
      }
      if (results.length > 0) this.#wake();
      if (!more) return;
    }
  }

  /** Until something may be different. */
  #next(signal?: AbortSignal): Promise<void> {
    const { over } = this.#parts;
    return new Promise((resolve, reject) => {
      const ended = [over, signal].find((one) => one?.aborted);
      if (ended !== undefined) return reject(ended.reason);
      const end = () => {
        this.#waiters.delete(end);
        signal?.removeEventListener('abort', end);
        if (this.#waiters.size === 0) this.#timer?.cancel();
        const over = [this.#parts.over, signal].find((one) => one?.aborted);
        if (over === undefined) resolve();
        else reject(over.reason);
      };
      this.#waiters.add(end);
      signal?.addEventListener('abort', end);
      this.#lookLater();
      void this.look();
    });
  }

  #lookLater(): void {
    this.#timer?.cancel();
    this.#timer = this.#parts.clock.after(LOOK_EVERY_MS, () => {
      void this.look();
      if (this.#waiters.size > 0) this.#lookLater();
    });
  }

  #wake(): void {
    for (const end of [...this.#waiters]) end();
  }
}
