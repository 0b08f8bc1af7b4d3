/** Hints only: losing every signal may cost time, never correctness. */
export interface SignalStore {
  publish(topic: string, message: string): Promise<void>;
  /**
   * Resolves once messages published from now on arrive. `onGap` is called when some may have been
   * lost. The function returned unsubscribes.
   */
  subscribe(topic: string, subscriber: Subscriber): Promise<() => void>;
}

export interface Subscriber {
  onMessage(message: string): void;
  onGap(): void;
}
