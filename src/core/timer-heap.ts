import type { Clock, Timer } from './clock.ts';

/** What a `TimerHeap` needs of an entry. */
export interface TimerEntry {
  /** When the entry is due, on the monotonic clock. */
  dueAtMs: number;
  /** The entry's place in the heap; -1 while it is not scheduled. Only `TimerHeap` uses it. */
  index: number;
}

/**
 * Many due times, one timer: a binary heap ordered by `dueAtMs`. The heap calls `onDue` when its
 * earliest entry is due. `onDue` then removes entries with `takeDue` or `takeFirst`.
 */
export class TimerHeap<E extends TimerEntry> {
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

  /** Whether the entry is scheduled. */
  has(entry: E): boolean {
    return entry.index >= 0;
  }

  /** Schedules the entry, or moves it if it is scheduled already. */
  schedule(entry: E, dueAtMs: number): void {
    entry.dueAtMs = dueAtMs;
    if (entry.index < 0) {
      entry.index = this.#heap.length;
      this.#heap.push(entry);
    }
    this.#sift(entry);
    this.#arm();
  }

  /** Schedules entries, or moves them. Many entries cost one pass over the heap. */
  scheduleAll(entries: readonly E[], dueAtMs: (entry: E) => number): void {
    if (entries.length < this.#heap.length / 8) {
      for (const entry of entries) this.schedule(entry, dueAtMs(entry));
      return;
    }
    for (const entry of entries) {
      entry.dueAtMs = dueAtMs(entry);
      if (entry.index >= 0) continue;
      entry.index = this.#heap.length;
      this.#heap.push(entry);
    }
    this.#rebuild();
    this.#arm();
  }

  remove(entry: E): void {
    const index = entry.index;
    if (index < 0) return;
    entry.index = -1;
    const last = this.#heap.pop();
    if (last !== undefined && last !== entry) {
      this.#heap[index] = last;
      last.index = index;
      this.#sift(last);
    }
    // The timer stays set: a heap that is emptied and filled again often can use it for its next
    // entry.
  }

  /**
   * Removes and returns all entries that are due, in one pass. `earlyMs` says how much earlier than
   * its time an entry may be taken.
   */
  takeDue(nowMs: number, earlyMs: (entry: E) => number = () => 0): E[] {
    const heap = this.#heap;
    const due: E[] = [];
    let kept = 0;
    for (const entry of heap) {
      if (entry.dueAtMs - earlyMs(entry) <= nowMs) {
        entry.index = -1;
        due.push(entry);
      } else {
        entry.index = kept;
        heap[kept++] = entry;
      }
    }
    heap.length = kept;
    this.#rebuild();
    return due;
  }

  /** Removes and returns the first entry if it is due. */
  takeFirst(nowMs: number): E | undefined {
    const first = this.#heap[0];
    if (first === undefined || first.dueAtMs > nowMs) return undefined;
    this.remove(first);
    return first;
  }

  clear(): void {
    for (const entry of this.#heap) entry.index = -1;
    this.#heap.length = 0;
    this.#disarm();
  }

  #arm(): void {
    const first = this.#heap[0];
    if (first === undefined || first.dueAtMs >= this.#timerAtMs) return;
    this.#disarm();
    this.#timerAtMs = first.dueAtMs;
    this.#timer = this.#clock.after(first.dueAtMs - this.#clock.monotonicMs(), () => this.#fire());
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#timerAtMs = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    const dueAtMs = this.#timerAtMs;
    this.#disarm();
    const nowMs = this.#clock.monotonicMs();
    // A timer may fire a fraction of a millisecond early, and its entry may have moved since.
    const first = this.#heap[0];
    if (first !== undefined && first.dueAtMs <= nowMs) this.#onDue(nowMs - dueAtMs);
    this.#arm();
  }

  /** Restores the order of the heap after the due time of one entry has changed. */
  #sift(entry: E): void {
    this.#up(entry);
    this.#down(entry);
  }

  #up(entry: E): void {
    const heap = this.#heap;
    let index = entry.index;
    while (index > 0) {
      const parentIndex = (index - 1) >> 1;
      const parent = heap[parentIndex];
      if (parent === undefined || parent.dueAtMs <= entry.dueAtMs) break;
      heap[index] = parent;
      parent.index = index;
      index = parentIndex;
    }
    heap[index] = entry;
    entry.index = index;
  }

  #down(entry: E): void {
    const heap = this.#heap;
    let index = entry.index;
    for (;;) {
      const child = this.#earlierChild(index);
      if (child === undefined || child.dueAtMs >= entry.dueAtMs) break;
      const childIndex = child.index;
      heap[index] = child;
      child.index = index;
      index = childIndex;
    }
    heap[index] = entry;
    entry.index = index;
  }

  /** Restores the order of the heap from any order. */
  #rebuild(): void {
    const heap = this.#heap;
    for (let index = (heap.length >> 1) - 1; index >= 0; index--) this.#down(heap[index] as E);
  }

  #earlierChild(index: number): E | undefined {
    const left = this.#heap[2 * index + 1];
    const right = this.#heap[2 * index + 2];
    return left !== undefined && right !== undefined && right.dueAtMs < left.dueAtMs ? right : left;
  }
}
