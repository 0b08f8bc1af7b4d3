import { AsyncLocalStorage } from 'node:async_hooks';
import { ConfigError } from '../core/errors.ts';
import type { HeldContext } from '../lease/leases.ts';

const held = new AsyncLocalStorage<HeldContext>();

/**
 * The lease under which this code runs: of the innermost decorated method that called it, directly
 * or not.
 */
export function currentLease(): HeldContext {
  const context = held.getStore();
  if (context !== undefined) return context;
  const rule = 'call it in a method with @WithLease, @OncePer or @Leader, or in what that calls';
  throw new ConfigError({ field: 'currentLease()', value: undefined, rule });
}

/** Runs `work` so that `currentLease()` finds `context`. */
export function runUnder<T>(context: HeldContext, work: () => T): T {
  return held.run(context, work);
}
