/**
 * What this process knows of one target: its owner, until when, and what this process does about
 * it. The planner (`plan/`) decides from it.
 *
 * **watched.** In: at first, and whenever this instance does not hold its lease. Another instance
 * owns it, or none does; its lease is read again at `refreshAtMs`. Out: this instance asks the
 * store for its lease → acquiring.
 *
 * **acquiring.** In: this instance asked the store, which has not answered yet. Out: granted →
 * owned; refused or failed → watched.
 *
 * **owned.** In: the store granted it. Out: handed over, paused, removed or the instance stops →
 * releasing; the lease is lost → lost.
 *
 * **releasing.** In: this instance gives it up. No new work begins, renewals continue, work in
 * flight finishes. Out: the store has released or transferred the lease → watched; the lease is
 * lost meanwhile → lost.
 *
 * **lost.** In: the lease is lost. Its work was told to stop and has not yet. Out: the work has
 * stopped → watched.
 */
import { assert } from '../../core/assert.ts';
import type { Lease } from '../../lease/lease.ts';
import { hashTarget } from '../plan/hash.ts';
import type { PlanTarget } from '../plan/plan.ts';

export type TargetState = 'watched' | 'acquiring' | 'owned' | 'releasing' | 'lost';

const NEXT: Readonly<Record<TargetState, readonly TargetState[]>> = {
  watched: ['acquiring'],
  acquiring: ['owned', 'watched'],
  owned: ['releasing', 'lost'],
  releasing: ['watched', 'lost'],
  lost: ['watched'],
};

/**
 * Why this instance does not take a free target. `quarantine`: the store may have lost leases, and
 * grants none. `revoked`: an operator revoked it a moment ago. `garbage`: its key holds something
 * that is no lease. `unsettled`: earlier work on it in this process still runs; other instances may
 * take it.
 */
export type Obstacle = 'quarantine' | 'revoked' | 'garbage' | 'unsettled';

/** The owner before, and until when it owned the target. */
export interface Predecessor {
  readonly owner: string;
  readonly untilMs: number;
  /**
   * `released`: the owner released or transferred the lease. `expired`: it was not renewed. `lost`:
   * the lease was revoked, or the store lost it.
   */
  readonly how: 'released' | 'expired' | 'lost';
}

/**
 * The end of a lease is known this well: a lease that is gone so shortly before its end counts as
 * expired, not as released.
 */
const SAME_MOMENT_MS = 50;

/** How long a key that holds no lease is left alone before it is read again. */
export const GARBAGE_RETRY_MS = 5_000;

export class FleetTarget implements PlanTarget {
  readonly id: string;
  /** With `lo`, the hash of the id (`plan/hash.ts`). */
  readonly hi: number;
  readonly lo: number;
  #state: TargetState = 'watched';
  lease: Lease | null = null;
  /** The owner according to the store; null for none. */
  owner: string | null = null;
  /**
   * When the owner's lease expires at the latest, on the monotonic clock; with an obstacle, when
   * that ends. 0: neither.
   */
  expiresAtMs = 0;
  /** Since when the target is known to be free. 0: not known. */
  freeSinceMs = 0;
  /** When to read its lease again. */
  refreshAtMs = 0;
  /** This instance does not take it before then, because a caller released it here. */
  notBeforeMs = 0;
  /**
   * Until then the store refuses it to this instance, from which it was revoked, even if offered.
   */
  revokedUntilMs = 0;
  /** Why the store would not grant it although no instance owns it. */
  obstacle: Obstacle | null = null;
  /** The next fence is at least this: a resource has seen a higher one than ours. 0: any. */
  fenceFloor = 0;
  /** Its owner has transferred its lease to this instance. */
  isOffered = false;
  /** The last known owner before `owner`; null for none. */
  predecessor: Predecessor | null = null;
  /** The member that an operator has moved it to; null for none. */
  pinned: string | null = null;
  /** The command that its record names. */
  command: string | undefined;
  /** The member that should own it, by the last plan; null for none. */
  planned: string | null = null;

  constructor(id: string) {
    const { hi, lo } = hashTarget(id);
    this.id = id;
    this.hi = hi;
    this.lo = lo;
  }

  get state(): TargetState {
    return this.#state;
  }

  /** Changes the state; only as the header says. */
  become(state: TargetState): void {
    assert(NEXT[this.#state].includes(state), `no target goes from ${this.#state} to ${state}`);
    this.#state = state;
  }

  /** The store says that `owner` holds the lease for `expiresInMs` more. */
  markOwned(owner: string, expiresInMs: number, nowMs: number): void {
    if (this.owner !== owner) this.#keepPredecessor(nowMs, 'released');
    this.owner = owner;
    this.obstacle = null;
    this.expiresAtMs = nowMs + expiresInMs;
    this.refreshAtMs = this.expiresAtMs;
  }

  /** The store says that no instance holds the lease. */
  markFree(nowMs: number): void {
    if (this.owner !== null || this.freeSinceMs === 0) this.freeSinceMs = nowMs;
    if (this.expiresAtMs > nowMs + SAME_MOMENT_MS) this.#keepPredecessor(nowMs, 'released');
    else this.#keepPredecessor(Math.min(this.expiresAtMs, nowMs), 'expired');
    this.owner = null;
    this.obstacle = null;
    this.expiresAtMs = 0;
    this.refreshAtMs = 0;
  }

  /** No instance holds the lease, and it cannot be taken for `forMs` more. */
  markBarred(obstacle: Obstacle, forMs: number, nowMs: number): void {
    this.markFree(nowMs);
    // The owner did not give it up: the store lost the lease, or an operator revoked it.
    if (this.predecessor !== null) this.predecessor = { ...this.predecessor, how: 'lost' };
    this.obstacle = obstacle;
    this.expiresAtMs = nowMs + forMs;
    this.refreshAtMs = this.expiresAtMs;
  }

  /** Its owner has transferred its lease to this instance, which has to claim it. */
  markOffered(nowMs: number): void {
    // This process never read who transferred it: the predecessor it knows is an older owner.
    if (this.owner === null) this.predecessor = null;
    this.#keepPredecessor(nowMs, 'released');
    this.isOffered = true;
  }

  /** This instance has not held the lease since `untilMs`. */
  markEnded(how: 'released' | 'lost', untilMs: number): void {
    this.#keepPredecessor(untilMs, how);
    this.markUnknown();
  }

  /** The known owner may be wrong: the lease has to be read again. */
  markUnknown(): void {
    this.owner = null;
    this.freeSinceMs = 0;
    this.refreshAtMs = 0;
  }

  #keepPredecessor(untilMs: number, how: Predecessor['how']): void {
    if (this.owner !== null) this.predecessor = { owner: this.owner, untilMs, how };
  }
}
