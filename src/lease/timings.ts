/**
 * How long a lease is valid, and when it is renewed. Everything follows from the TTL unless an
 * option says otherwise, and the numbers are checked against each other before any of them is used.
 *
 *     sent                                              local deadline     the store's expiry
 *      |----- renewEvery -----|------- lead ------------------|---- guard ----|
 *      |----------------------- ttl ------------------------------------------|
 *
 * - `guard` covers clocks that run at different speeds, and the time the work needs to stop.
 * - The lead has room for three renewals that time out one after the other, before the deadline.
 */

import { type Duration, durationMs } from '../core/duration.ts';
import { ConfigError } from '../core/errors.ts';
import { toleratedJumpMs } from '../core/validity.ts';
import {
  KEYSPACES,
  keyspaceOf,
  LONGEST_TTL_MS,
  type MaxTtls,
  SHORTEST_TTL_MS,
} from '../store/port/keyspaces.ts';

/**
 * A caller with another TTL for every call empties the `PolicyCache` each time it has this many.
 */
const MAX_POLICIES = 1_000;
const MIN_GUARD_MS = 100;
const MAX_GUARD_MS = 1_500;
const MIN_OPERATION_MS = 10;
const MIN_RENEW_EVERY_MS = 10;
const MAX_OPERATION_MS = 5_000;
/** The default grace of a process group; a sixth of the TTL if that is shorter. */
const DEFAULT_GRACE_MS = 5_000;

export interface TimingOptions {
  /** How long the store keeps the lease without a renewal. */
  ttl?: Duration;
  /** How often the lease is renewed; default a third of the TTL. */
  renewEvery?: Duration;
  /** How long the work needs to stop after the signal has fired; default 0. Part of the guard. */
  stop?: Duration;
  /**
   * How long before the store's expiry the lease ends here; default `stop` + ttl/20, of which 100
   * ms to 1.5 s.
   */
  guard?: Duration;
  /** How long one store operation may take; default ttl/6, at most 5 s. */
  operationTimeout?: Duration;
}

/** The timings of a lease, and how long it is held at most. */
export interface HoldOptions extends TimingOptions {
  /**
   * How long the lease is held at most, whatever happens: then it is lost (`max_hold`), `signal`
   * fires, and no renewal follows. A release frees its key; without one, the key expires within a
   * TTL. Default: no limit.
   */
  maxHold?: Duration;
}

export interface Timings {
  readonly ttlMs: number;
  readonly renewEveryMs: number;
  readonly guardMs: number;
  readonly operationTimeoutMs: number;
  /** A lease is valid this long from the moment its last confirmed request was sent. */
  readonly validMs: number;
  /**
   * How far the wall clock may move against the monotonic clock before the host counts as having
   * slept.
   */
  readonly jumpMs: number;
}

/**
 * Kinds of work that share the kernel but not their timings. `lease` and `resource` share a
 * keyspace: a key has one holder, whichever of the two classes it was acquired with.
 */
export interface LeaseClass {
  readonly name: string;
  /** What a key of this class begins with in the store. */
  readonly keyspace: string;
  readonly timings: TimingOptions;
  /** How long a successor has to claim a transferred lease. */
  readonly claimWindowMs: number;
}

export type LeaseClassName = 'lease' | 'poll' | 'resource' | 'workflow';

export const LEASE_CLASSES: Record<LeaseClassName, LeaseClass> = {
  /** The default of `acquire` and `withLease`. */
  lease: {
    name: 'lease',
    keyspace: KEYSPACES.lease,
    timings: { ttl: '30s' },
    claimWindowMs: 2_000,
  },
  /** Poll targets. Other programs know these key names. */
  poll: {
    name: 'poll',
    keyspace: KEYSPACES.poll,
    timings: { ttl: '30s', renewEvery: '10s', guard: '1.5s' },
    claimWindowMs: 2_000,
  },
  /** Scarce things that processes drive. The guard covers killing a process group: up to 5 s. */
  resource: {
    name: 'resource',
    keyspace: KEYSPACES.lease,
    timings: { ttl: '30s', renewEvery: '10s', guard: '7s', operationTimeout: '4s' },
    claimWindowMs: 2_000,
  },
  /** Workflows are held for long, and renewed when less than 60 s remain. */
  workflow: {
    name: 'workflow',
    keyspace: KEYSPACES.workflow,
    timings: { ttl: '300s', renewEvery: '240s', guard: '5s' },
    claimWindowMs: 30_000,
  },
};

/** The class and the timings of a lease. Leases with the same options share one policy object. */
export interface LeasePolicy {
  readonly leaseClass: LeaseClass;
  readonly timings: Timings;
  /** The bound of the keyspace. */
  readonly maxTtlMs: number;
  /** How long one lease is held at most; absent: no limit. */
  readonly maxHoldMs?: number | undefined;
}

/** One policy per set of options. Requests of the same policy are sent together. */
export class PolicyCache {
  readonly #maxTtls: MaxTtls | null;
  readonly #policies = new Map<string, LeasePolicy>();
  /** The last class and TTL without other timings: most callers always pass the same. */
  #last: { name: LeaseClassName; ttl: Duration | undefined; policy: LeasePolicy } | null = null;

  /** `maxTtls`: the bounds of the store; null for an observer, which only derives timings. */
  constructor(maxTtls: MaxTtls | null) {
    this.#maxTtls = maxTtls;
  }

  for(options: HoldOptions & { class?: LeaseClassName }): LeasePolicy {
    const { class: name = 'lease', ttl, renewEvery, stop, guard, operationTimeout } = options;
    const { maxHold } = options;
    const others = renewEvery ?? stop ?? guard ?? operationTimeout ?? maxHold;
    const last = this.#last;
    if (others === undefined && last?.name === name && last.ttl === ttl) return last.policy;
    const policy = this.#policyFor(options, name);
    if (others === undefined) this.#last = { name, ttl, policy };
    return policy;
  }

  #policyFor(options: HoldOptions, name: LeaseClassName): LeasePolicy {
    const { ttl, renewEvery, stop, guard, operationTimeout, maxHold } = options;
    const id = `${name} ${ttl} ${renewEvery} ${stop} ${guard} ${operationTimeout} ${maxHold}`;
    const known = this.#policies.get(id);
    if (known !== undefined) return known;
    const leaseClass = LEASE_CLASSES[name];
    const given = present({ ttl, renewEvery, stop, guard, operationTimeout });
    const maxTtlMs = this.#maxTtls?.[keyspaceOf(leaseClass.keyspace)] ?? LONGEST_TTL_MS;
    const timings = deriveTimings(given, defaultsOf(leaseClass, maxTtlMs), maxTtlMs);
    const maxHoldMs = maxHold === undefined ? undefined : checkedMaxHoldMs(maxHold);
    const policy: LeasePolicy = { leaseClass, timings, maxTtlMs, maxHoldMs };
    if (this.#policies.size >= MAX_POLICIES) this.#policies.clear();
    this.#policies.set(id, policy);
    return policy;
  }
}

function checkedMaxHoldMs(maxHold: Duration): number {
  const maxHoldMs = durationMs(maxHold, 'maxHold');
  if (maxHoldMs > 0) return maxHoldMs;
  const rule = 'it must be longer than 0. Leave it out for no limit';
  throw new ConfigError({ field: 'maxHold', value: maxHold, rule });
}

/**
 * A class's own timings; if its TTL exceeds the bound, the timings of a lease as long as the bound.
 */
function defaultsOf({ name, timings }: LeaseClass, maxTtlMs: number): TimingOptions {
  if (durationMs(timings.ttl ?? 0, 'ttl') <= maxTtlMs) return timings;
  return name === 'resource' ? workTimings({ ttl: maxTtlMs }) : { ttl: maxTtlMs };
}

/** The options without those that are undefined. */
function present<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as never;
}

/**
 * The timings for `options`, completed from `defaults`; throws `CONFIG_INVALID` if they do not fit
 * together.
 */
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
      rule:
        `a TTL is from ${SHORTEST_TTL_MS} ms to ${maxTtlMs} ms, ` +
        'the maxTtl that this Holdfast was opened with. A longer one needs a longer maxTtl, the same in every process of the store',
    });
  }
  // The figures of a class fit its own TTL. For another TTL they are derived.
  const given = options.ttl === undefined ? { ...defaults, ...options } : options;
  const stopMs = durationMs(given.stop ?? 0, 'stop');
  const guardMs =
    given.guard === undefined
      ? stopMs + clamp(ttlMs / 20, MIN_GUARD_MS, MAX_GUARD_MS)
      : durationMs(given.guard, 'guard');
  const renewEveryMs =
    given.renewEvery === undefined ? ttlMs / 3 : durationMs(given.renewEvery, 'renewEvery');
  const operationTimeoutMs =
    given.operationTimeout === undefined
      ? Math.min(MAX_OPERATION_MS, ttlMs / 6)
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
    const rule =
      `the guard has to be longer than the ${stopMs} ms that the work needs to stop (stop), ` +
      'because clocks run at different speeds. Raise guard or lower stop';
    throw new ConfigError({ field: 'guard', value: guardMs, rule });
  }
  if (operationTimeoutMs < MIN_OPERATION_MS) {
    const rule = `it has to be at least ${MIN_OPERATION_MS} ms`;
    throw new ConfigError({ field: 'operationTimeout', value: operationTimeoutMs, rule });
  }
  if (renewEveryMs < MIN_RENEW_EVERY_MS) {
    const rule = `it has to be at least ${MIN_RENEW_EVERY_MS} ms`;
    throw new ConfigError({ field: 'renewEvery', value: renewEveryMs, rule });
  }
  if (leadMs < neededMs) {
    const rule =
      `ttl ${ttlMs} ms − renewEvery ${round(renewEveryMs)} ms ` +
      `leaves a lead of ${round(leadMs)} ms, ` +
      `but three operations of ${round(operationTimeoutMs)} ms ` +
      `and a guard of ${round(guardMs)} ms need ${round(neededMs)} ms: ` +
      'raise ttl, or lower renewEvery, operationTimeout, stop or guard';
    throw new ConfigError({ field: 'renewEvery', value: renewEveryMs, rule });
  }
}

/** The times of work that runs processes under a lease. */
export interface WorkTimes {
  /** How long the lease lasts without a renewal; default 30 s. */
  readonly ttl?: Duration | undefined;
  /** How long the work may take to end before it is killed; default 5 s, or a sixth of the TTL. */
  readonly grace?: Duration | undefined;
}

/** All `TimingOptions`, in milliseconds. `stop` is the grace. */
export interface WorkTimings {
  readonly ttl: number;
  readonly renewEvery: number;
  readonly stop: number;
  readonly guard: number;
  readonly operationTimeout: number;
}

/**
 * The timings of a lease around work that needs a grace to end, checked against each other. The
 * grace is part of the guard and takes its time from the store operations. An operation may take a
 * sixth of the TTL, and needs at least a fifteenth, or renewals would often time out. The defaults
 * are those of class `resource`. `names` are the names of the two options in error messages.
 */
export function workTimings(
  { ttl, grace }: WorkTimes = {},
  names = { ttl: 'ttl', grace: 'grace' },
): WorkTimings {
  const { resource } = LEASE_CLASSES;
  const stated = ttl ?? resource.timings.ttl ?? 0;
  const ttlMs = wholeMs(stated, names.ttl);
  if (ttlMs < SHORTEST_TTL_MS || ttlMs > LONGEST_TTL_MS) {
    const rule = `a lease lasts from ${SHORTEST_TTL_MS}ms to 12h`;
    throw new ConfigError({ field: names.ttl, value: ttl, rule });
  }
  const graceMs =
    grace === undefined ? Math.min(DEFAULT_GRACE_MS, ttlMs / 6) : durationMs(grace, names.grace);
  if (ttl === undefined && grace === undefined) return figuresOf(resource.timings, graceMs);
  const { renewEveryMs, guardMs } = deriveTimings({ ttl: ttlMs }, {});
  const spareMs = ttlMs - renewEveryMs - guardMs;
  const maxGraceMs = Math.floor(spareMs - (3 * ttlMs) / 15);
  if (graceMs > maxGraceMs) {
    const rule =
      `with ${names.ttl} ${stated} at most ${maxGraceMs}ms leave time to renew the lease. ` +
      `Raise ${names.ttl} or lower ${names.grace}`;
    throw new ConfigError({ field: names.grace, value: grace, rule });
  }
  const operationMs = Math.min(MAX_OPERATION_MS, ttlMs / 6, (spareMs - graceMs) / 3);
  const operationTimeout = Math.floor(operationMs);
  return figuresOf({ ttl: ttlMs, stop: graceMs, operationTimeout }, graceMs);
}

function figuresOf(options: TimingOptions, graceMs: number): WorkTimings {
  const timings = deriveTimings(options, {});
  return {
    ttl: timings.ttlMs,
    renewEvery: timings.renewEveryMs,
    stop: graceMs,
    guard: timings.guardMs,
    operationTimeout: timings.operationTimeoutMs,
  };
}

/** Rounded down: Redis counts TTLs in whole milliseconds, and a lease must not outlast its TTL. */
function wholeMs(duration: Duration, field: string): number {
  return Math.floor(durationMs(duration, field));
}

function clamp(value: number, min: number, max: number): number {
  return Math.min(Math.max(value, min), max);
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}
