/**
 * Gives back what the store may still hold in our name: an acquire whose answer never came may have been granted, or be
 * granted yet; a release may never have arrived. The key is read, and what it shows is released **by the fence read
 * there**: releasing by holder alone could end a newer tenure of the same holder. Repeated until the grant must have
 * run out by itself, because a frozen Redis executes what lies in its socket buffer after it wakes.
 */
import type { Clock } from '../base/clock.ts';
import type { Emitter } from '../base/events.ts';
import type { Store } from '../store/store.ts';
import type { Terms } from './tenure.ts';

/** Pauses between looks double from the first to the second. */
const LOOK_FIRST_MS = 100;
const LOOK_MOST_MS = 5_000;
/** Keys watched at once; beyond it the oldest are left to run out. */
const MOST_WATCHED = 10_000;
/** Keys read in one request. */
const READ_BATCH = 256;

interface Doubtful {
  readonly terms: Terms;
  readonly key: string;
  readonly holder: string;
  /** When whatever was granted has run out by itself, on the monotonic clock. */
  readonly untilMs: number;
  inUse(): boolean;
}

export class GiveBack {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #events: Emitter;
  readonly #watched = new Set<Doubtful>();
  readonly #closing = new AbortController();
  #looking: Promise<void> | null = null;

  constructor(parts: { store: Store; clock: Clock; events: Emitter }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#events = parts.events;
  }

  /** `inUse`: the same holder has the key with our knowledge after all; while it does, it is not given back. */
  watch(terms: Terms, of: { key: string; holder: string }, inUse: () => boolean = never): void {
    if (this.#closing.signal.aborted) return;
    const { ttlMs, operationTimeoutMs } = terms.timings;
    const untilMs = this.#clock.monotonicMs() + ttlMs + operationTimeoutMs;
    const doubtful: Doubtful = { terms, key: of.key, holder: of.holder, untilMs, inUse };
    for (const oldest of this.#watched) {
      if (this.#watched.size < MOST_WATCHED) break;
      this.#watched.delete(oldest);
    }
    this.#watched.add(doubtful);
    this.#looking ??= this.#look();
  }

  /** Looks once more, at once, at everything still watched; then stops for good. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { signal } = this.#closing;
    for (
      let pauseMs = LOOK_FIRST_MS;
      this.#watched.size > 0;
      pauseMs = Math.min(pauseMs * 2, LOOK_MOST_MS)
    ) {
      await this.#clock.sleep(pauseMs, signal).catch(() => {});
      const all = [...this.#watched].filter((doubtful) => !doubtful.inUse());
      let answered = true;
      for (let i = 0; answered && i < all.length; i += READ_BATCH)
        answered = await this.#lookAt(all.slice(i, i + READ_BATCH));
      const nowMs = this.#clock.monotonicMs();
      for (const doubtful of this.#watched)
        if (doubtful.untilMs <= nowMs) this.#watched.delete(doubtful);
      if (signal.aborted) break;
    }
    this.#looking = null;
  }

  /** False if the store does not answer: then there is no use in asking it for the others now. */
  async #lookAt(batch: readonly Doubtful[]): Promise<boolean> {
    const timeoutMs = batch[0]?.terms.timings.operationTimeoutMs ?? 0;
    const storeKey = ({ terms, key }: Doubtful) => terms.leaseClass.keyspace + key;
    const shown = await this.#store.leases
      .read(batch.map(storeKey), { timeoutMs })
      .catch(() => null);
    if (shown === null) return false;
    for (const [i, doubtful] of batch.entries()) {
      const found = shown[i];
      if (found?.kind !== 'held' || found.holder !== doubtful.holder) continue;
      // Only now can a tenure that began while we were asking be seen.
      if (doubtful.inUse()) continue;
      const { key, holder } = doubtful;
      const tenancy = { key: storeKey(doubtful), holder, fence: found.fence };
      const [reply] = await this.#store.leases.release([tenancy], { timeoutMs }).catch(() => []);
      if (reply?.kind !== 'released') continue;
      this.#watched.delete(doubtful);
      this.#events.emit('lease.returned', { key, holder, fence: found.fence });
    }
    return true;
  }
}

function never(): boolean {
  return false;
}
