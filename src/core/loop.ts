/**
 * Runs a round again and again: at once after `wake()`, otherwise after `everyMs`. One round runs
 * at a time. Calls of `wake()` in one turn, or during a round, lead to one more round.
 *
 * **Idle.** Before `start()`. **Waiting.** A timer runs until the next round. **Running.** A round
 * is under way; after a failure the next one follows after a pause that doubles each time.
 * **Stopped.** By `stop()`, for ever; a round that is under way finishes.
 */

import { BackoffState, type BackoffStateOptions } from './backoff.ts';
import type { Clock, Timer } from './clock.ts';
import { jittered, type Random } from './random.ts';
import type { BaseRuntime } from './runtime.ts';

export interface LoopOptions extends BackoffStateOptions {
  /** The longest time between two rounds. */
  readonly everyMs: number;
  /** One round. May return in how many milliseconds the next one is due, if that is earlier. */
  round(): Promise<number | undefined>;
}

export class Loop {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #options: LoopOptions;
  readonly #failures: BackoffState;
  #isRunning = false;
  #isWoken = false;
  #round: Promise<void> | null = null;
  #timer: Timer | null = null;

  constructor(rt: Pick<BaseRuntime, 'clock' | 'random'>, options: LoopOptions) {
    this.#clock = rt.clock;
    this.#random = rt.random;
    this.#options = options;
    this.#failures = new BackoffState(rt.clock, options);
  }

  /** Resolves when the first round is over, well or badly. */
  start(): Promise<void> {
    this.#isRunning = true;
    return this.#startRound();
  }

  /** Another round may be worth it now. Does nothing before `start()` and after `stop()`. */
  wake(): void {
    if (!this.#isRunning || this.#isWoken) return;
    this.#isWoken = true;
    // All calls of one turn share one round.
    if (this.#round === null) this.#clock.soon(() => void this.#startRound());
  }

  /**
   * Something beside the rounds failed, such as a write to the same store. Counts like a failed
   * round. Returns how long to wait before the next try.
   */
  failed(error: unknown): number {
    return jittered(this.#failures.failed(error), this.#random);
  }

  /** Resolves when no round is under way any more. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#timer?.cancel();
    await this.#round;
  }

  #startRound(): Promise<void> {
    if (!this.#isRunning) return Promise.resolve();
    this.#timer?.cancel();
    this.#round ??= this.#runRounds().then((pauseMs) => {
      this.#round = null;
      if (!this.#isRunning) return;
      // `wake()` may have been called since the last round ended. Missed here, it would block all
      // later calls.
      if (this.#isWoken) void this.#startRound();
      else this.#timer = this.#clock.after(pauseMs, () => void this.#startRound());
    });
    return this.#round;
  }

  /** Never rejects. Returns the pause before the next round. */
  async #runRounds(): Promise<number> {
    const { everyMs, round } = this.#options;
    try {
      let pauseMs = everyMs;
      do {
        this.#isWoken = false;
        pauseMs = Math.min(everyMs, (await round()) ?? everyMs);
      } while (this.#isWoken && this.#isRunning);
      this.#failures.succeeded();
      return pauseMs;
    } catch (error) {
      this.#isWoken = false;
      return this.failed(error);
    }
  }
}
