import type { Runtime } from '../store/runtime.ts';
import { Subscription } from '../store/subscription.ts';
import type { Renewer } from './renewer.ts';

/** The topic on which a process tells the others that the store has lost data. */
const TOPIC = 'holdfast:forgot';

/**
 * Announces that the store has lost data. The process that notices the loss tells the others at
 * once. Every holder then renews, and so restores its lease, before another process asks for the
 * key. The notice is a hint: a process that misses it finds out at its next renewal, or when it
 * next examines the store.
 */
export class LossWatch {
  readonly #subscription: Subscription;
  readonly #unlisten: (() => void)[];

  constructor(rt: Runtime, renewer: Renewer) {
    const { store, events } = rt;
    this.#subscription = new Subscription(rt, TOPIC, (message) => {
      if (message !== null) renewer.renewAll();
    });
    this.#unlisten = [
      events.on('store.forgot', () => {
        renewer.renewAll();
        void store.signals.publish(TOPIC, '').catch(() => {});
      }),
      // Another process noticed the loss, and this process has just read so in the store.
      events.on('store.quarantined', () => renewer.renewAll()),
    ];
  }

  /** Listens for notices, once this process subscribes anyway: a first topic costs a connection. */
  async listen(): Promise<void> {
    await this.#subscription.open();
  }

  close(): void {
    for (const unlisten of this.#unlisten) unlisten();
    this.#subscription.close();
  }
}
