import { ConfigError } from '../core/errors.ts';
import type { Attempts, ExecutionResult } from './execution.ts';
import type { Hold, RedlockAbortSignal } from './hold.ts';
import type { Redlock } from './redlock.ts';

/** The hold of each lock. Users get locks, but only `Redlock` can make them. */
const HOLDS = new WeakMap<Lock, Hold>();
/** Locks that were released, or replaced by an extension. */
const SPENT = new WeakSet<Lock>();

/** An acquired lock, until it is released or expires. `extend` returns a new lock for the same hold. */
export class Lock {
  readonly redlock: Redlock;
  readonly resources: string[];
  /** The holder of its leases in the store. */
  readonly value: string;
  readonly attempts: Attempts;
  /** The fence of each resource: higher than those of all earlier locks. */
  readonly fences: ReadonlyMap<string, number>;
  /** Set by the user; the lock may expire earlier. */
  #expiration = Number.POSITIVE_INFINITY;

  constructor(redlock: Redlock, hold: Hold, attempts: Attempts) {
    this.redlock = redlock;
    this.resources = [...hold.resources];
    this.value = hold.value;
    this.attempts = attempts;
    this.fences = hold.fences;
    HOLDS.set(this, hold);
  }

  /** The fence of its first resource. */
  get fence(): number {
    return this.fences.get(this.resources[0] ?? '') ?? 0;
  }

  /** When it expires, in milliseconds since 1970; 0 after it expired, was extended or released. */
  get expiration(): number {
    return SPENT.has(this) ? 0 : Math.min(this.#expiration, holdOf(this).expiration());
  }

  set expiration(atMs: number) {
    this.#expiration = atMs;
  }

  /** Fires when the lock expires or is lost. Pass it to your work, so that it stops. */
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
    'must be a lock that acquire or extend of this process returned; to hand a lock to another process, ' +
    'use transfer of a Holdfast lease';
  throw new ConfigError({ field: 'lock', value: lock, rule });
}
