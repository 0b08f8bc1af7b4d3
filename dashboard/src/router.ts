/**
 * The current view, kept behind the `#` of the address. So the files work under any path of a server, and a link shows another user the same
 * view with the same filters.
 */
import { computed, signal } from '@preact/signals';

export interface Place {
  /** The view: `members`; '' for the map. */
  readonly view: string;
  /** What of it: the id in `#/members/ana`; null for all. */
  readonly id: string | null;
  readonly query: URLSearchParams;
}

const hash = signal(location.hash);
addEventListener('hashchange', () => {
  hash.value = location.hash;
});

export const place = computed(() => placeOf(hash.value));

function placeOf(text: string): Place {
  const [path = '', search = ''] = text.replace(/^#\/?/, '').split('?');
  const [view = '', ...rest] = path.split('/');
  return {
    view,
    id: rest.length === 0 ? null : decoded(rest.join('/')),
    query: new URLSearchParams(search),
  };
}

/** The address of a place, for links. */
export function hrefOf(
  view: string,
  id?: string,
  query?: Readonly<Record<string, string>>,
): string {
  const path = id === undefined ? view : `${view}/${encodeURIComponent(id)}`;
  const search = new URLSearchParams(query).toString();
  return `#/${path}${search === '' ? '' : `?${search}`}`;
}

export function go(href: string): void {
  location.hash = href;
}

/** Changes what stands behind `?`, without a step in the history; empty values are left out. */
export function setQuery(changes: Readonly<Record<string, string>>): void {
  const { view, id, query } = place.value;
  const all = { ...Object.fromEntries(query), ...changes };
  const kept = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
  history.replaceState(null, '', hrefOf(view, id ?? undefined, kept));
  hash.value = location.hash;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
