/**
 * How long is a lease good for, and when is it renewed? All of it follows from the TTL unless it is given, and the
 * numbers are checked against each other before any of them is used.
 *
 *     sent                                              local deadline     the store's expiry
 *      |----- renewEvery -----|------- lead ------------------|---- guard ----|
 *      |----------------------- ttl ------------------------------------------|
 *
 * - `guard` pays for clocks that do not run alike and for the time it takes to stop the work.
 * - The lead has room for three renewals that time out one after the other, before the deadline.
 */

import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { toleratedJumpMs } from '../core/validity.ts';
import { LONGEST_TTL_MS, SHORTEST_TTL_MS } from '../store/port/keyspaces.ts';

export interface TimingOptions {
  /** How long the store keeps the lease without a renewal. */
  ttl?: Duration;
  /** How often it is renewed; default a third of the TTL. */
  renewEvery?: Duration;
  /** How long the work needs to stop once the signal has fired; default 0. Part of the guard. */
  stop?: Duration;
  /** How long before the store's expiry we stop believing; default `stop` + ttl/20 within 100 ms and 1.5 s. */
  guard?: Duration;
  /** How long one store operation may take; default ttl/6, at most 5 s. */
  operationTimeout?: Duration;
}

export interface Timings {
  readonly ttlMs: number;
  readonly renewEveryMs: number;
  readonly guardMs: number;
  readonly operationTimeoutMs: number;
  /** A tenure is valid this long from the moment its last confirmed request was sent. */
  readonly validMs: number;
  /** The wall clock may move this much against the monotonic one before it means that the host has slept. */
  readonly jumpMs: number;
}

/** The timings for `options`, what they leave out taken from `defaults`, the rest derived; or a `CONFIG_INVALID`. */
export function deriveTimings(
  options: TimingOptions,
  defaults: TimingOptions,
  maxTtlMs = LONGEST_TTL_MS,
): Timings {
  const ttlMs = wholeMs(options.ttl ?? defaults.ttl ?? 0, 'ttl');
  if (ttlMs < SHORTEST_TTL_MS || ttlMs > maxTtlMs) {
    throw new ConfigError({
      field: 'ttl',
      value: options.ttl ?? defaults.ttl,
      rule: `a TTL is from ${SHORTEST_TTL_MS} ms to ${maxTtlMs} ms, the maxTtl that this Holdfast was opened with. A longer one needs a longer maxTtl, the same in every process of the store`,
    });
  }
  // A class's own figures fit its own TTL; for another one everything is derived anew.
  const given = options.ttl === undefined ? { ...defaults, ...options } : options;
  const stopMs = durationMs(given.stop ?? 0, 'stop');
  const guardMs =
    given.guard === undefined
      ? stopMs + clamp(ttlMs / 20, 100, 1_500)
      : durationMs(given.guard, 'guard');
  const renewEveryMs =
    given.renewEvery === undefined ? ttlMs / 3 : durationMs(given.renewEvery, 'renewEvery');
  const operationTimeoutMs =
    given.operationTimeout === undefined
      ? Math.min(5_000, ttlMs / 6)
      : durationMs(given.operationTimeout, 'operationTimeout');
  const timings = { ttlMs, renewEveryMs, guardMs, operationTimeoutMs };
  checkRelations(timings, stopMs);
  return { ...timings, validMs: ttlMs - guardMs, jumpMs: toleratedJumpMs(guardMs) };
}

type GivenTimings = Pick<Timings, 'ttlMs' | 'renewEveryMs' | 'guardMs' | 'operationTimeoutMs'>;

function checkRelations(
  { ttlMs, renewEveryMs, guardMs, operationTimeoutMs }: GivenTimings,
  stopMs: number,
): void {
  const leadMs = ttlMs - renewEveryMs;
  const neededMs = 3 * operationTimeoutMs + guardMs;
  if (guardMs <= stopMs) {
    const rule = `the guard has to be longer than the ${stopMs} ms the work needs to stop (stop), for clocks that do not run alike`;
    throw new ConfigError({ field: 'guard', value: guardMs, rule });
  }
  if (operationTimeoutMs < 10) {
    throw new ConfigError({
      field: 'operationTimeout',
      value: operationTimeoutMs,
      rule: 'it has to be at least 10 ms',
    });
  }
  if (renewEveryMs < 10) {
    throw new ConfigError({
      field: 'renewEvery',
      value: renewEveryMs,
      rule: 'it has to be at least 10 ms',
    });
  }
  if (leadMs < neededMs) {
    throw new ConfigError({
      field: 'renewEvery',
      value: renewEveryMs,
      rule:
        `ttl ${ttlMs} ms − renewEvery ${round(renewEveryMs)} ms leaves a lead of ${round(leadMs)} ms, but three operations of ` +
        `${round(operationTimeoutMs)} ms and a guard of ${round(guardMs)} ms need ${round(neededMs)} ms: ` +
        'raise ttl, or lower renewEvery, operationTimeout, stop or guard',
    });
  }
}

/** Redis counts TTLs in whole milliseconds, and a fraction less than asked for would be a promise broken. */
function wholeMs(duration: Duration, field: string): number {
  return Math.floor(durationMs(duration, field));
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most);
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}
