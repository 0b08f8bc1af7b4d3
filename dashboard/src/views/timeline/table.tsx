/** The same as the lanes, to be read one after the other. */
import { lengthOf } from '../../data/gaps.ts';
import { clockTime, exactly } from '../../data/words.ts';
import { Owner } from '../../parts/basics.tsx';
import type { Window } from './lane.ts';
import type { Scene } from './scene.ts';

/** Of more, a filter helps: whoever reads a table reads it all. */
const MOST_ROWS = 200;

export function TimelineTable({ scene }: { scene: Scene }) {
  scene.reading.version.value;
  const window = scene.window.value;
  const rows = scene.lanes.value.slice(0, MOST_ROWS).flatMap((id) => rowsOf(id, scene, window));
  const shown = rows.slice(0, MOST_ROWS);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section class="scroll-x" aria-label="Who had what" tabIndex={0}>
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">Target</th>
            <th scope="col">Owner</th>
            <th scope="col">From</th>
            <th scope="col">Until</th>
            <th scope="col">Then no owner for</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>{shown}</tbody>
      </table>
      {rows.length > MOST_ROWS && (
        <p class="quiet small">
          The first {MOST_ROWS} of {rows.length} or more. A filter or a shorter window shows the
          others.
        </p>
      )}
    </section>
  );
}

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
        <td>{tenure.from === null ? 'before what was read' : clockTime(tenure.from)}</td>
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
              {gap.kind}: explain
            </button>
          )}
        </td>
      </tr>,
    ];
  });
}
