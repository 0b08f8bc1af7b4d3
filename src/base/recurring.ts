import type { Clock, Timer } from './clock.ts';
import { jittered, type Random } from './random.ts';

/** Does something again and again, never twice at once, with a jittered pause before each time, until it is stopped. */
export class Recurring {
  readonly #parts: { readonly clock: Clock; readonly random: Random };
  readonly #everyMs: number;
  readonly #round: () => Promise<void>;
  #timer: Timer | null = null;
  #underWay: Promise<void> = Promise.resolve();
  #isRunning = false;

  /** `round` must not reject; where it takes long, it asks `isRunning` whether to go on. */
  constructor(
    parts: { readonly clock: Clock; readonly random: Random },
    everyMs: number,
    round: () => Promise<void>,
  ) {
    this.#parts = parts;
    this.#everyMs = everyMs;
    this.#round = round;
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#arm();
  }

  /** Resolves when nothing of it is under way any more. */
  stop(): Promise<void> {
    this.#isRunning = false;
    this.#timer?.cancel();
    this.#timer = null;
    return this.#underWay;
  }

  #arm(): void {
    const { clock, random } = this.#parts;
    this.#timer = clock.after(jittered(this.#everyMs, random), () => {
      this.#underWay = this.#round().then(() => {
        if (this.#isRunning) this.#arm();
      });
    });
  }
}
