/** How an instance is doing, in one word. */
import type { SeenMember } from './fleet.ts';

/** An instance sends three heartbeats in the time that one is valid. Older than two thirds of that, and one is missing. */
const LATE_SHARE = 2 / 3;

/** In order of severity. `info`: an operator has ordered it. `warn`: it may become bad. `bad`: the instance is dead, as far as the others can tell. */
type Level = 'good' | '' | 'info' | 'warn' | 'bad';

export interface MemberState {
  readonly word: string;
  readonly level: Level;
}

export function memberState(member: SeenMember | null, nowMs: number): MemberState {
  if (member === null) return { word: 'gone', level: 'bad' };
  const leftMs = member.expiresAtMs - nowMs;
  if (leftMs <= 0) return { word: 'no heartbeat', level: 'bad' };
  if (isBeatLate(member, nowMs)) return { word: 'heartbeat late', level: 'warn' };
  if (member.isDraining) return { word: 'draining', level: 'info' };
  return member.isForeign ? { word: 'foreign', level: '' } : { word: 'alive', level: 'good' };
}

/** How old its heartbeat is; null if the instance does not say how long one is valid. */
export function beatAgeMs({ expiresAtMs, beatTtlMs }: SeenMember, nowMs: number): number | null {
  return beatTtlMs === null ? null : Math.max(0, beatTtlMs - (expiresAtMs - nowMs));
}

function isBeatLate(member: SeenMember, nowMs: number): boolean {
  const ageMs = beatAgeMs(member, nowMs);
  return ageMs !== null && member.beatTtlMs !== null && ageMs > member.beatTtlMs * LATE_SHARE;
}

/** How much of the TTL is left after a slow renewal (p99); null if the instance does not say. */
export function marginMs({ vitals }: SeenMember): number | null {
  if (vitals === null || vitals.renewP99Ms === null) return null;
  return vitals.ttlMs - vitals.renewP99Ms;
}
