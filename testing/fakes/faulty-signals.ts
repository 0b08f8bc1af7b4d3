import type { Clock } from '../../src/core/clock.ts';
import type { SignalStore, Subscriber } from '../../src/store/port/signal-store.ts';
import type { Through } from './faulty-store.ts';

/** How long a publication or a subscription may take. */
const CALL = { timeoutMs: 2_000 };

interface FaultySignalsParts {
  readonly signals: SignalStore;
  readonly clock: Clock;
  readonly through: Through;
  readonly faults: { readonly isCutOff: boolean };
}

/**
 * Signals over a bad connection: silent while it is cut off, and afterwards everybody hears that
 * something is missing.
 */
export class FaultySignals implements SignalStore {
  readonly #parts: FaultySignalsParts;
  readonly #subscribers = new Set<Subscriber>();

  constructor(parts: FaultySignalsParts) {
    this.#parts = parts;
  }

  publish(topic: string, message: string): Promise<void> {
    const { signals, through } = this.#parts;
    return through('publish', CALL, () => signals.publish(topic, message));
  }

  async subscribe(topic: string, subscriber: Subscriber): Promise<() => void> {
    const { signals, through, faults } = this.#parts;
    const heard: Subscriber = {
      onMessage: (message) => {
        if (!faults.isCutOff) subscriber.onMessage(message);
      },
      onGap: () => subscriber.onGap(),
    };
    const listen = () => signals.subscribe(topic, heard);
    // Who is told that it does not listen must not hear anything later: so a lost reply does no
    // harm here.
    const unsubscribe = await (faults.isCutOff ? through('subscribe', CALL, listen) : listen());
    this.#subscribers.add(subscriber);
    return () => {
      this.#subscribers.delete(subscriber);
      unsubscribe();
    };
  }

  /** In a moment, as over a network. */
  tellGap(): void {
    this.#parts.clock.soon(() => {
      for (const subscriber of [...this.#subscribers]) subscriber.onGap();
    });
  }
}
