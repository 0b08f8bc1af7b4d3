import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { checkHolder } from '../core/ids.ts';
import { checkKnown } from '../core/options.ts';
import { checkFence } from './fence.ts';
import { type HoldOptions, LEASE_CLASSES, type LeaseClassName } from './timings.ts';

export interface AcquireOptions extends HoldOptions {
  /** How long to wait for a key that is held; default 0: do not wait. */
  wait?: Duration;
  /** Ends the wait; `acquire` then rejects with the signal's reason. */
  signal?: AbortSignal;
  /**
   * The name of the holder; default a unique one for every call, so that two calls exclude each
   * other. Choose a name only if no other process uses it: the store takes equal names for one
   * holder. To be woken by a transfer, begin it with `instanceId`.
   */
  holder?: string;
  /**
   * Continues the lease of this fence, which `holder` has, if the store still knows it: no new
   * fence is minted. Use it only if no process works under that lease any more, as after one
   * process told another to take it over.
   */
  fence?: number;
  /**
   * The new fence is at least this, as well as higher than any before it. Pass the fence that a
   * refused write saw.
   */
  fenceFloor?: number;
  /**
   * After a loss, the same named holder is granted the key again only when this lease is released:
   * for work that continues for a while after `signal` has fired. `withLease` sets it
   * automatically. Default: a lost lease does not block its holder.
   */
  untilReleased?: boolean;
  /** Which timings, key names and quarantine apply; default `lease`. */
  class?: LeaseClassName;
}

const KNOWN = new Set<string>([
  'ttl',
  'renewEvery',
  'stop',
  'guard',
  'operationTimeout',
  'maxHold',
  'wait',
  'signal',
  'holder',
  'fence',
  'fenceFloor',
  'untilReleased',
  'class',
]);

/** Refuses invalid options before any I/O. Timings are checked where they are derived. */
export function checkAcquireOptions(options: AcquireOptions): void {
  checkKnown(options, KNOWN);
  if (options.holder !== undefined) checkHolder(options.holder);
  if (options.fence !== undefined) checkResumed(options.fence, options.holder);
  if (options.fenceFloor !== undefined) checkFence(options.fenceFloor, 'fenceFloor');
  if (options.class !== undefined && !Object.hasOwn(LEASE_CLASSES, options.class)) {
    const rule = `a lease class is one of ${Object.keys(LEASE_CLASSES).join(', ')}`;
    throw new ConfigError({ field: 'class', value: options.class, rule });
  }
  if (options.untilReleased !== undefined && typeof options.untilReleased !== 'boolean') {
    const rule = 'it has to be true or false';
    throw new ConfigError({ field: 'untilReleased', value: options.untilReleased, rule });
  }
  if (options.signal !== undefined && !(options.signal instanceof AbortSignal)) {
    throw new ConfigError({
      field: 'signal',
      value: options.signal,
      rule: 'it has to be an AbortSignal',
    });
  }
}

/** A lease is continued by its holder and its fence together. */
function checkResumed(fence: unknown, holder: string | undefined): void {
  checkFence(fence);
  if (fence > 0 && holder !== undefined) return;
  const rule = 'to continue a lease, pass its holder, and its fence, which is above 0';
  throw new ConfigError({ field: 'fence', value: fence, rule });
}

export function waitMs({ wait = 0 }: AcquireOptions): number {
  return durationMs(wait, 'wait');
}
