/** The lanes as a table. */
import { type Gap, lengthOf } from '../../data/gaps.ts';
import { clockTime, exactly } from '../../data/words.ts';
import { Owner } from '../../parts/basics.tsx';
import { ScrollX } from '../../parts/scroll-x.tsx';
import type { Window } from './lane.ts';
import type { Scene } from './scene.ts';

/** More rows than this make a browser slow. */
const MOST_ROWS = 200;

export function TimelineTable({ scene }: { scene: Scene }) {
  scene.reading.version.value;
  const window = scene.window.value;
  const rows = scene.lanes.value.slice(0, MOST_ROWS).flatMap((id) => rowsOf(id, scene, window));
  const shown = rows.slice(0, MOST_ROWS);
  return (
    <ScrollX label="Owners over time">
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">Target</th>
            <th scope="col">Owner</th>
            <th scope="col">From</th>
            <th scope="col">Until</th>
            <th scope="col">No owner for</th>
            <th scope="col">Explanation</th>
          </tr>
        </thead>
        <tbody>{shown}</tbody>
      </table>
      {rows.length > MOST_ROWS && (
        <p class="quiet small">
          The first {MOST_ROWS} of {rows.length} or more rows. Use a filter or a shorter time range
          to see the others.
        </p>
      )}
    </ScrollX>
  );
}

const GAP_WORDS: Readonly<Record<Gap['kind'], string>> = {
  failover: 'failover',
  handover: 'handover',
  revoked: 'revoked',
  paused: 'paused',
  unsaid: 'unknown',
};

function rowsOf(id: string, scene: Scene, { from, to, now }: Window) {
  const gaps = scene.gaps(id);
  return scene.tenures(id).flatMap((tenure) => {
    const { holder, ending, fence } = tenure;
    if ((ending?.at ?? now) < from || (tenure.from ?? 0) > to) return [];
    const gap = gaps.find(
      ({ before }) => before === tenure || (fence !== null && before?.fence === fence),
    );
    return [
      <tr key={`${id} ${fence ?? holder}`}>
        <td class="mono">{id}</td>
        <td>
          <Owner id={holder} />
        </td>
        <td>{tenure.from === null ? 'before the log begins' : clockTime(tenure.from)}</td>
        <td>{ending === null ? 'now' : clockTime(ending.at)}</td>
        <td>{gap === undefined ? '' : exactly(lengthOf(gap, now))}</td>
        <td>
          {gap !== undefined && (
            <button
              type="button"
              onClick={() => {
                scene.chosen.value = { kind: 'gap', gap };
              }}
            >
              {GAP_WORDS[gap.kind]}: why?
            </button>
          )}
        </td>
      </tr>,
    ];
  });
}
