/**
 * Targets in the order of the map: a lane per owner, one for targets that need attention, one for paused targets. Kept up
 * with each change, so that a change costs what has changed, not what there is.
 */
import { effect, type Signal, signal, untracked } from '@preact/signals';
import { members, onTarget, type SeenTarget, targets, version } from './fleet.ts';
import { isNotPreferred, levelOf, placeOnMap } from './states.ts';

/** Some targets in order of id; changed in place, and `version` says so. */
export class Lane {
  readonly items: SeenTarget[] = [];
  readonly version: Signal<number> = signal(0);

  put(target: SeenTarget): void {
    const at = this.#find(target.id);
    this.items.splice(at, this.items[at]?.id === target.id ? 1 : 0, target);
  }

  remove(id: string): void {
    const at = this.#find(id);
    if (this.items[at]?.id === id) this.items.splice(at, 1);
  }

  /** Where it is, or would be. */
  #find(id: string): number {
    let low = 0;
    let high = this.items.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.items[middle]?.id ?? '') < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export interface Counts {
  readonly all: number;
  readonly owned: number;
  /** They have no owner, and should. */
  readonly unowned: number;
  /** Their owners may lose them. */
  readonly uncertain: number;
  /** Of these: the owner shows no sign of life. */
  readonly orphaned: number;
  readonly notPreferred: number;
  readonly paused: number;
}

export const all = new Lane();
export const attention = new Lane();
export const paused = new Lane();
export const owners = new Map<string, Lane>();
/** How many each might lose; changes with `attention`. */
export const doubtful = new Map<string, number>();
/** Grows when an owner came that had nothing before, or one that is gone has nothing any more. */
export const ownersVersion = signal(0);

const changed = new Set<Lane>();
const tally = { owned: 0, unowned: 0, uncertain: 0, orphaned: 0, notPreferred: 0 };
let areOwnersOther = false;

export const counts = signal<Counts>(countsOf());

export function laneOf(owner: string): Lane {
  let lane = owners.get(owner);
  if (lane === undefined) {
    lane = new Lane();
    owners.set(owner, lane);
    areOwnersOther = true;
  }
  return lane;
}

/** All that a member owns, also what it might lose. */
export function ownedBy(owner: string): readonly SeenTarget[] {
  const doubtful = attention.items.filter((target) => target.owner === owner);
  const sure = owners.get(owner)?.items ?? [];
  if (doubtful.length === 0) return sure;
  return [...sure, ...doubtful].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function replace(before: SeenTarget | undefined, after: SeenTarget | undefined): void {
  if (before !== undefined) {
    count(before, -1);
    const lane = laneFor(before);
    changed.add(lane);
    if (after === undefined || laneFor(after) !== lane) lane.remove(before.id);
    if (after === undefined) all.remove(before.id);
  }
  if (after !== undefined) {
    count(after, 1);
    const lane = laneFor(after);
    changed.add(lane);
    lane.put(after);
    all.put(after);
  }
}

function laneFor(target: SeenTarget): Lane {
  const where = placeOnMap(target);
  if (where === 'paused') return paused;
  return where === 'attention' || target.owner === null ? attention : laneOf(target.owner);
}

function count(target: SeenTarget, by: 1 | -1): void {
  const where = placeOnMap(target);
  if (where !== 'paused') tally[target.owner === null ? 'unowned' : 'owned'] += by;
  if (where === 'attention' && target.owner !== null) {
    tally.uncertain += by;
    if (levelOf(target) === 'bad') tally.orphaned += by;
    const left = (doubtful.get(target.owner) ?? 0) + by;
    if (left === 0) doubtful.delete(target.owner);
    else doubtful.set(target.owner, left);
  }
  if (isNotPreferred(target)) tally.notPreferred += by;
}

function countsOf(): Counts {
  return { all: all.items.length, paused: paused.items.length, ...tally };
}

function tell(): void {
  counts.value = countsOf();
  for (const lane of changed) lane.version.value++;
  if (changed.size > 0) all.version.value++;
  changed.clear();
  forgetThoseGone();
  if (areOwnersOther) ownersVersion.value++;
  areOwnersOther = false;
}

function forgetThoseGone(): void {
  for (const [owner, lane] of owners) {
    if (lane.items.length > 0 || members.value.some(({ id }) => id === owner)) continue;
    owners.delete(owner);
    areOwnersOther = true;
  }
}

// For as long as the dashboard is open, once a view has asked. A change costs what has changed.
for (const target of targets.values()) replace(undefined, target);
onTarget.add(replace);
effect(() => {
  version.value;
  untracked(tell);
});
