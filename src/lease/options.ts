import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { checkHolder } from '../core/ids.ts';
import { checkKnown } from '../core/options.ts';
import { LEASE_CLASSES, type LeaseClassName } from './classes.ts';
import { checkFence } from './fence.ts';
import type { TimingOptions } from './timings.ts';

export interface AcquireOptions extends TimingOptions {
  /** How long to wait for a key that is held; default 0: do not. */
  wait?: Duration;
  /** Ends the wait; `acquire` then rejects with the signal's reason. */
  signal?: AbortSignal;
  /**
   * Who holds it; default a name of its own for every call, so that two calls exclude each other. Choose one only if no
   * other process uses it: the store renews for whoever it names. To be woken by a transfer, begin it with `instanceId`.
   */
  holder?: string;
  /**
   * Goes on with the tenure of this fence, which `holder` has, should the store still know it: no new fence is minted.
   * Only where nobody works under it any more, as when one process has handed its tenure to another by word.
   */
  fence?: number;
  /** The fence is higher than any before it, and at least this: what a refused write has seen. */
  fenceFloor?: number;
  /**
   * After a loss, the same named holder is granted the key again only once this lease is released: for work that continues
   * for a while after `signal` has fired. `withLease` does so by itself. Default: a lost lease stands in nobody's way.
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
  'wait',
  'signal',
  'holder',
  'fence',
  'fenceFloor',
  'untilReleased',
  'class',
]);

/** Refuses what `acquire` would not understand, before any I/O. Timings are checked where they are derived. */
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

/** A tenure is known by its holder and its fence: either alone names none. */
function checkResumed(fence: unknown, holder: string | undefined): void {
  checkFence(fence);
  if (fence > 0 && holder !== undefined) return;
  const rule = 'to go on with a tenure, give the holder it has, and its fence, which is above 0';
  throw new ConfigError({ field: 'fence', value: fence, rule });
}

export function waitMs({ wait = 0 }: AcquireOptions): number {
  return durationMs(wait, 'wait');
}
