/**
 * Sees to it that a key this process has freed is taken. A release tells one waiter, and that waiter may be frozen, or
 * may die before it asks: then the key would lie idle until the others wake at the expiry they have observed.
 *
 * So the process that frees a key looks again a moment later. While the key is free and others stand in line, it wakes
 * twice as many as before: a row of frozen waiters is passed in few steps. Those woken together ask one after the other,
 * so the order of those who run is kept. The watch ends when the key is held, or nobody is left to wake.
 */

import type { Clock } from '../core/clock.ts';
import { type Entry, TimerHeap } from '../core/timer-heap.ts';
import type { Store } from '../store/port/store.ts';

/** How long those who were woken have to take the key. */
const TURN_MS = 150;
/** How many are woken at once, at most, and how often; then the expiry that waiters have observed is left to wake them. */
const MOST_WOKEN = 64;
const MOST_WAVES = 8;
/** How many are woken by a process that ends, and so can not look again. */
const LAST_WOKEN = 4;
/** Keys watched at once; of one more, waiters wake at the expiry they have observed. */
const MOST_WATCHED = 10_000;
/** Keys in one request; what is due within a while goes along. */
const BATCH = 256;
const EARLY_MS = 25;
const TIMEOUT_MS = 1_000;

interface Freed extends Entry {
  readonly key: string;
  waves: number;
}

export class WakeWatch {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #freed = new Map<string, Freed>();
  readonly #agenda: TimerHeap<Freed>;
  #isClosed = false;

  constructor(parts: { store: Store; clock: Clock }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#agenda = new TimerHeap(parts.clock, () => void this.#lookAtDue());
  }

  /** The store key was freed just now, and somebody was told. */
  watch(key: string): void {
    if (this.#isClosed || (this.#freed.size >= MOST_WATCHED && !this.#freed.has(key))) return;
    const freed = this.#freed.get(key) ?? { key, waves: 0, dueMs: 0, slot: -1 };
    freed.waves = 0;
    this.#freed.set(key, freed);
    this.#agenda.schedule(freed, this.#clock.monotonicMs() + TURN_MS);
  }

  /** Wakes a few more where a key is still free, since nobody here will look again. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#agenda.clear();
    const keys = [...this.#freed.keys()];
    this.#freed.clear();
    await this.#wake(keys, LAST_WOKEN);
  }

  async #lookAtDue(): Promise<void> {
    const due = this.#agenda.takeDue(this.#clock.monotonicMs(), () => EARLY_MS);
    const byCount = new Map<number, Freed[]>();
    for (const freed of due) {
      freed.waves++;
      const most = Math.min(2 ** freed.waves, MOST_WOKEN);
      byCount.set(most, [...(byCount.get(most) ?? []), freed]);
    }
    await Promise.all([...byCount].map(([most, freed]) => this.#wave(freed, most)));
  }

  async #wave(all: readonly Freed[], most: number): Promise<void> {
    const sentMs = this.#clock.monotonicMs();
    const woken = await this.#wake(
      all.map(({ key }) => key),
      most,
    );
    for (const [i, freed] of all.entries()) {
      // Freed again while we asked: its watch has begun anew.
      if (freed.slot >= 0 || this.#isClosed) continue;
      const isTaken = woken[i] === 0;
      if (isTaken || freed.waves === MOST_WAVES) this.#freed.delete(freed.key);
      else this.#agenda.schedule(freed, sentMs + TURN_MS);
    }
  }

  /** How many were woken for each key; null where the store did not answer. */
  async #wake(keys: readonly string[], most: number): Promise<(number | null)[]> {
    const apartMs = Math.floor(TURN_MS / most);
    const call = { most, apartMs, timeoutMs: TIMEOUT_MS };
    const batches: Promise<(number | null)[]>[] = [];
    for (let i = 0; i < keys.length; i += BATCH) {
      const batch = keys.slice(i, i + BATCH);
      batches.push(this.#store.leases.wakeNext(batch, call).catch(() => batch.map(() => null)));
    }
    return (await Promise.all(batches)).flat();
  }
}
