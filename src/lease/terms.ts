import type { Clock } from '../core/clock.ts';
import { durationMs } from '../core/duration.ts';
import type { LossReason } from '../core/errors.ts';
import type { Emitter } from '../core/events.ts';
import { keyspaceOf, LONGEST_TTL_MS, type MaxTtls } from '../store/port/keyspaces.ts';
import { LEASE_CLASSES, type LeaseClass } from './classes.ts';
import type { AcquireOptions } from './options.ts';
import type { Tenure, Terms } from './tenure.ts';
import { deriveTimings, type TimingOptions } from './timings.ts';
import { workTimings } from './work-timings.ts';

/** Kinds of terms remembered; a caller with a different TTL for every call starts the list anew. */
const MOST_TERMS = 1_000;

export interface TermsParts {
  readonly clock: Clock;
  readonly events: Emitter;
  /** Null for an observer, which has no terms. */
  readonly maxTtls: MaxTtls | null;
  renewNow(tenure: Tenure): void;
  onLost(tenure: Tenure, reason: LossReason): void;
}

/** The terms for each set of options: the same object for the same options, so that tenures can be batched by it. */
export class TermsCache {
  readonly #parts: TermsParts;
  readonly #known = new Map<string, Terms>();

  constructor(parts: TermsParts) {
    this.#parts = parts;
  }

  for(options: AcquireOptions): Terms {
    const { class: name = 'lease', ttl, renewEvery, stop, guard, operationTimeout } = options;
    // Most callers set the TTL at most: the long name is for the others.
    const others = renewEvery ?? stop ?? guard ?? operationTimeout;
    const id =
      others === undefined
        ? `${name} ${ttl}`
        : `${name} ${ttl} ${renewEvery} ${stop} ${guard} ${operationTimeout}`;
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const leaseClass = LEASE_CLASSES[name];
    const given = present({ ttl, renewEvery, stop, guard, operationTimeout });
    const maxTtlMs = this.#maxTtlMs(leaseClass);
    const timings = deriveTimings(given, defaultsOf(leaseClass, maxTtlMs), maxTtlMs);
    const terms: Terms = { ...this.#parts, leaseClass, timings };
    if (this.#known.size >= MOST_TERMS) this.#known.clear();
    this.#known.set(id, terms);
    return terms;
  }

  #maxTtlMs({ keyspace }: LeaseClass): number {
    return this.#parts.maxTtls?.[keyspaceOf(keyspace)] ?? LONGEST_TTL_MS;
  }
}

/** A class's own timings, or, where its TTL is longer than the bound, those of a lease as long as the bound. */
function defaultsOf({ name, timings }: LeaseClass, maxTtlMs: number): TimingOptions {
  if (durationMs(timings.ttl ?? 0, 'ttl') <= maxTtlMs) return timings;
  return name === 'resource' ? workTimings({ ttl: maxTtlMs }) : { ttl: maxTtlMs };
}

/** The object without what is undefined. */
function present<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(
    Object.entries(options).filter(([, value]) => value !== undefined),
  ) as never;
}
