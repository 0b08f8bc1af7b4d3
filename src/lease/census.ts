/**
 * Counts the leases of a process, for metrics and people. It reads every tenure, so it is not for
 * loops.
 */
import type { Tenure } from './tenure.ts';

/** The leases of one class. */
export interface ClassCensus {
  readonly held: number;
  /** How long until the first of them is lost if no renewal is confirmed from now on. */
  readonly remainingMs: number;
  /** The shortest TTL among them. */
  readonly ttlMs: number;
}

/** By the name of the class. A class without held leases is missing. */
export type Census = ReadonlyMap<string, ClassCensus>;

export function censusOf(tenures: Iterable<Tenure>, nowMs: number): Census {
  const census = new Map<string, { held: number; remainingMs: number; ttlMs: number }>();
  for (const { deadlineMs, policy } of tenures) {
    const { leaseClass, timings } = policy;
    const remainingMs = Math.max(0, deadlineMs - nowMs);
    const known = census.get(leaseClass.name);
    if (known === undefined) {
      census.set(leaseClass.name, { held: 1, remainingMs, ttlMs: timings.ttlMs });
      continue;
    }
    known.held++;
    known.remainingMs = Math.min(known.remainingMs, remainingMs);
    known.ttlMs = Math.min(known.ttlMs, timings.ttlMs);
  }
  return census;
}
