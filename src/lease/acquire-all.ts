import type { Clock } from '../core/clock.ts';
import { ConfigError } from '../core/errors.ts';
import { checkKey } from '../core/ids.ts';
import type { Random } from '../core/random.ts';
import { LeaseSet } from './lease.ts';
import type { AcquireResult } from './leases.ts';
import { type AcquireOptions, waitMs } from './options.ts';
import { refusalError } from './refusal-error.ts';

/** Sets that got in each other's way try again within this, times how often it has happened. */
const COLLISION_MS = 20;
const MOST_COLLISIONS = 10;

export interface AcquireAllParts {
  readonly clock: Clock;
  readonly random: Random;
  acquire(key: string, options: AcquireOptions): Promise<AcquireResult>;
}

/**
 * All of the keys or none of them. While it waits it holds nothing, so sets that overlap can not
 * block each other for good; and after a collision it pauses by chance, so that they do not keep
 * getting in each other's way.
 */
export async function acquireAll(
  parts: AcquireAllParts,
  keys: readonly string[],
  options: AcquireOptions,
): Promise<LeaseSet> {
  for (const key of keys) checkKey(key);
  if (keys.length === 0 || new Set(keys).size !== keys.length) {
    const rule = 'at least one key, and none of them twice';
    throw new ConfigError({ field: 'keys', value: keys, rule });
  }
  if (options.fence !== undefined) {
    const rule = 'it is the fence of one tenure; go on with each by acquire';
    throw new ConfigError({ field: 'fence', value: options.fence, rule });
  }
  const { clock, random } = parts;
  const endMs = clock.monotonicMs() + waitMs(options);
  let blocked: string | null = null;
  for (let collisions = 0; ; collisions++) {
    const leftMs = Math.max(0, endMs - clock.monotonicMs());
    const taken = await tryAll(parts, keys, blocked, { ...options, wait: leftMs });
    const refusal = taken.find((result) => result.ok === false);
    if (refusal === undefined) return asSet(keys, taken);
    await releaseAll(taken);
    if (clock.monotonicMs() >= endMs) throw refusalError(refusal);
    blocked = refusal.key;
    const pauseMs = random.next() * COLLISION_MS * Math.min(collisions, MOST_COLLISIONS);
    if (pauseMs > 0) await clock.sleep(pauseMs, options.signal);
  }
}

/** The key that stood in the way is waited for alone; only then the others are tried, all at once. */
async function tryAll(
  { acquire }: AcquireAllParts,
  keys: readonly string[],
  blocked: string | null,
  options: AcquireOptions,
): Promise<AcquireResult[]> {
  const first = blocked === null ? [] : [await acquire(blocked, options)];
  if (first.some((result) => !result.ok)) return first;
  const others = keys.filter((key) => key !== blocked).sort();
  const tries = await Promise.allSettled(
    others.map((key) => acquire(key, { ...options, wait: 0 })),
  );
  const taken = [...first];
  for (const one of tries) if (one.status === 'fulfilled') taken.push(one.value);
  const failed = tries.find((one) => one.status === 'rejected');
  if (failed === undefined) return taken;
  await releaseAll(taken);
  throw failed.reason;
}

async function releaseAll(taken: readonly AcquireResult[]): Promise<void> {
  await Promise.all(taken.map((result) => (result.ok ? result.lease.release() : null)));
}

/** In the order the caller named them. */
function asSet(keys: readonly string[], taken: readonly AcquireResult[]): LeaseSet {
  const leases = taken.flatMap((result) => (result.ok ? [result.lease] : []));
  return new LeaseSet(leases.sort((a, b) => keys.indexOf(a.key) - keys.indexOf(b.key)));
}
