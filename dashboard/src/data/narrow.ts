/** Whether the screen is as narrow as a phone: rows of long lists then have several lines. */
import { signal } from '@preact/signals';

const query = matchMedia('(max-width: 760px)');

export const isNarrow = signal(query.matches);

query.addEventListener('change', ({ matches }) => {
  isNarrow.value = matches;
});
