/**
 * The fleet as the server tells it: one picture, then what changes. Targets are kept in a map that is changed in place, because ten
 * thousand of them would be copied for every change otherwise; `version` says that something did.
 */
import { signal } from '@preact/signals';
import type { ApiMember, ApiTarget, FleetChange } from '../../../src/client/operating-messages.ts';
import { client, messageOf } from './access.ts';
import { followAgain } from './following.ts';
import { hearServerTime } from './server-time.ts';

/** A target, and when the dashboard saw it change. */
export interface SeenTarget extends ApiTarget {
  /** When its lease ends, on the browser's monotonic clock; Infinity for never or none. */
  readonly expiresAtMs: number;
  /** When it last moved while the dashboard was open, and from which owner; null: it has not. */
  readonly movedAtMs: number | null;
  readonly movedFrom: string | null;
}

export interface SeenMember extends ApiMember {
  readonly expiresAtMs: number;
}

export const members = signal<readonly SeenMember[]>([]);
export const targets = new Map<string, SeenTarget>();
/** Grows with every change of `targets`. */
export const version = signal(0);
/** Grows when targets came or went: then they have to be sorted again. */
export const listVersion = signal(0);
/** Told of every target that changes, before `version` grows: for those who keep an order of their own, at the cost of what has changed. */
export const onTarget = new Set<
  (before: SeenTarget | undefined, after: SeenTarget | undefined) => void
>();
/** When the store was last looked at, on the browser's clock; null before the first picture. */
export const seenAtMs = signal<number | null>(null);
export const roundTripMs = signal(0);
/** Why nothing comes: the store does not answer the server, or the server does not answer us. */
export const trouble = signal<string | null>(null);

/** Follows the fleet for as long as the dashboard is open, whatever the server answers in between. */
export async function followFleet(signal: AbortSignal): Promise<void> {
  await followAgain(signal, follow, (error) => {
    if (error !== null) trouble.value = messageOf(error);
  });
}

async function follow(signal: AbortSignal): Promise<void> {
  for await (const one of client.fleetLive({ signal })) {
    if (one.kind === 'stalled') trouble.value = 'The store does not answer the server.';
    else if (one.kind === 'lost') trouble.value = 'The server does not answer.';
    else if (one.kind === 'resumed') trouble.value = null;
    else apply(one.kind === 'picture' ? one.picture : one.change, one.kind === 'picture');
  }
}

function apply(change: FleetChange, isWhole: boolean): void {
  const nowMs = performance.now();
  const { members: told, targets: changed = [], removed = [] } = change;
  const sizeBefore = targets.size;
  const gone = isWhole ? missingFrom(changed) : removed;
  for (const id of gone) replace(id, undefined);
  let isNew = gone.length > 0;
  for (const target of changed) {
    isNew ||= !targets.has(target.id);
    replace(target.id, seen(target, nowMs));
  }
  if (told !== undefined)
    members.value = told.map((member) => ({ ...member, expiresAtMs: nowMs + member.expiresInMs }));
  hearServerTime(change.at, nowMs);
  roundTripMs.value = change.roundTripMs;
  seenAtMs.value = nowMs;
  trouble.value = null;
  if (isNew || targets.size !== sizeBefore) listVersion.value++;
  if (changed.length > 0 || gone.length > 0) version.value++;
}

function replace(id: string, after: SeenTarget | undefined): void {
  const before = targets.get(id);
  if (after === undefined) targets.delete(id);
  else targets.set(id, after);
  for (const listener of onTarget) listener(before, after);
}

function seen(target: ApiTarget, nowMs: number): SeenTarget {
  const before = targets.get(target.id);
  const hasMoved = before !== undefined && before.owner !== target.owner;
  return {
    ...target,
    expiresAtMs:
      target.expiresInMs === null ? Number.POSITIVE_INFINITY : nowMs + target.expiresInMs,
    movedAtMs: hasMoved ? nowMs : (before?.movedAtMs ?? null),
    // A target that had no owner for a moment comes from the owner before that.
    movedFrom: (hasMoved ? before.owner : null) ?? before?.movedFrom ?? null,
  };
}

/** After a reconnection the picture is the truth: what it does not have is gone. */
function missingFrom(all: readonly ApiTarget[]): readonly string[] {
  const there = new Set(all.map(({ id }) => id));
  return [...targets.keys()].filter((id) => !there.has(id));
}
