import { Owner } from '../../parts/basics.tsx';
import type { Heirs } from './story.ts';

/** Which instances took its targets. */
export function Takers({ heirs }: { heirs: Heirs }) {
  if (heirs.count === 0) return null;
  return (
    <ul class="takers" aria-label="New owners">
      {heirs.by.map(([instance, count]) => (
        <li key={instance}>
          <Owner id={instance} /> {count}
        </li>
      ))}
    </ul>
  );
}
