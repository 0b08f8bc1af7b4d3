import { ConfigError } from '../core/errors.ts';
import type { Attempts, ExecutionResult } from './execution.ts';
import type { Hold, RedlockAbortSignal } from './hold.ts';
import type { Redlock } from './redlock.ts';

/** What stands behind each lock: locks are handed out, and only `Redlock` makes them. */
const HOLDS = new WeakMap<Lock, Hold>();
/** Locks that were released, or extended into others. */
const SPENT = new WeakSet<Lock>();

/** A lock that was had, until it is released or its time is over. `extend` gives another one for the same hold. */
export class Lock {
  readonly redlock: Redlock;
  readonly resources: string[];
  /** The holder, as the store and `inspect` of Holdfast show it. */
  readonly value: string;
  readonly attempts: Attempts;
  /** Proof of each resource's tenure, for what it protects: higher than all before it. */
  readonly fences: ReadonlyMap<string, number>;
  /** What its user has made of it; what is true may be less. */
  #expiration = Number.POSITIVE_INFINITY;

  constructor(redlock: Redlock, hold: Hold, attempts: Attempts) {
    this.redlock = redlock;
    this.resources = [...hold.resources];
    this.value = hold.value;
    this.attempts = attempts;
    this.fences = hold.fences;
    HOLDS.set(this, hold);
  }

  /** The fence of its resource; where there are several, of the first. */
  get fence(): number {
    return this.fences.get(this.resources[0] ?? '') ?? 0;
  }

  /** Until when it may be believed, in milliseconds since 1970; 0 once it is over, was extended, or released. */
  get expiration(): number {
    return SPENT.has(this) ? 0 : Math.min(this.#expiration, holdOf(this).expiration());
  }

  set expiration(atMs: number) {
    this.#expiration = atMs;
  }

  /** Fires when the lock is over and was not released: with what it needs, the work stops by itself. */
  get signal(): RedlockAbortSignal {
    return holdOf(this).signal;
  }

  /** May new work begin? Synchronous, and reads the clocks itself. */
  isHeld(): boolean {
    return !SPENT.has(this) && holdOf(this).isHeld();
  }

  async release(): Promise<ExecutionResult> {
    return this.redlock.release(this);
  }

  async extend(duration: number): Promise<Lock> {
    return this.redlock.extend(this, duration);
  }
}

export function isSpent(lock: Lock): boolean {
  return SPENT.has(lock);
}

export function spend(lock: Lock): void {
  SPENT.add(lock);
}

export function holdOf(lock: Lock): Hold {
  const hold = HOLDS.get(lock);
  if (hold !== undefined) return hold;
  const rule =
    'it is a lock that acquire or extend of this process has given; to hand one to another process, ' +
    'use transfer of a lease, or acquire it there with its holder and fence';
  throw new ConfigError({ field: 'lock', value: lock, rule });
}
