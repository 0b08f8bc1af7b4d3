/**
 * Gives back what the store may still hold in our name: an acquire whose answer never came may have been granted, or be
 * granted yet; a release may never have arrived. The key is read, and what it shows is released **by the fence read
 * there**: releasing by holder alone could end a newer tenure of the same holder. Repeated until the grant must have
 * run out by itself, because a frozen Redis executes what lies in its socket buffer after it wakes.
 */
import { Agenda, type Entry } from '../base/agenda.ts';
import type { Clock } from '../base/clock.ts';
import type { Emitter } from '../base/events.ts';
import type { Store } from '../store/store.ts';
import type { Terms } from './tenure.ts';

/** Pauses between looks at a key double from the first to the second. */
const LOOK_FIRST_MS = 100;
const LOOK_MOST_MS = 5_000;
/** Keys watched at once; one more is left to run out. */
const MOST_WATCHED = 10_000;
/** Keys read in one request; what is due within a while goes along. */
const READ_BATCH = 256;
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

export class GiveBack {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #events: Emitter;
  readonly #watched: Agenda<Doubtful>;
  #isClosed = false;

  constructor(parts: { store: Store; clock: Clock; events: Emitter }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#events = parts.events;
    this.#watched = new Agenda(parts.clock, () => void this.#lookAtDue());
  }

  /** `inUse`: the same holder has the key with our knowledge after all; while it does, it is not given back. */
  watch(terms: Terms, of: { key: string; holder: string }, inUse: () => boolean): void {
    if (this.#isClosed || this.#watched.size >= MOST_WATCHED) return;
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
    await this.#lookAtAll(last);
  }

  async #lookAtDue(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    const due = this.#watched.takeDue(nowMs, () => EARLY_MS);
    await this.#lookAtAll(due);
  }

  async #lookAtAll(all: readonly Doubtful[]): Promise<void> {
    for (let i = 0; i < all.length; i += READ_BATCH) {
      const batch = all.slice(i, i + READ_BATCH);
      const { answered, settled } = await this.#look(batch.filter((one) => !one.inUse()));
      for (const doubtful of batch) if (!settled.has(doubtful)) this.#lookAgain(doubtful, answered);
    }
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
    const shown = await this.#store.leases
      .read(batch.map(storeKey), { timeoutMs })
      .catch(() => null);
    if (shown === null) return { answered: false, settled };
    for (const [i, doubtful] of batch.entries()) {
      const found = shown[i];
      if (found?.kind !== 'held' || found.holder !== doubtful.holder) continue;
      // Only now can a wish that came up while we were asking be seen.
      if (doubtful.inUse()) continue;
      const { key, holder } = doubtful;
      const tenancy = { key: storeKey(doubtful), holder, fence: found.fence };
      const [reply] = await this.#store.leases.release([tenancy], { timeoutMs }).catch(() => []);
      if (reply?.kind !== 'released') continue;
      settled.add(doubtful);
      const leaseClass = doubtful.terms.leaseClass.name;
      this.#events.emit('lease.returned', { leaseClass, key, holder, fence: found.fence });
    }
    return { answered: true, settled };
  }
}

function storeKey({ terms, key }: Doubtful): string {
  return terms.leaseClass.keyspace + key;
}
