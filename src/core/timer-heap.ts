import type { Clock, Timer } from './clock.ts';

/** What an agenda needs of an entry: when it is due, and a place to note where the entry stands. */
export interface Entry {
  dueMs: number;
  /** Owned by the agenda; -1 while the entry is not on it. */
  slot: number;
}

/**
 * Many due times, one timer: a binary heap ordered by `dueMs` on the monotonic clock. `onDue` is called when the
 * earliest entry is due and takes with `takeDue` what it wants.
 */
export class TimerHeap<E extends Entry> {
  readonly #clock: Clock;
  readonly #onDue: (lateMs: number) => void;
  readonly #heap: E[] = [];
  #timer: Timer | null = null;
  #timerAtMs = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, onDue: (lateMs: number) => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#heap.length;
  }

  *[Symbol.iterator](): IterableIterator<E> {
    yield* this.#heap;
  }

  /** Puts the entry on the agenda, or moves it, and makes sure that the timer is early enough. */
  schedule(entry: E, dueMs: number): void {
    entry.dueMs = dueMs;
    if (entry.slot < 0) {
      entry.slot = this.#heap.length;
      this.#heap.push(entry);
    }
    this.#settle(entry);
    this.#arm();
  }

  /** The same for many entries that are not on the agenda: one pass, where they are many. */
  scheduleAll(entries: readonly E[], dueMs: (entry: E) => number): void {
    if (entries.length < this.#heap.length / 8) {
      for (const entry of entries) this.schedule(entry, dueMs(entry));
      return;
    }
    for (const entry of entries) {
      entry.dueMs = dueMs(entry);
      entry.slot = this.#heap.length;
      this.#heap.push(entry);
    }
    this.#rebuild();
    this.#arm();
  }

  remove(entry: E): void {
    const slot = entry.slot;
    if (slot < 0) return;
    entry.slot = -1;
    const last = this.#heap.pop();
    if (last !== undefined && last !== entry) {
      this.#heap[slot] = last;
      last.slot = slot;
      this.#settle(last);
    }
    // The timer stays: what comes next on an agenda that is emptied and filled again and again can use it.
  }

  /** Takes everything due off the agenda in one pass: cheaper than one by one, where much is due at a time. */
  takeDue(nowMs: number, earlyMs: (entry: E) => number = () => 0): E[] {
    const heap = this.#heap;
    const due: E[] = [];
    let kept = 0;
    for (const entry of heap) {
      if (entry.dueMs - earlyMs(entry) <= nowMs) {
        entry.slot = -1;
        due.push(entry);
      } else {
        entry.slot = kept;
        heap[kept++] = entry;
      }
    }
    heap.length = kept;
    this.#rebuild();
    return due;
  }

  /** Takes the first entry off the agenda if it is due; undefined if it is not. */
  takeFirst(nowMs: number): E | undefined {
    const first = this.#heap[0];
    if (first === undefined || first.dueMs > nowMs) return undefined;
    this.remove(first);
    return first;
  }

  clear(): void {
    for (const entry of this.#heap) entry.slot = -1;
    this.#heap.length = 0;
    this.#disarm();
  }

  #arm(): void {
    const first = this.#heap[0];
    if (first === undefined || first.dueMs >= this.#timerAtMs) return;
    this.#disarm();
    this.#timerAtMs = first.dueMs;
    this.#timer = this.#clock.after(first.dueMs - this.#clock.monotonicMs(), () => this.#fire());
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#timerAtMs = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    const dueMs = this.#timerAtMs;
    this.#disarm();
    const nowMs = this.#clock.monotonicMs();
    // A timer may come early by a fraction of a millisecond, and the entry it was set for may have moved.
    const first = this.#heap[0];
    if (first !== undefined && first.dueMs <= nowMs) this.#onDue(nowMs - dueMs);
    this.#arm();
  }

  /** Moves the entry up or down to where its due time belongs, in a heap that is in order but for it. */
  #settle(entry: E): void {
    this.#up(entry);
    this.#down(entry);
  }

  #up(entry: E): void {
    const heap = this.#heap;
    let slot = entry.slot;
    while (slot > 0) {
      const parentSlot = (slot - 1) >> 1;
      const parent = heap[parentSlot];
      if (parent === undefined || parent.dueMs <= entry.dueMs) break;
      heap[slot] = parent;
      parent.slot = slot;
      slot = parentSlot;
    }
    heap[slot] = entry;
    entry.slot = slot;
  }

  #down(entry: E): void {
    const heap = this.#heap;
    let slot = entry.slot;
    for (;;) {
      const child = this.#earlierChild(slot);
      if (child === undefined || child.dueMs >= entry.dueMs) break;
      const childSlot = child.slot;
      heap[slot] = child;
      child.slot = slot;
      slot = childSlot;
    }
    heap[slot] = entry;
    entry.slot = slot;
  }

  /** Puts a heap in order whatever order it is in. */
  #rebuild(): void {
    const heap = this.#heap;
    for (let slot = (heap.length >> 1) - 1; slot >= 0; slot--) this.#down(heap[slot] as E);
  }

  #earlierChild(slot: number): E | undefined {
    const left = this.#heap[2 * slot + 1];
    const right = this.#heap[2 * slot + 2];
    return left !== undefined && right !== undefined && right.dueMs < left.dueMs ? right : left;
  }
}
