/** How a member is, in one word. */
import type { SeenMember } from './fleet.ts';

/** An instance beats three times in the life of a heartbeat: older than two of these, and a beat was missed. */
const LATE_SHARE = 2 / 3;

export interface MemberState {
  readonly word: string;
  readonly level: 'good' | 'warn' | 'bad' | '';
}

export function memberState(member: SeenMember | null, nowMs: number): MemberState {
  if (member === null) return { word: 'gone', level: 'bad' };
  const leftMs = member.expiresAtMs - nowMs;
  if (leftMs <= 0) return { word: 'no heartbeat', level: 'bad' };
  if (isBeatLate(member, nowMs)) return { word: 'heartbeat late', level: 'bad' };
  if (member.isDraining) return { word: 'draining', level: 'warn' };
  return member.isForeign ? { word: 'foreign', level: '' } : { word: 'alive', level: 'good' };
}

/** How old its heartbeat is; null where it does not say how long one lasts. */
export function beatAgeMs({ expiresAtMs, beatTtlMs }: SeenMember, nowMs: number): number | null {
  return beatTtlMs === null ? null : Math.max(0, beatTtlMs - (expiresAtMs - nowMs));
}

function isBeatLate(member: SeenMember, nowMs: number): boolean {
  const ageMs = beatAgeMs(member, nowMs);
  return ageMs !== null && member.beatTtlMs !== null && ageMs > member.beatTtlMs * LATE_SHARE;
}

/** What is left of the TTL where a renewal takes as long as the slowest of a hundred do; null where it does not say. */
export function marginMs({ vitals }: SeenMember): number | null {
  if (vitals === null || vitals.renewP99Ms === null) return null;
  return vitals.ttlMs - vitals.renewP99Ms;
}
