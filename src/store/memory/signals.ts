import type { Clock } from '../../core/clock.ts';
import type { SignalStore, Subscriber } from '../port/signal-store.ts';

export interface MemorySignals extends SignalStore {
  /** Returns how many subscribers get the message: a moment later, as over a network. */
  deliver(topic: string, message: string): number;
}

export function memorySignals(clock: Clock): MemorySignals {
  const subscribers = new Map<string, Set<Subscriber>>();
  const deliver = (topic: string, message: string) => {
    const now = [...(subscribers.get(topic) ?? [])];
    clock.soon(() => {
      for (const subscriber of now) subscriber.onMessage(message);
    });
    return now.length;
  };
  return {
    deliver,
    async publish(topic, message) {
      deliver(topic, message);
    },
    async subscribe(topic, subscriber) {
      const known = subscribers.get(topic) ?? new Set();
      subscribers.set(topic, known);
      known.add(subscriber);
      return () => known.delete(subscriber);
    },
  };
}
