/**
 * Something that is done again and again: at once when there is a hint that it is worth it, else after a while. One round at a time, however
 * many hints there are. A round that fails is tried again after pauses that double; that it fails, and that it does not any more, is told once.
 */

import { Stall, type StallSettings } from './backoff.ts';
import type { Clock, Timer } from './clock.ts';
import { jittered, type Random } from './random.ts';

export interface LoopSettings extends StallSettings {
  /** How long without a hint; a round may say that the next is due earlier. */
  readonly everyMs: number;
  /** One round. What it returns is in how many milliseconds the next is due, if that is earlier. */
  round(): Promise<number | undefined>;
}

export class Loop {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #settings: LoopSettings;
  readonly #stall: Stall;
  #isRunning = false;
  #isHinted = false;
  #round: Promise<void> | null = null;
  #timer: Timer | null = null;

  constructor(parts: { clock: Clock; random: Random }, settings: LoopSettings) {
    this.#clock = parts.clock;
    this.#random = parts.random;
    this.#settings = settings;
    this.#stall = new Stall(parts.clock, settings);
  }

  /** Resolves when the first round is over. */
  start(): Promise<void> {
    this.#isRunning = true;
    return this.#begin();
  }

  /** It may be worth another round now. */
  hint(): void {
    if (!this.#isRunning || this.#isHinted) return;
    this.#isHinted = true;
    // What is hinted at in one turn is one round's work.
    if (this.#round === null) this.#clock.soon(() => void this.#begin());
  }

  /** Resolves when nothing of it is under way any more. */
  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#timer?.cancel();
    await this.#round;
  }

  #begin(): Promise<void> {
    if (!this.#isRunning) return Promise.resolve();
    this.#timer?.cancel();
    this.#round ??= this.#go().then((dueMs) => {
      this.#round = null;
      if (!this.#isRunning) return;
      // Between the last look at it and this there may have been a hint; unheeded, it would keep all others from being heard.
      if (this.#isHinted) void this.#begin();
      else this.#timer = this.#clock.after(dueMs, () => void this.#begin());
    });
    return this.#round;
  }

  /** Never rejects; says when to come back. */
  async #go(): Promise<number> {
    const { everyMs, round } = this.#settings;
    try {
      let dueMs = everyMs;
      do {
        this.#isHinted = false;
        dueMs = Math.min(everyMs, (await round()) ?? everyMs);
      } while (this.#isHinted && this.#isRunning);
      this.#stall.passed();
      return dueMs;
    } catch (error) {
      this.#isHinted = false;
      return jittered(this.#stall.failed(error), this.#random);
    }
  }
}
