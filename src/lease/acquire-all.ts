import { ConfigError } from '../core/errors.ts';
import { checkKey } from '../core/ids.ts';
import type { BaseRuntime } from '../core/runtime.ts';
import { LeaseSet } from './lease.ts';
import type { AcquireResult, Leases } from './leases.ts';
import { type AcquireOptions, waitMs } from './options.ts';
import { refusalError } from './refusal-error.ts';

/** After a collision a call pauses for a random time up to this, times the number of collisions. */
const COLLISION_MS = 20;
const MAX_COLLISIONS = 10;

/**
 * Acquires all of the keys, or none of them. It holds no key while it waits, so calls with
 * overlapping keys cannot deadlock. After a collision it pauses for a random time, so that they do
 * not keep colliding.
 */
export async function acquireAll(
  { clock, random }: BaseRuntime,
  leases: Pick<Leases, 'acquire'>,
  keys: readonly string[],
  options: AcquireOptions,
): Promise<LeaseSet> {
  for (const key of keys) checkKey(key);
  if (keys.length === 0 || new Set(keys).size !== keys.length) {
    const rule = 'at least one key, and none of them twice';
    throw new ConfigError({ field: 'keys', value: keys, rule });
  }
  if (options.fence !== undefined) {
    const rule = 'it must be the fence of one lease. Continue each lease with its own acquire';
    throw new ConfigError({ field: 'fence', value: options.fence, rule });
  }
  const endMs = clock.monotonicMs() + waitMs(options);
  let blocked: string | null = null;
  for (let collisions = 0; ; collisions++) {
    const leftMs = Math.max(0, endMs - clock.monotonicMs());
    const taken = await tryAll(leases, keys, blocked, { ...options, wait: leftMs });
    const refusal = taken.find((result) => result.ok === false);
    if (refusal === undefined) return asSet(keys, taken);
    await releaseAll(taken);
    if (clock.monotonicMs() >= endMs) throw refusalError(refusal);
    blocked = refusal.key;
    const pauseMs = random.next() * COLLISION_MS * Math.min(collisions, MAX_COLLISIONS);
    if (pauseMs > 0) await clock.sleep(pauseMs, options.signal);
  }
}

/** Waits for the key that was held last time, alone. Only then it tries the others, all at once. */
async function tryAll(
  leases: Pick<Leases, 'acquire'>,
  keys: readonly string[],
  blocked: string | null,
  options: AcquireOptions,
): Promise<AcquireResult[]> {
  const first = blocked === null ? [] : [await leases.acquire(blocked, options)];
  if (first.some((result) => !result.ok)) return first;
  const others = keys.filter((key) => key !== blocked).sort();
  const tries = await Promise.allSettled(
    others.map((key) => leases.acquire(key, { ...options, wait: 0 })),
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

/** In the order in which the caller named the keys. */
function asSet(keys: readonly string[], taken: readonly AcquireResult[]): LeaseSet {
  const leases = taken.flatMap((result) => (result.ok ? [result.lease] : []));
  return new LeaseSet(leases.sort((a, b) => keys.indexOf(a.key) - keys.indexOf(b.key)));
}
