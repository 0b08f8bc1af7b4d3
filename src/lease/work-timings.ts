import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { LONGEST_TTL_MS, SHORTEST_TTL_MS } from '../store/port/keyspaces.ts';
import { LEASE_CLASSES } from './classes.ts';
import { deriveTimings } from './timings.ts';

/** How long a process group has to end when nothing else is said; or a sixth of the TTL, if that is shorter. */
const DEFAULT_GRACE_MS = 5_000;
const LONGEST_OPERATION_MS = 5_000;

/** What whoever runs processes under a lease says of time. */
export interface WorkTimes {
  /** How long its lease lasts without a renewal; default 30 s. */
  readonly ttl?: Duration | undefined;
  /** How long the work may take to end before it is killed; default 5 s, or a sixth of the TTL. */
  readonly grace?: Duration | undefined;
}

/** `TimingOptions` in milliseconds, all of them. `stop` is the grace. */
export interface WorkTimings {
  readonly ttl: number;
  readonly renewEvery: number;
  readonly stop: number;
  readonly guard: number;
  readonly operationTimeout: number;
}

/**
 * The timings of a lease around work that takes a while to end, checked against each other. The grace is part of the guard, and takes its
 * time from the store operations: these may take a sixth of the TTL, but no less than a fifteenth, or renewing would be a gamble. Where
 * nothing is said, it is as class `resource` has it. `names`: what the two are called where they are set.
 */
export function workTimings(
  { ttl, grace }: WorkTimes = {},
  names = { ttl: 'ttl', grace: 'grace' },
): WorkTimings {
  const { resource } = LEASE_CLASSES;
  const stated = ttl ?? resource.timings.ttl ?? 0;
  const ttlMs = Math.floor(durationMs(stated, names.ttl));
  if (ttlMs < SHORTEST_TTL_MS || ttlMs > LONGEST_TTL_MS) {
    const rule = `a lease lasts from ${SHORTEST_TTL_MS}ms to 12h`;
    throw new ConfigError({ field: names.ttl, value: ttl, rule });
  }
  const graceMs =
    grace === undefined ? Math.min(DEFAULT_GRACE_MS, ttlMs / 6) : durationMs(grace, names.grace);
  if (ttl === undefined && grace === undefined) return figuresOf(resource.timings, graceMs);
  const { renewEveryMs, guardMs } = deriveTimings({ ttl: ttlMs }, {});
  const spareMs = ttlMs - renewEveryMs - guardMs;
  const longestGraceMs = Math.floor(spareMs - (3 * ttlMs) / 15);
  if (graceMs > longestGraceMs) {
    const rule = `with ${names.ttl} ${stated} at most ${longestGraceMs}ms leave time to renew the lease. Raise ${names.ttl} or lower ${names.grace}`;
    throw new ConfigError({ field: names.grace, value: grace, rule });
  }
  const longestMs = Math.min(LONGEST_OPERATION_MS, ttlMs / 6, (spareMs - graceMs) / 3);
  const operationTimeout = Math.floor(longestMs);
  return figuresOf({ ttl: ttlMs, stop: graceMs, operationTimeout }, graceMs);
}

function figuresOf(options: Parameters<typeof deriveTimings>[0], graceMs: number): WorkTimings {
  const timings = deriveTimings(options, {});
  return {
    ttl: timings.ttlMs,
    renewEvery: timings.renewEveryMs,
    stop: graceMs,
    guard: timings.guardMs,
    operationTimeout: timings.operationTimeoutMs,
  };
}
