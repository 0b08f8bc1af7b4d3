/**
 * Gives back what the store may still hold in our name: an acquire whose answer never came may have been granted, or be
 * granted yet; a release may never have arrived. The key is read, and what it shows is released **by the fence read
 * there**: releasing by holder alone could end a newer tenure of the same holder. Repeated until the grant must have
 * run out by itself, because a frozen Redis executes what lies in its socket buffer after it wakes.
 */

import type { Clock } from '../core/clock.ts';
import type { Emitter } from '../core/events.ts';
import { type Entry, TimerHeap } from '../core/timer-heap.ts';
import type { Store } from '../store/port/store.ts';
import type { Terms } from './tenure.ts';
import type { WakeWatch } from './wake-watch.ts';

/** Pauses between looks at a key double from the first to the second. */
const LOOK_FIRST_MS = 100;
const LOOK_MOST_MS = 5_000;
/** Keys watched at once; one more is left to expire, which an event tells. */
const MOST_WATCHED = 10_000;
/** Keys read, or given back, in one request; what is due within a while goes along. */
const BATCH = 256;
const EARLY_MS = 50;

interface Doubtful extends Entry {
  readonly terms: Terms;
  readonly key: string;
  readonly holder: string;
  /** When whatever was granted has run out by itself, on the monotonic clock. */
  readonly untilMs: number;
  pauseMs: number;
  inUse(): boolean;
}

export class OrphanedGrants {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #events: Emitter;
  readonly #wakes: WakeWatch;
  readonly #watched: TimerHeap<Doubtful>;
  /** How many were not watched, because there were too many, since an event has last told of it. */
  #tooMany = 0;
  #isClosed = false;

  constructor(parts: { store: Store; clock: Clock; events: Emitter; wakes: WakeWatch }) {
    this.#wakes = parts.wakes;
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#events = parts.events;
    this.#watched = new TimerHeap(parts.clock, () => void this.#lookAtDue());
  }

  /** `inUse`: the same holder has the key with our knowledge after all; while it does, it is not given back. */
  watch(terms: Terms, of: { key: string; holder: string }, inUse: () => boolean): void {
    if (this.#isClosed) {
      this.#tellUnreturned(1, 'it was granted after this process had closed');
      return;
    }
    if (this.#watched.size >= MOST_WATCHED) {
      this.#tooMany++;
      return;
    }
    const nowMs = this.#clock.monotonicMs();
    const untilMs = nowMs + terms.timings.ttlMs + terms.timings.operationTimeoutMs;
    const { key, holder } = of;
    const pauseMs = LOOK_FIRST_MS;
    const doubtful = { terms, key, holder, untilMs, pauseMs, inUse, dueMs: 0, slot: -1 };
    this.#watched.schedule(doubtful, nowMs + pauseMs);
  }

  /** Looks once more, at once, at everything still watched; then stops for good. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const last = [...this.#watched];
    this.#watched.clear();
    this.#tellTooMany();
    await this.#lookAtAll(last);
  }

  async #lookAtDue(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const due = this.#watched.takeDue(nowMs, () => EARLY_MS);
    this.#tellTooMany();
    await this.#lookAtAll(due);
  }

  async #lookAtAll(all: readonly Doubtful[]): Promise<void> {
    let unanswered = 0;
    for (let i = 0; i < all.length; i += BATCH) {
      const batch = all.slice(i, i + BATCH);
      const asked = batch.filter((one) => !one.inUse());
      const { answered, settled } = await this.#look(asked);
      if (!answered) unanswered += asked.length;
      for (const doubtful of batch) if (!settled.has(doubtful)) this.#lookAgain(doubtful, answered);
    }
    // Nobody looks again.
    if (this.#isClosed)
      this.#tellUnreturned(unanswered, 'the store did not answer before this process closed');
  }

  #lookAgain(doubtful: Doubtful, answered: boolean): void {
    const nowMs = this.#clock.monotonicMs();
    // A store that does not answer may carry the request out when it does: until then nothing has run out.
    if (this.#isClosed || (answered && doubtful.untilMs <= nowMs)) return;
    doubtful.pauseMs = answered ? Math.min(doubtful.pauseMs * 2, LOOK_MOST_MS) : LOOK_FIRST_MS;
    this.#watched.schedule(doubtful, nowMs + doubtful.pauseMs);
  }

  /** Reads what the keys show, gives back what is ours, and says which those were. */
  async #look(batch: readonly Doubtful[]): Promise<{ answered: boolean; settled: Set<Doubtful> }> {
    const settled = new Set<Doubtful>();
    const timeoutMs = batch[0]?.terms.timings.operationTimeoutMs;
    if (timeoutMs === undefined) return { answered: true, settled };
    const { leases } = this.#store;
    const shown = await leases.read(batch.map(storeKey), { timeoutMs }).catch(() => null);
    if (shown === null) return { answered: false, settled };
    const ours = batch.flatMap((doubtful, i) => {
      const found = shown[i];
      if (found?.kind !== 'held' || found.holder !== doubtful.holder) return [];
      // Only now can a wish that came up while we were asking be seen.
      if (doubtful.inUse()) return [];
      return [{ doubtful, fence: found.fence }];
    });
    if (ours.length === 0) return { answered: true, settled };
    const tenancies = ours.map(({ doubtful, fence }) => {
      return { key: storeKey(doubtful), holder: doubtful.holder, fence };
    });
    const replies = await leases.release(tenancies, { timeoutMs }).catch(() => null);
    for (const [i, { doubtful, fence }] of ours.entries()) {
      const reply = replies?.[i];
      if (reply?.kind !== 'released') continue;
      settled.add(doubtful);
      if (reply.woke) this.#wakes.watch(storeKey(doubtful));
      const { key, holder, terms } = doubtful;
      const leaseClass = terms.leaseClass.name;
      this.#events.emit('lease.returned', { leaseClass, key, holder, fence });
    }
    return { answered: replies !== null, settled };
  }

  #tellTooMany(): void {
    const count = this.#tooMany;
    this.#tooMany = 0;
    this.#tellUnreturned(count, `${MOST_WATCHED} others were being given back already`);
  }

  #tellUnreturned(count: number, why: string): void {
    if (count > 0) this.#events.emit('lease.unreturned', { count, why });
  }
}

function storeKey({ terms, key }: Doubtful): string {
  return terms.leaseClass.keyspace + key;
}
