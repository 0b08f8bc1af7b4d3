/**
 * A fleet as JSON. Half of it would be names of instances, each many times over: so targets are rows, and say an instance by its place in a
 * list of names. Every picture and every change has a list of its own, so that none has to be kept.
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
  const names = new Names();
  const rows = targets.map((target) => rowOf(target, names));
  return {
    at,
    roundTripMs: rounded(roundTripMs),
    members: members.map(memberJson),
    names: names.list,
    targets: rows,
  };
}

export function changeJson(change: FleetChange): z.output<typeof changeSchema> {
  const { at, roundTripMs, members, targets, removed } = change;
  const names = new Names();
  const rows = targets?.map((target) => rowOf(target, names));
  return {
    at,
    roundTripMs: rounded(roundTripMs),
    ...(members !== undefined && { members: members.map(memberJson) }),
    ...(rows !== undefined && { names: names.list, targets: rows }),
    ...(removed !== undefined && { removed: [...removed] }),
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

/** Null for what never ends, or is not there. */
export function expiryJson(expiresInMs: number | null): number | null {
  return expiresInMs === null || !Number.isFinite(expiresInMs) ? null : Math.round(expiresInMs);
}

function rowOf(target: PicturedTarget, names: Names): Row {
  // Written out, without spreading: there may be ten thousand of them, and nothing else runs meanwhile.
  return [
    target.id,
    names.placeOf(target.owner),
    names.placeOf(target.planned),
    names.placeOf(target.preferred),
    names.placeOf(target.pinned),
    target.reason,
    expiryJson(target.expiresInMs),
  ];
}

class Names {
  readonly list: string[] = [];
  readonly #places = new Map<string, number>();

  placeOf(name: string | null): number {
    if (name === null) return -1;
    const known = this.#places.get(name);
    if (known !== undefined) return known;
    this.#places.set(name, this.list.length);
    return this.list.push(name) - 1;
  }
}

/** Of a round trip, microseconds are not worth their characters. */
function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
