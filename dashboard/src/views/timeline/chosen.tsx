/** The explanation of what the user has chosen. */
import { useEffect, useRef } from 'preact/hooks';
import type { Gap } from '../../data/gaps.ts';
import { sentenceFor } from '../../data/sentence.ts';
import { clockTime, exactly, moment } from '../../data/words.ts';
import { Owner } from '../../parts/basics.tsx';
import { Icon } from '../../parts/icon.tsx';
import { hrefOf } from '../../router.ts';
import { ExplanationText } from './explanation.tsx';
import type { Scene } from './scene.ts';
import { around } from './span.ts';
import { Glyph, SYMBOLS } from './symbols.tsx';

/** Told at once; of more, the first so many. */
const MOST_LISTED = 50;

export function ChosenPanel({ scene }: { scene: Scene }) {
  const chosen = scene.chosen.value;
  const panel = useRef<HTMLElement>(null);
  // On a narrow screen it is below the lanes.
  useEffect(() => panel.current?.scrollIntoView({ block: 'nearest' }), [chosen]);
  if (chosen === null) return null;
  const close = () => {
    scene.chosen.value = null;
  };
  return (
    <aside class="panel tl-chosen" aria-label="Explanation" aria-live="polite" ref={panel}>
      {chosen.kind === 'gap' && <GapText gap={chosen.gap} scene={scene} />}
      {chosen.kind === 'gaps' && <GapList gaps={chosen.gaps} scene={scene} />}
      {chosen.kind === 'marks' && (
        <>
          <h2>Events</h2>
          <ul class="tl-list">
            {chosen.marks.slice(0, MOST_LISTED).map((mark) => (
              <li key={mark.entry.position}>
                <Glyph kind={mark.kind} />
                <div>
                  <span class="quiet small mono">{clockTime(mark.at)}</span>{' '}
                  <span class="small">{SYMBOLS[mark.kind].name}</span>
                  <div>
                    <Owner id={mark.entry.instance} /> {sentenceFor(mark.entry)}
                    {mark.until !== null && Number.isFinite(mark.until) && (
                      <span class="quiet"> ({exactly(mark.until - mark.at)})</span>
                    )}
                  </div>
                  {mark.target !== null && (
                    <a href={hrefOf('targets', mark.target)}>{mark.target}</a>
                  )}
                </div>
              </li>
            ))}
          </ul>
        </>
      )}
      <button
        type="button"
        class="plain tl-close"
        onClick={close}
        aria-label="Close the explanation"
      >
        <Icon name="cross" />
      </button>
    </aside>
  );
}

function GapText({ gap, scene }: { gap: Gap; scene: Scene }) {
  scene.reading.version.value;
  // What was chosen while it lasted may be over by now.
  const fresh = scene.gaps(gap.target).find(({ before }) => before?.fence === gap.before?.fence);
  const shown = gap.until === null && fresh !== undefined ? fresh : gap;
  const { target, from, until, before, after } = shown;
  const explanation = scene.explain(shown);
  const zoom = () => scene.move(around(from, until ?? scene.wallNow(), scene.wallNow()));
  return (
    <>
      <h2>{explanation.title}</h2>
      <p class="tl-who">
        <Owner id={before?.holder ?? null} /> <Icon name="right" />
        <span class="visually-hidden">to</span> <Owner id={after?.holder ?? null} />
        <span class="quiet small">{moment(from)}</span>
      </p>
      <ExplanationText of={explanation} />
      <div class="buttons">
        <button type="button" onClick={zoom}>
          Zoom in
        </button>
        <a class="button" href={hrefOf('targets', target)}>
          Open target
        </a>
        <a class="button" href={hrefOf('feed', undefined, { target })}>
          Show events
        </a>
      </div>
    </>
  );
}

function GapList({ gaps, scene }: { gaps: readonly Gap[]; scene: Scene }) {
  return (
    <>
      <h2>{gaps.length} changes of owner</h2>
      <p class="quiet small">They are too close together to be drawn one by one.</p>
      <ul class="tl-list">
        {gaps.slice(0, MOST_LISTED).map((gap) => (
          <li key={gap.from}>
            <button
              type="button"
              onClick={() => {
                scene.chosen.value = { kind: 'gap', gap };
              }}
            >
              {clockTime(gap.from)} {scene.explain(gap).title}
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}
