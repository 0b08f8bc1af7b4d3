/** A fleet as those see it who operate it: what a picture shows, and how a picture becomes the next one. */
import { startedAtOf } from '../../core/ids.ts';
import type { Vitals } from '../member/vitals.ts';
import type { Explanation } from '../plan/explain.ts';
import type { FleetMember } from '../view/member.ts';

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
  /** Until its heartbeat runs out, and how long one lasts; so it is as old as the difference. Null where it does not say. */
  readonly expiresInMs: number;
  readonly beatTtlMs: number | null;
  /** Of Holdfast; null where it does not say. */
  readonly version: string | null;
  /** When it was started, in milliseconds since 1970; null where its id does not say. */
  readonly startedAt: number | null;
  /** How it is doing, by its own account; null where it does not say. */
  readonly vitals: Vitals | null;
}

/**
 * Why a target is where it is. `late`: its owner lives, but has not renewed it when it should have. `paused`: nobody should have it. The
 * others as an explanation has them.
 */
export type TargetReason = Explanation['reason'] | 'late' | 'paused';

/** One target in a picture. */
export interface PicturedTarget {
  readonly id: string;
  /** Who owns it according to the store; null for nobody. */
  readonly owner: string | null;
  /** Who should own it. */
  readonly planned: string | null;
  /** Whom it likes best of those who take part. */
  readonly preferred: string | null;
  /** Whom an operator has moved it to, for good. */
  readonly pinned: string | null;
  readonly reason: TargetReason;
  /** Of the lease, or of what bars it; null: there is none. Infinity: it never ends. */
  readonly expiresInMs: number | null;
}

export interface FleetPicture {
  /** When the store was looked at, in milliseconds since 1970. */
  readonly at: number;
  /** How long the store took to answer a request, lately. */
  readonly roundTripMs: number;
  /** In order of id, and so are the targets. */
  readonly members: readonly MemberView[];
  readonly targets: readonly PicturedTarget[];
}

/** What is otherwise than in the picture, or the change, before. */
export interface FleetChange {
  readonly at: number;
  readonly roundTripMs: number;
  /** All of them; absent: as they were, but for the time that has gone by. */
  readonly members?: readonly MemberView[];
  /** Those that are new or otherwise than they were. In small fleets also those that were only renewed. */
  readonly targets?: readonly PicturedTarget[];
  readonly removed?: readonly string[];
}

/** What one who watches a fleet gets to see. */
export type FleetSighting =
  /** First of all, and never again. */
  | { readonly kind: 'picture'; readonly picture: FleetPicture }
  | { readonly kind: 'change'; readonly change: FleetChange }
  /** The store can not be asked; it is tried again. */
  | { readonly kind: 'stalled'; readonly error: unknown }
  | { readonly kind: 'resumed' };

/** The reason in words; `text` says it for those reasons that instances know, too. */
export function whyOf({ reason, owner, expiresInMs }: PicturedTarget, text: string): string {
  if (reason === 'paused') {
    const whose = owner === null ? '' : `; ${owner} lets go of it`;
    return `it is paused: nobody polls it until it is resumed${whose}.`;
  }
  if (reason !== 'late') return text;
  const left = `${Math.ceil(expiresInMs ?? 0)} ms`;
  return `${owner} lives, but has not renewed it when it should have: in ${left} another may take it.`;
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
    ...{ id, name: nameOf(id), weight, isDraining, isForeign, owned, quota },
    expiresInMs: expiresAtMs - nowMs,
    ...{ beatTtlMs, version, startedAt: startedAtOf(id), vitals },
  };
}

/** Whether more than time lies between two views of the members. A heartbeat that was renewed is more. */
export function areSameMembers(
  before: FleetPicture['members'],
  after: FleetPicture['members'],
  goneByMs: number,
): boolean {
  const areSame = (
    { expiresInMs: a, ...one }: MemberView,
    { expiresInMs: b, ...other }: MemberView,
  ) => !(Math.abs(b + goneByMs - a) > SAME_MS) && JSON.stringify(one) === JSON.stringify(other);
  return (
    before.length === after.length &&
    before.every((member, i) => areSame(member, after[i] as MemberView))
  );
}

/** Instance ids are read from the right: the name may contain dashes. */
function nameOf(id: string): string {
  return /^(.+)-\d+-[0-9a-f]{8}$/.exec(id)?.[1] ?? id;
}
