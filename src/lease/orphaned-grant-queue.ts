/**
 * Releases what the store may still hold in the name of this process. An acquire whose answer never
 * came may have been granted, or may be granted yet; a release may never have arrived.
 * `OrphanedGrantQueue` reads the key and releases its lease **by the fence it read**: a release
 * by holder alone could end a newer tenure of the same holder. It repeats that until the grant must
 * have expired, because a frozen Redis carries out the requests in its socket buffer after it
 * wakes.
 */

import type { Clock } from '../core/clock.ts';
import { type TimerEntry, TimerHeap } from '../core/timer-heap.ts';
import type { Runtime } from '../store/runtime.ts';
import { type Acquisition, type Claim, isActive } from './acquisition.ts';
import type { NamedHolderSet } from './named-holder-set.ts';
import type { WakeWatch } from './wake-watch.ts';

/** Pauses between two reads of a key double from the first to the second. */
const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 5_000;
/** Claims watched at once. Any further one is left to expire, and an event says so. */
const MAX_WATCHED = 10_000;
/** Keys in one request. Keys that are due within `EARLY_MS` are sent along. */
const BATCH = 256;
const EARLY_MS = 50;

interface WatchedClaim extends TimerEntry {
  readonly claim: Claim;
  /** The call that the grant would be for; null if the grant was a lease already. */
  readonly acquisition: Acquisition | null;
  /** When any grant has expired in the store, on the monotonic clock. */
  readonly expiredAtMs: number;
  pauseMs: number;
}

export class OrphanedGrantQueue {
  readonly #rt: Runtime;
  readonly #clock: Clock;
  readonly #holders: NamedHolderSet;
  readonly #wakeWatch: WakeWatch;
  readonly #watched: TimerHeap<WatchedClaim>;
  /** Claims that were not watched because there were too many, since the last event about them. */
  #unwatched = 0;
  #isClosed = false;

  constructor(rt: Runtime, holders: NamedHolderSet, wakeWatch: WakeWatch) {
    this.#rt = rt;
    this.#clock = rt.clock;
    this.#holders = holders;
    this.#wakeWatch = wakeWatch;
    this.#watched = new TimerHeap(rt.clock, () => void this.#onDue());
  }

  /**
   * The store may hold the key for the holder. It is released unless this process uses it after
   * all.
   */
  watch(claim: Claim, acquisition: Acquisition | null = null): void {
    if (this.#isClosed) {
      this.#emitUnreturned(1, 'it was granted after this process had closed');
      return;
    }
    if (this.#watched.size >= MAX_WATCHED) {
      this.#unwatched++;
      return;
    }
    const nowMs = this.#clock.monotonicMs();
    const { ttlMs, operationTimeoutMs } = claim.policy.timings;
    const watched = {
      claim,
      acquisition,
      expiredAtMs: nowMs + ttlMs + operationTimeoutMs,
      pauseMs: MIN_PAUSE_MS,
      dueAtMs: 0,
      index: -1,
    };
    this.#watched.schedule(watched, nowMs + MIN_PAUSE_MS);
  }

  /** Reads all watched keys once more, at once, and then stops. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const last = [...this.#watched];
    this.#watched.clear();
    this.#emitUnwatched();
    await this.#releaseAll(last);
  }

  async #onDue(): Promise<void> {
    const due = this.#watched.takeDue(this.#clock.monotonicMs(), () => EARLY_MS);
    this.#emitUnwatched();
    await this.#releaseAll(due);
  }

  async #releaseAll(all: readonly WatchedClaim[]): Promise<void> {
    let unanswered = 0;
    for (let i = 0; i < all.length; i += BATCH) {
      const batch = all.slice(i, i + BATCH);
      const unused = batch.filter((one) => !this.#isInUse(one));
      const { isAnswered, released } = await this.#releaseBatch(unused);
      if (!isAnswered) unanswered += unused.length;
      for (const one of batch) if (!released.has(one)) this.#scheduleAgain(one, isAnswered);
    }
    if (this.#isClosed)
      this.#emitUnreturned(unanswered, 'the store did not answer before this process closed');
  }

  #scheduleAgain(watched: WatchedClaim, isAnswered: boolean): void {
    const nowMs = this.#clock.monotonicMs();
    // A store that does not answer may still carry out the request: nothing has expired until it
    // answers.
    if (this.#isClosed || (isAnswered && watched.expiredAtMs <= nowMs)) return;
    watched.pauseMs = isAnswered ? Math.min(watched.pauseMs * 2, MAX_PAUSE_MS) : MIN_PAUSE_MS;
    this.#watched.schedule(watched, nowMs + watched.pauseMs);
  }

  /** Reads the keys, and releases those that the store holds for their holders. */
  async #releaseBatch(
    batch: readonly WatchedClaim[],
  ): Promise<{ isAnswered: boolean; released: Set<WatchedClaim> }> {
    const released = new Set<WatchedClaim>();
    const timeoutMs = batch[0]?.claim.policy.timings.operationTimeoutMs;
    if (timeoutMs === undefined) return { isAnswered: true, released };
    const { leases } = this.#rt.store;
    const storeKeys = batch.map(({ claim }) => claim.storeKey);
    const replies = await leases.read(storeKeys, { timeoutMs }).catch(() => null);
    if (replies === null) return { isAnswered: false, released };
    const orphaned = batch.flatMap((watched, i) => {
      const reply = replies[i];
      if (reply?.kind !== 'held' || reply.holder !== watched.claim.holder) return [];
      // A call may have asked for the key during the read.
      if (this.#isInUse(watched)) return [];
      const { storeKey: key, holder } = watched.claim;
      return [{ watched, tenancy: { key, holder, fence: reply.fence } }];
    });
    if (orphaned.length === 0) return { isAnswered: true, released };
    const tenancies = orphaned.map(({ tenancy }) => tenancy);
    const releases = await leases.release(tenancies, { timeoutMs }).catch(() => null);
    for (const [i, { watched, tenancy }] of orphaned.entries()) {
      const reply = releases?.[i];
      if (reply?.kind !== 'released') continue;
      released.add(watched);
      if (reply.woke) this.#wakeWatch.watch(tenancy.key);
      const { policy, key, holder } = watched.claim;
      const leaseClass = policy.leaseClass.name;
      this.#rt.events.emit('lease.returned', { leaseClass, key, holder, fence: tenancy.fence });
    }
    return { isAnswered: releases !== null, released };
  }

  /** Whether this process holds the key for the holder after all, or asks for it again. */
  #isInUse({ claim, acquisition }: WatchedClaim): boolean {
    return this.#holders.isInUse(claim) || (acquisition !== null && isActive(acquisition));
  }

  #emitUnwatched(): void {
    const count = this.#unwatched;
    this.#unwatched = 0;
    this.#emitUnreturned(count, `${MAX_WATCHED} others were being released already`);
  }

  #emitUnreturned(count: number, why: string): void {
    if (count > 0) this.#rt.events.emit('lease.unreturned', { count, why });
  }
}
