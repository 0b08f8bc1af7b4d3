/**
 * Makes sure that a key which this process has freed is taken. A release wakes one waiter. That
 * waiter may be frozen, or die before it asks: the key would then stay free until other waiters
 * wake at the expiry they saw.
 *
 * So the process that frees a key asks the store again a moment later. While the key is free and
 * has waiters, the process wakes twice as many of them as before, so a few waves get past a row of
 * frozen waiters. The waiters of one wave ask one after the other, so those that run keep their
 * order. The watch ends when the key is held, or no waiter is left.
 */

import type { Clock } from '../core/clock.ts';
import { type TimerEntry, TimerHeap } from '../core/timer-heap.ts';
import type { Runtime } from '../store/runtime.ts';

/** How long the waiters of one wave have to take the key. */
const WAVE_MS = 150;
/**
 * Limits of one wave and of their number. After the last one, waiters wake at the expiry they saw.
 */
const MAX_WOKEN = 64;
const MAX_WAVES = 8;
/** How many waiters a closing process wakes, because it cannot ask again. */
const LAST_WOKEN = 4;
/** Keys watched at once. The waiters of any further key wake at the expiry they saw. */
const MAX_WATCHED = 10_000;
/** Keys in one request. Keys that are due within `EARLY_MS` are sent along. */
const BATCH = 256;
const EARLY_MS = 25;
const TIMEOUT_MS = 1_000;

interface FreedKey extends TimerEntry {
  readonly storeKey: string;
  waves: number;
}

export class WakeWatch {
  readonly #rt: Runtime;
  readonly #clock: Clock;
  readonly #freed = new Map<string, FreedKey>();
  readonly #timers: TimerHeap<FreedKey>;
  #isClosed = false;

  constructor(rt: Runtime) {
    this.#rt = rt;
    this.#clock = rt.clock;
    this.#timers = new TimerHeap(rt.clock, () => void this.#onDue());
  }

  /** The key was freed just now, and the store woke a waiter; or it will be free in `inMs`. */
  watch(storeKey: string, inMs = 0): void {
    if (this.#isClosed) return;
    if (this.#freed.size >= MAX_WATCHED && !this.#freed.has(storeKey)) return;
    const freed = this.#freed.get(storeKey) ?? { storeKey, waves: 0, dueAtMs: 0, index: -1 };
    freed.waves = 0;
    this.#freed.set(storeKey, freed);
    this.#timers.schedule(freed, this.#clock.monotonicMs() + inMs + WAVE_MS);
  }

  /**
   * Wakes a few more waiters of keys that are still free, since this process will not ask again.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timers.clear();
    const storeKeys = [...this.#freed.keys()];
    this.#freed.clear();
    await this.#wake(storeKeys, LAST_WOKEN);
  }

  async #onDue(): Promise<void> {
    const due = this.#timers.takeDue(this.#clock.monotonicMs(), () => EARLY_MS);
    const byCount = new Map<number, FreedKey[]>();
    for (const freed of due) {
      freed.waves++;
      const count = Math.min(2 ** freed.waves, MAX_WOKEN);
      byCount.set(count, [...(byCount.get(count) ?? []), freed]);
    }
    await Promise.all([...byCount].map(([count, freed]) => this.#wave(freed, count)));
  }

  async #wave(all: readonly FreedKey[], count: number): Promise<void> {
    const sentAtMs = this.#clock.monotonicMs();
    const woken = await this.#wake(
      all.map(({ storeKey }) => storeKey),
      count,
    );
    for (const [i, freed] of all.entries()) {
      // Scheduled: the key was freed again during the request, and its watch has started over.
      if (this.#timers.has(freed) || this.#isClosed) continue;
      const isTaken = woken[i] === 0;
      if (isTaken || freed.waves === MAX_WAVES) this.#freed.delete(freed.storeKey);
      else this.#timers.schedule(freed, sentAtMs + WAVE_MS);
    }
  }

  /** How many waiters were woken for each key; null where the store did not answer. */
  async #wake(storeKeys: readonly string[], count: number): Promise<(number | null)[]> {
    const { leases } = this.#rt.store;
    const call = { most: count, apartMs: Math.floor(WAVE_MS / count), timeoutMs: TIMEOUT_MS };
    const batches: Promise<(number | null)[]>[] = [];
    for (let i = 0; i < storeKeys.length; i += BATCH) {
      const batch = storeKeys.slice(i, i + BATCH);
      batches.push(leases.wakeNext(batch, call).catch(() => batch.map(() => null)));
    }
    return (await Promise.all(batches)).flat();
  }
}
