/**
 * The fleet as JSON. Targets are rows, and a row refers to instances by their index in `names`:
 * otherwise names would be half of the bytes. Each picture and each change has its own `names`, so
 * the client need not remember any.
 */
import type { z } from 'zod';
import type {
  FleetChange,
  FleetPicture,
  MemberView,
  PicturedTarget,
} from '../../../fleet/watch/fleet.ts';
import type { changeSchema, memberSchema, pictureSchema, rowSchema } from './fleet-schemas.ts';

type Row = z.output<typeof rowSchema>;

export function pictureJson(picture: FleetPicture): z.output<typeof pictureSchema> {
  const { at, roundTripMs, members, targets } = picture;
  const names: Indexes = new Map();
  const rows = targets.map((target) => rowOf(target, names));
  return {
    at,
    roundTripMs: rounded(roundTripMs),
    members: members.map(memberJson),
    names: [...names.keys()],
    targets: rows,
  };
}

export function changeJson(change: FleetChange): z.output<typeof changeSchema> {
  const { at, roundTripMs, members, targets, removed } = change;
  const names: Indexes = new Map();
  const rows = targets?.map((target) => rowOf(target, names));
  return {
    at,
    roundTripMs: rounded(roundTripMs),
    members: members?.map(memberJson),
    names: rows === undefined ? undefined : [...names.keys()],
    targets: rows,
    removed: removed === undefined ? undefined : [...removed],
  };
}

export function memberJson(member: MemberView): z.output<typeof memberSchema> {
  const { id, name, weight, isDraining, isForeign, owned, quota, version, startedAt } = member;
  const { expiresInMs, beatTtlMs, vitals } = member;
  return {
    id,
    name,
    weight,
    isDraining,
    isForeign,
    owned,
    quota,
    expiresInMs: Math.round(expiresInMs),
    beatTtlMs,
    version,
    startedAt,
    vitals: vitals === null ? null : { ...vitals },
  };
}

/** Null for a lease that never expires, and where there is none. */
export function expiryJson(expiresInMs: number | null): number | null {
  return expiresInMs === null || !Number.isFinite(expiresInMs) ? null : Math.round(expiresInMs);
}

function rowOf(target: PicturedTarget, names: Indexes): Row {
  // Without a spread: there may be ten thousand rows, and the event loop waits for them.
  return [
    target.id,
    indexOf(names, target.owner),
    indexOf(names, target.planned),
    indexOf(names, target.preferred),
    indexOf(names, target.pinned),
    target.reason,
    expiryJson(target.expiresInMs),
  ];
}

/** The index of each name in `names`; its keys are in that order. */
type Indexes = Map<string, number>;

/** Adds a name that is new. */
function indexOf(names: Indexes, name: string | null): number {
  if (name === null) return -1;
  const index = names.get(name) ?? names.size;
  if (index === names.size) names.set(name, index);
  return index;
}

/** To hundredths of a millisecond. */
function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
