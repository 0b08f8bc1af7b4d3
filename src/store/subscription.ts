import type { SignalStore, Subscriber } from './port/signal-store.ts';

/**
 * Hears what is said on a topic of signals, for as long as it is wanted. Signals are hints: where they can not be heard nothing is wrong, only
 * slower, and whoever relies on them asks for it again with its next look.
 */
export class Subscription {
  readonly #signals: SignalStore;
  readonly #topic: string;
  readonly #subscriber: Subscriber;
  #unsubscribe: (() => void) | null = null;
  #isOpen = false;
  #isClosed = false;

  constructor(signals: SignalStore, topic: string, subscriber: Subscriber) {
    this.#signals = signals;
    this.#topic = topic;
    this.#subscriber = subscriber;
  }

  /** Begins to listen, unless it does already. Never rejects. */
  async open(): Promise<void> {
    if (this.#isOpen || this.#isClosed) return;
    this.#isOpen = true;
    try {
      this.#unsubscribe = await this.#signals.subscribe(this.#topic, this.#subscriber);
      if (this.#isClosed) this.#unsubscribe();
    } catch {
      this.#isOpen = false;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#unsubscribe?.();
  }
}
