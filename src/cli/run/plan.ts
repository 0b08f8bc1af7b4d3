import { type Duration, durationMs } from '../../base/duration.ts';
import { ConfigError } from '../../base/errors.ts';
import { deriveTimings, LONGEST_TTL_MS, SHORTEST_TTL_MS } from '../../lease/timings.ts';

const DEFAULT_TTL = '30s';
/** Or a sixth of the TTL, if that is shorter. */
const DEFAULT_GRACE_MS = 5_000;
const LONGEST_OPERATION_MS = 5_000;
/** What `open` admits by itself. */
const DEFAULT_MAX_TTL_MS = 300_000;

export interface TimingFlags {
  readonly ttl?: Duration;
  readonly grace?: Duration;
  readonly wait?: Duration;
}

export interface Plan {
  readonly ttlMs: number;
  readonly graceMs: number;
  readonly waitMs: number;
  readonly operationTimeoutMs: number;
  readonly maxTtlMs: number;
}

/**
 * The timings of a run, checked against each other. The grace is part of the guard, and takes its time from the store
 * operations: these may take a sixth of the TTL, but no less than a fifteenth, or renewing would be a gamble.
 */
export function planRun({ ttl = DEFAULT_TTL, grace, wait = 0 }: TimingFlags): Plan {
  const ttlMs = Math.floor(durationMs(ttl, '--ttl'));
  if (ttlMs < SHORTEST_TTL_MS || ttlMs > LONGEST_TTL_MS) {
    const rule = `a lease lasts from ${SHORTEST_TTL_MS}ms to 12h`;
    throw new ConfigError({ field: '--ttl', value: ttl, rule });
  }
  const { renewEveryMs, guardMs } = deriveTimings({ ttl: ttlMs }, {}, LONGEST_TTL_MS);
  const spareMs = ttlMs - renewEveryMs - guardMs;
  const graceMs =
    grace === undefined ? Math.min(DEFAULT_GRACE_MS, ttlMs / 6) : durationMs(grace, '--grace');
  const longestGraceMs = Math.floor(spareMs - (3 * ttlMs) / 15);
  if (graceMs > longestGraceMs) {
    const rule = `with --ttl ${ttl} at most ${longestGraceMs}ms leave time to renew the lease. Raise --ttl or lower --grace`;
    throw new ConfigError({ field: '--grace', value: grace, rule });
  }
  const operationTimeoutMs = Math.floor(
    Math.min(LONGEST_OPERATION_MS, ttlMs / 6, (spareMs - graceMs) / 3),
  );
  return {
    ttlMs,
    graceMs,
    waitMs: durationMs(wait, '--wait'),
    operationTimeoutMs,
    maxTtlMs: Math.max(ttlMs, DEFAULT_MAX_TTL_MS),
  };
}
