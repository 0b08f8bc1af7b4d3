/** What the marks mean. It opens above the lanes, where the inspector at the bottom of the screen does not cover it. */
import { STATES } from '../../data/states.ts';
import { NotPreferredMark, PinMark } from './cells.tsx';

export function Legend() {
  return (
    <details class="legend">
      <summary>Legend</summary>
      <dl class="facts">
        <dt>Colour, letters</dt>
        <dd>The owner. The bar, or how full a square is, shows how much of the lease is left.</dd>
        <dt>
          <NotPreferredMark /> or a cut corner
        </dt>
        <dd>
          Not preferred: another instance is the better place for this target. It works, and may
          move later.
        </dd>
        <dt>
          <PinMark /> or a dot
        </dt>
        <dd>Pinned: an operator has moved this target here, and it stays.</dd>
        <dt>Frame</dt>
        <dd>This target has just moved. The letters are those of its former owner.</dd>
        {Object.entries(STATES).map(([reason, { word, letter, why }]) =>
          letter === '' ? null : (
            <>
              <dt key={reason}>
                <b class="mono">{letter}</b> {word}
              </dt>
              <dd>{why}</dd>
            </>
          ),
        )}
      </dl>
    </details>
  );
}
