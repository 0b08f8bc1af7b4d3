import { useRef } from 'preact/hooks';
import { client } from '../../data/access.ts';
import { useArrivals } from '../../data/arrivals.ts';
import { type Asked, useAsked } from '../../data/asked.ts';
import { type Refusals, refusalsOf, VIOLATION, withRefusals } from './refusals.ts';

/** So many requests read the last 20,000 events; on demand, the whole log. */
const FIRST_PAGES = 4;
const ALL_PAGES = 100;

/** Those the log knows, and those that come. `lookFurther` goes back as far as the log does. */
export function useRefusals(): Asked<Refusals> & { lookFurther(): void } {
  const pages = useRef(FIRST_PAGES);
  const asked = useAsked({
    ask: (signal) => refusalsOf((query) => client.history(query, { signal }), pages.current),
  });
  useArrivals([VIOLATION], (come) => asked.patch((known) => withRefusals(known, come)));
  return {
    ...asked,
    lookFurther() {
      pages.current = ALL_PAGES;
      asked.again();
    },
  };
}
