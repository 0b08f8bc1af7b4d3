/** What the shapes mean. */
import { STATES } from '../../data/states.ts';
import { NotPreferredMark, PinMark } from './cells.tsx';

export function Legend() {
  return (
    <details class="legend">
      <summary>What the marks mean</summary>
      <dl class="facts">
        <dt>colour, letters</dt>
        <dd>who owns it; the bar, or how full a square is, is what is left of its lease</dd>
        <dt>
          <NotPreferredMark /> or a cut corner
        </dt>
        <dd>it is not with the member that it likes best: all is well, but it may move one day</dd>
        <dt>
          <PinMark /> or a dot
        </dt>
        <dd>somebody has moved it there for good</dd>
        <dt>frame, an→</dt>
        <dd>it has just moved, and who had it before</dd>
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
