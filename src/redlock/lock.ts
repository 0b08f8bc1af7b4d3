import { ConfigError } from '../core/errors.ts';
import type { Attempts, ExecutionResult } from './execution.ts';
import type { LockTenure, RedlockAbortSignal } from './lock-tenure.ts';
import type { Redlock } from './redlock.ts';

/** The tenure of each lock. Users get locks, but only `Redlock` can make them. */
const TENURES = new WeakMap<Lock, LockTenure>();
/** Locks that were released, or replaced by an extension. */
const SPENT = new WeakSet<Lock>();

/** An acquired lock, until it is released or expires. `extend` returns a new lock. */
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

  constructor(redlock: Redlock, tenure: LockTenure, attempts: Attempts) {
    this.redlock = redlock;
    this.resources = [...tenure.resources];
    this.value = tenure.value;
    this.attempts = attempts;
    this.fences = tenure.fences;
    TENURES.set(this, tenure);
  }

  /** The fence of its first resource. */
  get fence(): number {
    return this.fences.get(this.resources[0] ?? '') ?? 0;
  }

  /** When it expires, in milliseconds since 1970; 0 after it expired, was extended or released. */
  get expiration(): number {
    return SPENT.has(this) ? 0 : Math.min(this.#expiration, tenureOf(this).expiration());
  }

  set expiration(atMs: number) {
    this.#expiration = atMs;
  }

  /** Fires when the lock expires or is lost. Pass it to your work, so that it stops. */
  get signal(): RedlockAbortSignal {
    return tenureOf(this).signal;
  }

  /** May new work begin? Synchronous, and reads the clocks itself. */
  isHeld(): boolean {
    return !SPENT.has(this) && tenureOf(this).isHeld();
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

export function tenureOf(lock: Lock): LockTenure {
  const tenure = TENURES.get(lock);
  if (tenure !== undefined) return tenure;
  const rule =
    'must be a lock that acquire or extend of this process returned; to hand a lock to another process, ' +
    'use transfer of a Holdfast lease';
  throw new ConfigError({ field: 'lock', value: lock, rule });
}
