/** The fleet as operators see it: a picture, and the changes that make it the next one. */
import { startedAtOf } from '../../core/ids.ts';
import type { Explanation } from '../plan/explain.ts';
import type { FleetMember, Vitals } from '../view/member.ts';

export interface MemberView {
  readonly id: string;
  /** The readable part of its id. */
  readonly name: string;
  readonly weight: number;
  readonly isDraining: boolean;
  readonly isForeign: boolean;
  /** How many targets it owns according to the store, and how many it should. */
  readonly owned: number;
  readonly quota: number;
  /** How long until its heartbeat expires, and how long one lasts: its age is the difference. */
  readonly expiresInMs: number;
  readonly beatTtlMs: number | null;
  /** Of Holdfast; null where the heartbeat does not say. */
  readonly version: string | null;
  /** When it was started, in milliseconds since 1970; null where its id does not say. */
  readonly startedAt: number | null;
  /** How the instance is doing; null where the heartbeat does not say. */
  readonly vitals: Vitals | null;
}

/**
 * Why a target is where it is. `late`: its owner has a heartbeat, but did not renew its lease in
 * time. `paused`: no instance should own it. The others as in `Explanation`.
 */
export type TargetReason = Explanation['reason'] | 'late' | 'paused';

/** One target in a picture. */
export interface PicturedTarget {
  readonly id: string;
  /** The owner according to the store; null for none. */
  readonly owner: string | null;
  /** The member that should own it. */
  readonly planned: string | null;
  /** The member that it prefers of those that may own targets. */
  readonly preferred: string | null;
  /** The member that an operator has moved it to. */
  readonly pinned: string | null;
  readonly reason: TargetReason;
  /** Of the lease, or of the bar on it; null where there is none. Infinity: it never expires. */
  readonly expiresInMs: number | null;
}

export interface FleetPicture {
  /** When the store was read, in milliseconds since 1970. */
  readonly at: number;
  /** How long the last requests to the store took: the median. */
  readonly roundTripMs: number;
  /** In order of id, and so are the targets. */
  readonly members: readonly MemberView[];
  readonly targets: readonly PicturedTarget[];
}

/** The difference to the picture, or the change, before. */
export interface FleetChange {
  readonly at: number;
  readonly roundTripMs: number;
  /** All members; absent where nothing but time has changed. */
  readonly members?: readonly MemberView[];
  /** The targets that are new or have changed. In small fleets renewed ones, too. */
  readonly targets?: readonly PicturedTarget[];
  readonly removed?: readonly string[];
}

/** What a watcher of the fleet gets. */
export type FleetSighting =
  /** First, and once. */
  | { readonly kind: 'picture'; readonly picture: FleetPicture }
  | { readonly kind: 'change'; readonly change: FleetChange }
  /** The store is unavailable; it is tried again. */
  | { readonly kind: 'stalled'; readonly error: unknown }
  | { readonly kind: 'resumed' };

/** The reason in words. `text` is that of the explanation, for the reasons that it has. */
export function whyOf({ reason, owner, expiresInMs }: PicturedTarget, text: string): string {
  if (reason === 'paused') {
    const whose = owner === null ? '' : `; ${owner} releases it`;
    return `it is paused: no instance polls it until it is resumed${whose}.`;
  }
  if (reason !== 'late') return text;
  const left = `${Math.ceil(expiresInMs ?? 0)} ms`;
  return `${owner} has a heartbeat, but did not renew it in time: in ${left} another instance may take it.`;
}

/** Two readings of the same expiry differ by no more than a request takes. */
export const SAME_MS = 50;

export function memberView(
  member: FleetMember,
  owned: number,
  quota: number,
  nowMs: number,
): MemberView {
  const { id, weight, isDraining, isForeign, expiresAtMs, beatTtlMs, version, vitals } = member;
  return {
    id,
    name: nameOf(id),
    weight,
    isDraining,
    isForeign,
    owned,
    quota,
    expiresInMs: expiresAtMs - nowMs,
    beatTtlMs,
    version,
    startedAt: startedAtOf(id),
    vitals,
  };
}

/** Whether nothing but time has changed between two views. A renewed heartbeat is a change. */
export function areSameMembers(
  before: FleetPicture['members'],
  after: FleetPicture['members'],
  elapsedMs: number,
): boolean {
  const areSame = (
    { expiresInMs: a, ...one }: MemberView,
    { expiresInMs: b, ...other }: MemberView,
  ) => !(Math.abs(b + elapsedMs - a) > SAME_MS) && JSON.stringify(one) === JSON.stringify(other);
  return (
    before.length === after.length &&
    before.every((member, i) => areSame(member, after[i] as MemberView))
  );
}

/** Instance ids are read from the right: the name may contain dashes. */
function nameOf(id: string): string {
  return /^(.+)-\d+-[0-9a-f]{8}$/.exec(id)?.[1] ?? id;
}
