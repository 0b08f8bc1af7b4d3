/** Findings about a fleet before it fails: each a fact, and what to do about it. Pure. */
import { shortName } from '../../core/ids.ts';
import { exactly } from '../../core/time-text.ts';
import { deriveTimings } from '../../lease/timings.ts';
import { LONGEST_TTL_MS, SHORTEST_TTL_MS } from '../../store/port/keyspaces.ts';
import type { Explanation } from '../plan/explain.ts';
import type { MemberView } from './fleet.ts';

export interface FleetFinding {
  readonly level: 'ok' | 'warn';
  readonly subject: 'renewals' | 'event loop' | 'round trip' | 'versions' | 'draining' | 'targets';
  readonly fact: string;
  readonly advice?: string;
}

/** How much time an instance has to spare when it renews. */
export interface Margin {
  readonly id: string;
  /** The rest of the TTL after a renewal as slow as the p99; null where unknown. */
  readonly marginMs: number | null;
  readonly renewP99Ms: number | null;
  readonly ttlMs: number | null;
  readonly loopDelayMs: number | null;
}

export interface FleetFacts {
  readonly members: readonly MemberView[];
  readonly targets: readonly Pick<Explanation, 'owner' | 'reason'>[];
  /** Of requests from this process to the store. */
  readonly p99Ms: number;
  /** For how long each draining member has been draining; absent: for longer than the log shows. */
  readonly drainingMs: ReadonlyMap<string, number>;
}

/** Where no instance says another. */
const USUAL_TTL_MS = 30_000;
/** With less than this share of a TTL left, one slow renewal loses the lease. */
const MIN_MARGIN_SHARE = 1 / 3;
/** Several requests have to fit between two renewals. */
const MAX_ROUND_TRIP_SHARE = 1 / 10;
/** An instance that drains for longer was forgotten, or cannot hand over. */
const LONG_DRAIN_MS = 600_000;
/** So many are named; the others are counted. */
const MAX_NAMED = 3;

export function marginsOf(members: readonly MemberView[]): Margin[] {
  return members.map(({ id, vitals }) => {
    const { ttlMs = null, renewP99Ms = null, loopDelayMs = null } = vitals ?? {};
    const marginMs = ttlMs === null || renewP99Ms === null ? null : ttlMs - renewP99Ms;
    return { id, marginMs, renewP99Ms, ttlMs, loopDelayMs };
  });
}

export function fleetFindings(facts: FleetFacts): FleetFinding[] {
  const { members, p99Ms } = facts;
  const margins = marginsOf(members);
  const shortestTtlMs = Math.min(
    ...margins.map(({ ttlMs }) => ttlMs ?? USUAL_TTL_MS),
    USUAL_TTL_MS,
  );
  return [
    roundTrip(p99Ms, members.length === 0 ? USUAL_TTL_MS : shortestTtlMs),
    ...renewals(margins),
    ...eventLoops(margins),
    ...versions(members),
    ...draining(facts),
    ...unowned(facts),
  ];
}

function roundTrip(p99Ms: number, ttlMs: number): FleetFinding {
  const subject = 'round trip';
  const fact = `99 of 100 requests take at most ${whole(p99Ms)}, at a TTL of ${whole(ttlMs)}.`;
  if (p99Ms <= ttlMs * MAX_ROUND_TRIP_SHARE) return { level: 'ok', subject, fact };
  const advice =
    'A renewal that fails has too little time to be tried again: move the store closer, find out what keeps it busy, or raise ttl.';
  return { level: 'warn', subject, fact, advice };
}

function renewals(margins: readonly Margin[]): FleetFinding[] {
  const subject = 'renewals';
  const known = margins.filter(({ marginMs }) => marginMs !== null);
  const tight = known.filter(
    ({ marginMs, ttlMs }) => (marginMs ?? 0) < (ttlMs ?? 0) * MIN_MARGIN_SHARE,
  );
  if (tight.length === 0) {
    const least = Math.min(...known.map(({ marginMs }) => marginMs ?? 0));
    const fact = `Every instance renews with ${whole(least)} to spare, at least.`;
    return known.length === 0 ? [] : [{ level: 'ok', subject, fact }];
  }
  const fact = `${named(tight)} would have less than a third of the TTL left after a slow renewal.`;
  const advice =
    'They are about to lose their leases: check the connection to the store and their load, or raise ttl.';
  return [{ level: 'warn', subject, fact, advice }];
}

function eventLoops(margins: readonly Margin[]): FleetFinding[] {
  const subject = 'event loop';
  const known = margins.filter(({ loopDelayMs }) => loopDelayMs !== null);
  const blocked = known.filter(
    ({ loopDelayMs, ttlMs }) => (loopDelayMs ?? 0) > guardMsOf(ttlMs ?? USUAL_TTL_MS),
  );
  const worstMs = Math.max(0, ...known.map(({ loopDelayMs }) => loopDelayMs ?? 0));
  if (blocked.length === 0) {
    const fact = `No event loop was late by more than ${whole(worstMs)} in the last minute.`;
    return known.length === 0 ? [] : [{ level: 'ok', subject, fact }];
  }
  const fact = `${named(blocked)} was blocked for up to ${whole(worstMs)} in the last minute, longer than the guard of its leases.`;
  const advice =
    'While its event loop is blocked, an instance does not stop work in time: only fences protect your data. Move long work into a worker thread or another process.';
  return [{ level: 'warn', subject, fact, advice }];
}

function versions(members: readonly MemberView[]): FleetFinding[] {
  const found = [...new Set(members.flatMap(({ version }) => version ?? []))].sort();
  if (found.length < 2) return [];
  const fact = `Instances run ${found.length} versions of Holdfast: ${found.join(', ')}.`;
  const advice =
    'That is fine while you upgrade. Finish the upgrade: older instances lack the new features.';
  return [{ level: 'warn', subject: 'versions', fact, advice }];
}

function draining({ members, drainingMs }: FleetFacts): FleetFinding[] {
  const long = members.filter(
    ({ id, isDraining }) => isDraining && !((drainingMs.get(id) ?? LONG_DRAIN_MS) < LONG_DRAIN_MS),
  );
  if (long.length === 0) return [];
  const left = long.reduce((sum, { owned }) => sum + owned, 0);
  const fact = `${named(long)} ${long.length === 1 ? 'has' : 'have'} been draining for more than ${whole(LONG_DRAIN_MS)}, and own${long.length === 1 ? 's' : ''} ${left} targets.`;
  const advice =
    left === 0
      ? 'Stop it, or let it take part again: holdfast undrain.'
      : 'Its polls may not finish, or no instance can take over: see holdfast explain for one of its targets.';
  return [{ level: 'warn', subject: 'draining', fact, advice }];
}

const UNOWNED_ADVICE: Readonly<Partial<Record<Explanation['reason'], string>>> = {
  unplaced:
    'Start an instance that has their commands, or let one that drains take part again. See holdfast explain TARGET.',
  quarantine:
    'The store may have lost leases; this ends automatically, after one TTL at the latest.',
  revoked: 'They stay blocked while the revoked holder may still act; this ends automatically.',
  garbage: 'Their keys hold something that is no lease: inspect it, and remove it.',
  unsettled: 'Work that was told to stop has not: find out why.',
};

function unowned({ members, targets }: FleetFacts): FleetFinding[] {
  const subject = 'targets';
  const free = targets.filter(({ owner }) => owner === null);
  if (targets.length === 0) return [];
  if (free.length === 0)
    return [{ level: 'ok', subject, fact: `Each of ${targets.length} targets has an owner.` }];
  const reasons = [...new Set(free.map(({ reason }) => reason))];
  const counts = reasons.map(
    (reason) => `${free.filter((target) => target.reason === reason).length} ${reason}`,
  );
  const fact = `${free.length} of ${targets.length} targets have no owner: ${counts.join(', ')}.`;
  if (members.length === 0) {
    const advice = 'No instance runs: start one with holdfast up.';
    return [{ level: 'warn', subject, fact, advice }];
  }
  const advice =
    reasons.flatMap((reason) => UNOWNED_ADVICE[reason] ?? []).join(' ') ||
    'Instances take free targets within moments. If it stays like this: holdfast explain TARGET.';
  return [{ level: 'warn', subject, fact, advice }];
}

/** The guard that instances derive from their TTL. */
function guardMsOf(ttlMs: number): number {
  const ttl = Math.min(Math.max(ttlMs, SHORTEST_TTL_MS), LONGEST_TTL_MS);
  return deriveTimings({ ttl }, {}).guardMs;
}

function named(members: readonly { readonly id: string }[]): string {
  const names = members.slice(0, MAX_NAMED).map(({ id }) => shortName(id));
  const rest = members.length - names.length;
  return rest > 0 ? `${names.join(', ')} and ${rest} more` : names.join(', ');
}

/** Short times keep a digit after the point: round trips are shorter than 10 ms. */
function whole(ms: number): string {
  return ms < 10 ? `${Math.round(ms * 10) / 10} ms` : exactly(ms);
}
