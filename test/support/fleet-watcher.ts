import type { Fleet, FleetPicture, FleetSighting } from '../../src/fleet/watch/fleet.ts';

/** One who watches a fleet, and keeps its picture up to date with what it is told. */
export function watcherOf(fleet: Pick<Fleet, 'watch'>) {
  const end = new AbortController();
  const seen: FleetSighting[] = [];
  let picture: FleetPicture | null = null;
  let isOver = false;
  const over = (async () => {
    for await (const sighting of fleet.watch({ signal: end.signal })) {
      seen.push(sighting);
      if (sighting.kind === 'picture') picture = sighting.picture;
      if (sighting.kind === 'change' && picture !== null)
        picture = applied(picture, sighting.change);
    }
    isOver = true;
  })();
  return {
    seen,
    get picture() {
      return picture;
    },
    get isOver() {
      return isOver;
    },
    /** The reason of each target, by id. */
    reasons: () => Object.fromEntries((picture?.targets ?? []).map((one) => [one.id, one.reason])),
    owners: () => Object.fromEntries((picture?.targets ?? []).map((one) => [one.id, one.owner])),
    kinds: () => seen.map(({ kind }) => kind),
    changes: () => seen.flatMap((one) => (one.kind === 'change' ? [one.change] : [])),
    leave: async () => {
      end.abort();
      await over;
    },
  };
}

/** The picture after a change. */
function applied(
  { members, targets }: FleetPicture,
  change: Extract<FleetSighting, { kind: 'change' }>['change'],
): FleetPicture {
  const byId = new Map(targets.map((target) => [target.id, target]));
  for (const id of change.removed ?? []) byId.delete(id);
  for (const target of change.targets ?? []) byId.set(target.id, target);
  return {
    ...{ at: change.at, roundTripMs: change.roundTripMs },
    members: change.members ?? members,
    targets: [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1)),
  };
}
