import type { Clock } from './clock.ts';

/**
 * Waits until the input of the next turns of the event loop has been read. All that wait share one
 * callback for each turn: thousands may wait at once.
 */
export class TurnQueue {
  readonly #clock: Clock;
  /** Who waits, by the number of turns that are left. */
  readonly #waiting: (() => void)[][];
  #count = 0;

  constructor(clock: Clock, turns: number) {
    this.#clock = clock;
    this.#waiting = Array.from({ length: turns }, () => []);
  }

  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.at(-1)?.push(resolve);
      this.#count += 1;
      if (this.#count === 1) this.#clock.afterInput(this.#turn);
    });
  }

  readonly #turn = (): void => {
    const done = this.#waiting.shift() ?? [];
    this.#waiting.push([]);
    this.#count -= done.length;
    if (this.#count > 0) this.#clock.afterInput(this.#turn);
    for (const resolve of done) resolve();
  };
}
