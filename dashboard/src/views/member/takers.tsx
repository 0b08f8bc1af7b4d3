import { Owner } from '../../parts/basics.tsx';
import type { Heirs } from './story.ts';

/** To whom its targets went. */
export function Takers({ heirs }: { heirs: Heirs }) {
  if (heirs.count === 0) return null;
  return (
    <ul class="takers" aria-label="Who has them now">
      {heirs.by.map(([instance, count]) => (
        <li key={instance}>
          <Owner id={instance} /> {count}
        </li>
      ))}
    </ul>
  );
}
