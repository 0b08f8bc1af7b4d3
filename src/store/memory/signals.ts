import type { Clock } from '../../core/clock.ts';
import type { SignalStore, Subscriber } from '../port/signal-store.ts';

export class MemorySignals implements SignalStore {
  readonly #clock: Clock;
  readonly #subscribers = new Map<string, Set<Subscriber>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async publish(topic: string, message: string): Promise<void> {
    this.deliver(topic, message);
  }

  /** Returns how many subscribers get the message: a moment later, as over a network. */
  deliver(topic: string, message: string): number {
    const subscribers = [...(this.#subscribers.get(topic) ?? [])];
    this.#clock.soon(() => {
      for (const subscriber of subscribers) subscriber.onMessage(message);
    });
    return subscribers.length;
  }

  async subscribe(topic: string, subscriber: Subscriber): Promise<() => void> {
    const known = this.#subscribers.get(topic) ?? new Set();
    this.#subscribers.set(topic, known);
    known.add(subscriber);
    return () => known.delete(subscriber);
  }
}
