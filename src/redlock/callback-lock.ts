import { ConfigError } from '../core/errors.ts';
import type { CallbackRedlock, RedlockCallback } from './callback-redlock.ts';
import type { Lock } from './lock.ts';

/** The lock of redlock 5 behind each lock. `extend` replaces it. */
const LOCKS = new WeakMap<CallbackLock, Lock>();

/** A lock of redlock 4. `extend` changes it. */
export class CallbackLock {
  readonly redlock: CallbackRedlock;
  readonly resource: string | readonly string[];
  /** How many attempts it took. */
  readonly attempts: number;
  readonly attemptsRemaining: number;

  /** `retryCount` is that of its request. */
  constructor(
    redlock: CallbackRedlock,
    resource: string | readonly string[],
    lock: Lock,
    retryCount: number,
  ) {
    this.redlock = redlock;
    this.resource = resource;
    this.attempts = lock.attempts.length;
    this.attemptsRemaining = retryCount - this.attempts;
    LOCKS.set(this, lock);
  }

  /** The holder of its leases in the store. */
  get value(): string {
    return lockOf(this).value;
  }

  /** When it expires, in milliseconds since 1970; 0 after it expired or was unlocked. */
  get expiration(): number {
    return lockOf(this).expiration;
  }

  /** The fence of its first resource: higher than those of all earlier locks. */
  get fence(): number {
    return lockOf(this).fence;
  }

  /** The fence of each resource. */
  get fences(): ReadonlyMap<string, number> {
    return lockOf(this).fences;
  }

  /** Fires when the lock expires or is lost. Pass it to your work, so that it stops. */
  get signal(): AbortSignal {
    return lockOf(this).signal;
  }

  unlock(callback?: RedlockCallback<void>): Promise<void> {
    return this.redlock.unlock(this, callback);
  }

  extend(ttl: number, callback?: RedlockCallback<CallbackLock>): Promise<CallbackLock> {
    return this.redlock.extend(this, ttl, callback);
  }
}

export function lockOf(lock: CallbackLock): Lock {
  const inner = LOCKS.get(lock);
  if (inner !== undefined) return inner;
  const rule = 'must be a lock that lock() of this process returned';
  throw new ConfigError({ field: 'lock', value: lock, rule });
}

export function replaceLock(lock: CallbackLock, by: Lock): void {
  LOCKS.set(lock, by);
}
