/**
 * True time, and everything that is going to happen, in one order: by its moment, then by its
 * phase, then by when it was planned. Between two happenings every promise that can settle does; so
 * a run depends on nothing but what was planned, and the same plan gives the same run.
 */

/**
 * At one moment a process first runs its timers, then reads what has arrived, then does what waited
 * for that. `outside` is what no process has a part in, a server at work or a write that arrives:
 * it settles no promise, so that nothing has to be waited for afterwards.
 */
export const PHASE = { timers: 0, outside: 1, input: 2, afterInput: 3, observer: 4 } as const;
export type Phase = (typeof PHASE)[keyof typeof PHASE];

export interface Happening {
  readonly atMs: number;
  readonly phase: Phase;
  readonly order: number;
  readonly run: () => void;
  /** Its place in the heap; -1 once it has run or was taken back. */
  slot: number;
}

/**
 * So often promises are waited for before the real event loop gets a turn: then rejections nobody
 * handles come to light.
 */
const WAITS_PER_TURN = 2_000;

/** `queueMicrotask` would do the same, and make an `AsyncResource` each time. */
const SETTLED = Promise.resolve();

export class Timeline {
  #nowMs = 0;
  #order = 0;
  readonly #heap: Happening[] = [];
  readonly #soon: (() => void)[] = [];
  #steps = 0;
  #isActing = false;
  /** Called after each happening, when all that its promises lead to is done. */
  onSettled: () => void = () => {};

  /** Milliseconds of true time. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /**
   * Whether code that runs now runs in this world. False while the event loop has its turn: what
   * runs then was started by a real timer or by real input.
   */
  get isActing(): boolean {
    return this.#isActing;
  }

  /** How much has happened. */
  get steps(): number {
    return this.#steps;
  }

  at(atMs: number, run: () => void, phase: Phase = PHASE.input): Happening {
    const slot = this.#heap.length;
    const planned = { atMs: Math.max(atMs, this.#nowMs), phase, order: this.#order++, run, slot };
    this.#heap.push(planned);
    this.#up(planned);
    return planned;
  }

  takeBack(happening: Happening): void {
    const { slot } = happening;
    if (slot < 0) return;
    happening.slot = -1;
    const last = this.#heap.pop();
    if (last === undefined || last === happening) return;
    this.#heap[slot] = last;
    last.slot = slot;
    this.#up(last);
    this.#down(last);
  }

  /** When the code that runs now, and what its promises lead to, is done. */
  soon(run: () => void): void {
    this.#soon.push(run);
  }

  /** Lets everything happen up to a moment. */
  run(untilMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      let waits = 0;
      const step = () => {
        this.#isActing = true;
        try {
          if (!this.#step(untilMs)) return end(resolve);
        } catch (error) {
          return end(() => reject(error));
        }
        // Ticks run when no promise is left that could settle, but only those that were asked for
        // by a promise.
        void SETTLED.then(++waits % WAITS_PER_TURN === 0 ? turn : tick);
      };
      const end = (next: () => void) => {
        this.#isActing = false;
        next();
      };
      const tick = () => process.nextTick(step);
      const turn = () => process.nextTick(end, () => setImmediate(step));
      setImmediate(step);
    });
  }

  /** False if there is nothing left to do. */
  #step(untilMs: number): boolean {
    this.#steps++;
    const soon = this.#soon.shift();
    if (soon !== undefined) {
      soon();
      return true;
    }
    for (;;) {
      this.onSettled();
      const next = this.#heap[0];
      if (next === undefined || next.atMs > untilMs) {
        this.#nowMs = Math.max(this.#nowMs, untilMs);
        return false;
      }
      this.takeBack(next);
      this.#nowMs = next.atMs;
      next.run();
      if (next.phase !== PHASE.outside) return true;
      this.#steps++;
    }
  }

  #up(moving: Happening): void {
    const heap = this.#heap;
    let { slot } = moving;
    while (slot > 0) {
      const parentSlot = (slot - 1) >> 1;
      const parent = heap[parentSlot] as Happening;
      if (!isBefore(moving, parent)) break;
      heap[slot] = parent;
      parent.slot = slot;
      slot = parentSlot;
    }
    heap[slot] = moving;
    moving.slot = slot;
  }

  #down(moving: Happening): void {
    const heap = this.#heap;
    let { slot } = moving;
    for (;;) {
      let child = heap[2 * slot + 1];
      const right = heap[2 * slot + 2];
      if (child !== undefined && right !== undefined && isBefore(right, child)) child = right;
      if (child === undefined || !isBefore(child, moving)) break;
      const { slot: childSlot } = child;
      heap[slot] = child;
      child.slot = slot;
      slot = childSlot;
    }
    heap[slot] = moving;
    moving.slot = slot;
  }
}

function isBefore(a: Happening, b: Happening): boolean {
  if (a.atMs !== b.atMs) return a.atMs < b.atMs;
  return a.phase !== b.phase ? a.phase < b.phase : a.order < b.order;
}
