import type { LiveMember } from '../../store/port/member-store.ts';
import type { Hashed } from '../plan/hash.ts';
import type { PlanMember } from '../plan/plan.ts';

/**
 * How an instance is doing: whether its renewals are fast enough, and whether its event loop keeps
 * up. Operators see in it that an instance is about to lose its leases.
 */
export interface Vitals {
  /** How long the lease of a target lasts without a renewal, and how often it is renewed. */
  readonly ttlMs: number;
  readonly renewEveryMs: number;
  /** How long its renewals took in the last few minutes; null where there were none. */
  readonly renewP50Ms: number | null;
  readonly renewP99Ms: number | null;
  /** The longest delay of its event loop in the last minute. */
  readonly loopDelayMs: number;
}

/** The attributes in every heartbeat of an instance. */
export interface Attributes {
  readonly weight: number;
  /** The names of the commands that it has; absent where it is `default` alone. */
  readonly commands?: readonly string[] | undefined;
  readonly draining: boolean;
  /** How many targets it owns. */
  readonly owned: number;
  /** Of Holdfast: during an upgrade a fleet has more than one. */
  readonly version: string;
  /** Per owner, the targets that this instance asks for: repeats a signal that may be lost. */
  readonly asks: Readonly<Record<string, readonly string[]>>;
  /** How long this heartbeat lasts, so that a reader knows how old it is. */
  readonly beatTtlMs: number;
  readonly vitals: Vitals;
}

/** A member as this process knows it. */
export interface FleetMember extends PlanMember {
  readonly owned: number;
  /** Null where the heartbeat does not say. */
  readonly version: string | null;
  readonly asks: Attributes['asks'];
  /** Null where the heartbeat does not say. */
  readonly beatTtlMs: number | null;
  readonly vitals: Vitals | null;
  /** When its heartbeat expires, on this process's monotonic clock. */
  readonly expiresAtMs: number;
}

const NO_ASKS: Attributes['asks'] = {};

export const MIN_WEIGHT = 1;
export const MAX_WEIGHT = 1_000;

/**
 * Without attributes the member is foreign: a non-Holdfast program. Invalid attributes count as
 * absent.
 */
export function fleetMember(
  { attributes, expiresInMs }: LiveMember,
  { id, hi, lo }: Hashed,
  nowMs: number,
): FleetMember {
  const { weight, commands, draining, owned, version, asks, beatTtlMs, vitals } = attributes ?? {};
  return {
    id,
    hi,
    lo,
    isForeign: attributes === null,
    weight: isWeight(weight) ? weight : MIN_WEIGHT,
    commands: isTexts(commands) ? commands : undefined,
    isDraining: draining === true,
    owned: Number.isSafeInteger(owned) ? (owned as number) : 0,
    version: typeof version === 'string' ? version : null,
    asks: readAsks(asks),
    beatTtlMs: isSpan(beatTtlMs) ? beatTtlMs : null,
    vitals: readVitals(vitals),
    expiresAtMs: nowMs + expiresInMs,
  };
}

export function isWeight(weight: unknown): weight is number {
  const isWhole = Number.isSafeInteger(weight);
  return isWhole && (weight as number) >= MIN_WEIGHT && (weight as number) <= MAX_WEIGHT;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

function readAsks(asks: unknown): Attributes['asks'] {
  const given = Object.entries(asks ?? {});
  if (given.length === 0) return NO_ASKS;
  return Object.fromEntries(given.flatMap(([owner, ids]) => (isTexts(ids) ? [[owner, ids]] : [])));
}

/** The vitals in a heartbeat; null where it has none that are valid: other versions beat too. */
function readVitals(value: unknown): Vitals | null {
  if (typeof value !== 'object' || value === null) return null;
  const { ttlMs, renewEveryMs, renewP50Ms, renewP99Ms, loopDelayMs } = value as {
    [field: string]: unknown;
  };
  if (!isSpan(ttlMs) || !isSpan(renewEveryMs) || !isSpan(loopDelayMs)) return null;
  return {
    ttlMs,
    renewEveryMs,
    loopDelayMs,
    renewP50Ms: isSpan(renewP50Ms) ? renewP50Ms : null,
    renewP99Ms: isSpan(renewP99Ms) ? renewP99Ms : null,
  };
}

function isSpan(ms: unknown): ms is number {
  return typeof ms === 'number' && Number.isFinite(ms) && ms >= 0;
}
