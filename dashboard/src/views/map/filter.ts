/** The filters and the layout of the map, which are part of the address. */
import { computed } from '@preact/signals';
import type { SeenTarget } from '../../data/fleet.ts';
import { counts } from '../../data/lanes.ts';
import { isNotPreferred, placeOnMap } from '../../data/states.ts';
import { place } from '../../router.ts';

/** Up to so many targets are cells with ids, unless the user chooses another layout. */
const ROOMY = 300;
/** More elements than this make a browser slow: then targets are painted on a canvas. */
export const MOST_CELLS = 800;

export type Shape = 'cells' | 'dense' | 'list';

export const FILTER_STATES: Readonly<Record<string, (target: SeenTarget) => boolean>> = {
  unowned: (target) => target.owner === null && target.reason !== 'paused',
  uncertain: (target) => target.owner !== null && placeOnMap(target) === 'attention',
  moving: ({ reason, owner, planned }) => reason === 'moving' || (owner !== planned && !!planned),
  'not preferred': isNotPreferred,
  pinned: ({ pinned }) => pinned !== null,
  paused: ({ reason }) => reason === 'paused',
  foreign: ({ reason }) => reason === 'foreign',
};

export interface Filter {
  readonly text: string;
  readonly state: string;
  readonly member: string;
}

export const filter = computed<Filter>(() => {
  const { query } = place.value;
  const get = (name: string) => query.get(name) ?? '';
  return { text: get('q'), state: get('state'), member: get('member') };
});

export const isFiltered = computed(() => Object.values(filter.value).some((value) => value !== ''));

export const shape = computed<Shape>(() => {
  const asked = place.value.query.get('as');
  if (asked === 'list' || asked === 'dense') return asked;
  const most = asked === 'cells' ? MOST_CELLS : ROOMY;
  return counts.value.all <= most ? 'cells' : 'dense';
});

/** The targets that match the filter; without a filter, the same list. */
export function wanted(items: readonly SeenTarget[]): readonly SeenTarget[] {
  if (!isFiltered.value) return items;
  const { text, state, member } = filter.value;
  const lower = text.toLowerCase();
  const isState = Object.hasOwn(FILTER_STATES, state) ? FILTER_STATES[state] : undefined;
  return items.filter(
    (target) =>
      (lower === '' || target.id.toLowerCase().includes(lower)) &&
      (isState === undefined || isState(target)) &&
      (member === '' || target.owner === member),
  );
}
