import type { Runtime } from './runtime.ts';

/**
 * A topic of hints. A subscription that cannot be opened is no error: its user also polls, and
 * calls `open()` again with each poll.
 *
 * **Idle.** `open()` leads to opening. **Opening.** The store is asked; a failure leads back to
 * idle. **Open.** `onHint` is called. **Closed.** By `close()`, permanently.
 */
export class Subscription {
  readonly #rt: Pick<Runtime, 'store'>;
  readonly #topic: string;
  readonly #onHint: (message: string | null) => void;
  #state: 'idle' | 'opening' | 'open' | 'closed' = 'idle';
  #opened: Promise<void> = Promise.resolve();
  #unsubscribe: (() => void) | null = null;

  /** `onHint` gets each message; null means that messages may have been missed. */
  constructor(rt: Pick<Runtime, 'store'>, topic: string, onHint: (message: string | null) => void) {
    this.#rt = rt;
    this.#topic = topic;
    this.#onHint = onHint;
  }

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  /** Resolves when the subscription is open, or could not be opened. Never rejects. */
  async open(): Promise<void> {
    if (this.#state === 'idle') {
      this.#state = 'opening';
      this.#opened = this.#subscribe();
    }
    await this.#opened;
  }

  close(): void {
    this.#state = 'closed';
    this.#unsubscribe?.();
  }

  async #subscribe(): Promise<void> {
    const { signals } = this.#rt.store;
    const onMessage = (message: string) => this.#onHint(message);
    const onGap = () => this.#onHint(null);
    try {
      const unsubscribe = await signals.subscribe(this.#topic, { onMessage, onGap });
      if (this.#state === 'opening') {
        this.#state = 'open';
        this.#unsubscribe = unsubscribe;
      } else unsubscribe();
    } catch {
      if (this.#state === 'opening') this.#state = 'idle';
    }
  }
}
