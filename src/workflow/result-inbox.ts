/**
 * The results of one workflow, as they come in. A hint says that there are some, and without one they are looked for now and then while
 * somebody waits. What has been handed out counts as read with the orchestrator's next step.
 */
import type { Clock, Timer } from '../core/clock.ts';
import type { Store } from '../store/port/store.ts';
import type { StoredResult } from '../store/port/workflow-store.ts';
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
  /** Somebody has waited for a while, and no hint came: perhaps it was lost. */
  onQuiet(): void;
}

export class ResultInbox {
  readonly #parts: ResultInboxParts;
  /** By position, in order; what was handed out is not here any more. An action that was tried again has more than one. */
  readonly #unread = new Map<string, StoredResult>();
  /** Who waits for the result of one action, and hears of it also where somebody else takes it. */
  readonly #askers = new Map<string, Set<(result: StoredResult) => void>>();
  /** Positions of results that were handed out before a look met them among the unread. */
  readonly #early = new Set<string>();
  #after: string | undefined;
  #waiters = new Set<() => void>();
  #looking: Promise<void> | null = null;
  #isAskedAgain = false;
  #timer: Timer | null = null;

  constructor(parts: ResultInboxParts) {
    this.#parts = parts;
    parts.over.addEventListener('abort', () => this.#wake());
  }

  /** Whether somebody waits for a result just now. Who comes later looks first. */
  get isAwaited(): boolean {
    return this.#waiters.size > 0;
  }

  /** If somebody waits, looks for what is new, and says whether there was any. Whether a look that is under way finds it is anybody's guess. */
  async hasMore(): Promise<boolean> {
    if (!this.isAwaited || this.#looking !== null) return false;
    const before = this.#after;
    await this.look();
    return this.#after !== before;
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
    const heard: { result: StoredResult | null } = { result: this.#lastUnread(actionId) };
    const forget = this.#ask(actionId, (result) => {
      heard.result = result;
    });
    try {
      // It may have been read before: by an earlier step, or an earlier tenure.
      heard.result ??= await store.workflows.resultOf(workflow, actionId, { timeoutMs });
      while (heard.result === null) await this.#next(signal);
      return this.#handOut(heard.result);
    } finally {
      forget();
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

  #ask(actionId: string, hear: (result: StoredResult) => void): () => void {
    const askers = this.#askers.get(actionId) ?? new Set();
    this.#askers.set(actionId, askers.add(hear));
    return () => {
      askers.delete(hear);
      if (askers.size === 0 && this.#askers.get(actionId) === askers) this.#askers.delete(actionId);
    };
  }

  #handOut(stored: StoredResult): ActionResult {
    if (!this.#unread.delete(stored.position)) this.#early.add(stored.position);
    this.#parts.onRead(stored.position);
    return resultOf(this.#parts.workflow, stored);
  }

  #lastUnread(actionId: string): StoredResult | null {
    let last: StoredResult | null = null;
    for (const result of this.#unread.values()) if (result.actionId === actionId) last = result;
    return last;
  }

  async #lookOnce(): Promise<void> {
    const { store, workflow, timeoutMs } = this.#parts;
    const early = [...this.#early];
    for (;;) {
      const after = this.#after;
      const call = { timeoutMs, ...(after !== undefined && { after }) };
      const { results, more } = await store.workflows.results(workflow, call);
      for (const result of results) {
        this.#after = result.position;
        if (this.#early.has(result.position)) continue;
        this.#unread.set(result.position, result);
        for (const hear of this.#askers.get(result.actionId) ?? []) hear(result);
      }
      if (results.length > 0) this.#wake();
      if (!more) break;
    }
    // This look has met them, or they had been read by an earlier step. After a look that failed they are still to be met.
    for (const position of early) this.#early.delete(position);
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
      this.#parts.onQuiet();
      if (this.#waiters.size > 0) this.#lookLater();
    });
  }

  #wake(): void {
    for (const end of [...this.#waiters]) end();
  }
}
