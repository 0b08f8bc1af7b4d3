import type { Clock } from './clock.ts';

/** After a failure: pauses double from the first to the second. */
const AGAIN_FIRST_MS = 100;
const AGAIN_MOST_MS = 5_000;

export interface StallSettings {
  /** No pause is longer; default 5 s. */
  readonly mostMs?: number;
  onStalled(error: unknown): void;
  onResumed(afterMs: number): void;
}

/**
 * For what is tried again until it works: that it does not, and that it does again, is told once each, however often it was tried in
 * between; and how long to wait before the next try.
 */
export class Stall {
  readonly #clock: Clock;
  readonly #settings: StallSettings;
  #pauseMs = AGAIN_FIRST_MS;
  #sinceMs: number | null = null;

  constructor(clock: Clock, settings: StallSettings) {
    this.#clock = clock;
    this.#settings = settings;
  }

  /** It did not work. Says how long to wait; where many do, they add chance to it. */
  failed(error: unknown): number {
    if (this.#sinceMs === null) {
      this.#sinceMs = this.#clock.monotonicMs();
      this.#settings.onStalled(error);
    }
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(pauseMs * 2, this.#settings.mostMs ?? AGAIN_MOST_MS);
    return pauseMs;
  }

  /** It worked. */
  passed(): void {
    this.#pauseMs = AGAIN_FIRST_MS;
    if (this.#sinceMs === null) return;
    const afterMs = this.#clock.monotonicMs() - this.#sinceMs;
    this.#sinceMs = null;
    this.#settings.onResumed(afterMs);
  }
}
