import { PHASE, type Timeline } from './timeline.ts';

/** What puts right again what is wrong now: after a while, or when a world is let heal. */
export class Cures {
  readonly #timeline: Timeline;
  readonly #onCured: () => void;
  readonly #cures = new Set<() => void>();
  /** Nothing is to go wrong: what would be put right later is put right at once. */
  #isResting = false;

  constructor(timeline: Timeline, onCured: () => void = () => {}) {
    this.#timeline = timeline;
    this.#onCured = onCured;
  }

  /** How many things are wrong now. */
  get size(): number {
    return this.#cures.size;
  }

  /** Something goes wrong again. */
  resume(): void {
    this.#isResting = false;
  }

  /** Puts everything right. */
  rest(): void {
    this.#isResting = true;
    for (const cure of [...this.#cures]) cure();
  }

  later(ms: number, run: () => void): void {
    if (this.#isResting) {
      run();
      return;
    }
    const cure = () => {
      if (!this.#cures.delete(cure)) return;
      this.#timeline.takeBack(planned);
      run();
      this.#onCured();
    };
    const planned = this.#timeline.at(this.#timeline.nowMs + ms, cure, PHASE.observer);
    this.#cures.add(cure);
  }
}
