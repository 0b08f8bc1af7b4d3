/**
 * One target, as this instance sees it.
 *
 * **Watched.** In: at first, and whenever it is not ours. Somebody else owns it, or nobody; the store is looked at again
 * at `lookAtMs`. Out: it should be ours and is free, or the store names us → taking.
 *
 * **Taking.** In: as above; the store is being asked. Out: granted → ours; else → watched, with what stood in the way.
 *
 * **Ours.** In: as above. Out: asked for by another, paused, deleted or stopping → letting go; lost → settling.
 *
 * **Letting go.** In: as above. No new work begins, renewals go on, the work in flight finishes. Out: the store has been
 * told → watched; lost meanwhile → settling.
 *
 * **Settling.** In: the lease is lost. Its work was told to stop and has not yet. Out: it has → watched.
 */
import type { Lease } from '../../lease/lease.ts';
import { hashTarget } from '../plan/hash.ts';
import type { PlanTarget } from '../plan/plan.ts';

export type EntryState = 'watched' | 'taking' | 'ours' | 'letting go' | 'settling';

/** `garbage`: something that is no lease lies under its key. `unsettled`: our own earlier work on it has not stopped. */
export type Obstacle = 'quarantine' | 'revoked' | 'garbage' | 'unsettled';

/** Whoever had it before, and since when it has not. */
export interface Predecessor {
  readonly owner: string;
  readonly untilMs: number;
  /** It let go of it, or gave it away; its lease expired; or its lease was revoked, forgotten by the store, or lost. */
  readonly how: 'let go' | 'expired' | 'lost';
}

/** A lease seen to be gone this little before its end has run out: its end is known no better than an answer takes. */
const SAME_MOMENT_MS = 50;

/** How long a key that is no lease is left alone before it is looked at again. */
export const GARBAGE_MS = 5_000;

export class TargetEntry implements PlanTarget {
  readonly id: string;
  readonly hi: number;
  readonly lo: number;
  state: EntryState = 'watched';
  lease: Lease | null = null;
  /** Who owns it according to the store; null for nobody. */
  owner: string | null = null;
  /** When that runs out at the latest, on the monotonic clock. */
  expiresAtMs = 0;
  /** Since when it is known to be free. */
  freeSinceMs = 0;
  /** When to look at the store again. */
  lookAtMs = 0;
  /** Not to be taken before this: it was let go of here on purpose. */
  notBeforeMs = 0;
  /** It was revoked from us: until then we are refused it, whoever hands it to us. */
  sitsOutUntilMs = 0;
  /** Why the store would not grant it although nobody owns it. */
  obstacle: Obstacle | null = null;
  /** The next fence is at least this. */
  fenceFloor = 0;
  /** Its owner has handed it to us. */
  isOffered = false;
  /** The last owner it is known to have had before `owner`; null for none. */
  predecessor: Predecessor | null = null;
  /** Whom an operator has moved it to; null for nobody. */
  pinned: string | null = null;
  /** Who should own it, from the last plan; null for nobody. */
  planned: string | null = null;

  constructor(id: string) {
    const { hi, lo } = hashTarget(id);
    this.id = id;
    this.hi = hi;
    this.lo = lo;
  }

  /** The store says that `owner` has it for `expiresInMs` more. */
  seenOwned(owner: string, expiresInMs: number, nowMs: number): void {
    if (this.owner !== owner) this.#seenGone(nowMs, 'let go');
    this.owner = owner;
    this.obstacle = null;
    this.expiresAtMs = nowMs + expiresInMs;
    this.lookAtMs = this.expiresAtMs;
  }

  /** The store says that nobody has it. */
  seenFree(nowMs: number): void {
    if (this.owner !== null || this.freeSinceMs === 0) this.freeSinceMs = nowMs;
    if (this.expiresAtMs > nowMs + SAME_MOMENT_MS) this.#seenGone(nowMs, 'let go');
    else this.#seenGone(Math.min(this.expiresAtMs, nowMs), 'expired');
    this.owner = null;
    this.obstacle = null;
    this.expiresAtMs = 0;
    this.lookAtMs = 0;
  }

  /** Nobody has it, but it is not to be had for `forMs` more. */
  seenBarred(obstacle: Obstacle, forMs: number, nowMs: number): void {
    this.seenFree(nowMs);
    // Neither a store that has forgotten it nor an operator who has revoked it has asked its owner.
    if (this.predecessor !== null) this.predecessor = { ...this.predecessor, how: 'lost' };
    this.obstacle = obstacle;
    this.expiresAtMs = nowMs + forMs;
    this.lookAtMs = this.expiresAtMs;
  }

  /** Its owner has handed it to us: the store names us, and we have to claim it. */
  seenOffered(nowMs: number): void {
    // One that is not known to have an owner has one all the same: not the one it had before.
    if (this.owner === null) this.predecessor = null;
    this.#seenGone(nowMs, 'let go');
    this.isOffered = true;
  }

  /** It is ours no more, since then. */
  seenEnded(how: 'let go' | 'lost', untilMs: number): void {
    this.#seenGone(untilMs, how);
    this.doubt();
  }

  /** What is known of its owner does not hold any more. */
  doubt(): void {
    this.owner = null;
    this.freeSinceMs = 0;
    this.lookAtMs = 0;
  }

  #seenGone(untilMs: number, how: Predecessor['how']): void {
    if (this.owner !== null) this.predecessor = { owner: this.owner, untilMs, how };
  }
}
