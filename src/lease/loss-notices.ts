import type { Emitter } from '../core/events.ts';
import type { Store } from '../store/port/store.ts';

/** The topic on which a process tells the others that the store has lost data. */
const TOPIC = 'holdfast:forgot';

/**
 * Spreads the news that the store has lost data. The process that notices it tells the others at once, so that every holder
 * renews, and puts its lease back, before another process asks for the key. A hint: a process that does not hear it finds
 * out at its next renewal, or when it next examines the store.
 */
export class LossNotices {
  readonly #store: Store;
  readonly #onLoss: () => void;
  readonly #unlisten: (() => void)[];
  #hearing: Promise<() => void> | null = null;
  #isClosed = false;

  constructor({ store, events }: { store: Store; events: Emitter }, onLoss: () => void) {
    this.#store = store;
    this.#onLoss = onLoss;
    this.#unlisten = [
      events.on('store.forgot', () => {
        onLoss();
        void store.signals.publish(TOPIC, '').catch(() => {});
      }),
      // Another process noticed it, and this one has just learnt so from the store.
      events.on('store.quarantined', () => onLoss()),
    ];
  }

  /** Listens, once there is a subscription anyway: one for this alone would cost every process a connection. */
  hear(): void {
    if (this.#isClosed || this.#hearing !== null) return;
    const subscriber = { onMessage: () => this.#onLoss(), onGap: () => {} };
    this.#hearing = this.#store.signals.subscribe(TOPIC, subscriber);
    this.#hearing.catch(() => {
      this.#hearing = null;
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const unlisten of this.#unlisten) unlisten();
    void this.#hearing?.then((unsubscribe) => unsubscribe()).catch(() => {});
  }
}
