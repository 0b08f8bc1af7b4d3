/** Who had what, over time: a lane per target or per member, gaps with their length, and why they are as long as that. */
import { useEffect, useMemo } from 'preact/hooks';
import '../style/timeline.css';
import { counted, moment } from '../data/words.ts';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty } from '../parts/basics.tsx';
import { place, setQuery } from '../router.ts';
import { Chart, heightOf } from './timeline/chart.tsx';
import { ChosenPanel } from './timeline/chosen.tsx';
import { Scene } from './timeline/scene.ts';
import { panned, WINDOWS, zoomed } from './timeline/span.ts';
import { Legend } from './timeline/symbols.tsx';
import { TimelineTable } from './timeline/table.tsx';

export function TimelineView() {
  const scene = useMemo(() => new Scene(), []);
  useEffect(() => {
    scene.start();
    return () => scene.stop();
  }, [scene]);
  const isTable = place.value.query.get('as') === 'table';
  return (
    <>
      <div class="view-head">
        <h1>Timeline</h1>
        <Range scene={scene} />
        <span class="push" />
        <Filters scene={scene} />
      </div>
      <Controls scene={scene} isTable={isTable} />
      {scene.reading.trouble.value !== null && (
        <p class="notice bad" role="alert">
          The log could not be read: {scene.reading.trouble.value}
        </p>
      )}
      <Body scene={scene} isTable={isTable} />
      <Legend />
    </>
  );
}

function Body({ scene, isTable }: { scene: Scene; isTable: boolean }) {
  const lanes = scene.lanes.value.length;
  const isChosen = scene.chosen.value !== null;
  if (lanes === 0) return <Nothing scene={scene} />;
  return (
    <div class={isChosen ? 'tl-split' : ''}>
      {isTable ? (
        <TimelineTable scene={scene} />
      ) : (
        <div class="panel tl-panel" style={{ '--tl-height': heightOf(lanes) }}>
          <Chart scene={scene} />
        </div>
      )}
      <ChosenPanel scene={scene} />
    </div>
  );
}

function Nothing({ scene }: { scene: Scene }) {
  if (scene.filter.value !== '' || scene.isChangedOnly.value)
    return (
      <Empty title="Nothing is left by the filter.">
        <button type="button" onClick={() => setQuery({ q: '', changed: '' })}>
          Show all lanes
        </button>
      </Empty>
    );
  return (
    <Empty title="There is nothing to be owned yet.">
      Add something to poll; who has it, and when it changes hands, shows here.
      <AsCli command="holdfast sessions add http://127.0.0.1:8080/health --id device-1 --every 5s" />
    </Empty>
  );
}

function Range({ scene }: { scene: Scene }) {
  const { from, to } = scene.window.value;
  const isFollowing = scene.span.value.until === null;
  return (
    <span class="quiet">
      {moment(from)} – {isFollowing ? 'now' : moment(to)} ·{' '}
      {counted(scene.lanes.value.length, 'lane')}
    </span>
  );
}

function Filters({ scene }: { scene: Scene }) {
  return (
    <>
      <input
        type="search"
        data-search
        aria-label="Only lanes whose names contain"
        placeholder="filter lanes  /"
        value={scene.filter.value}
        onInput={({ currentTarget }) => setQuery({ q: currentTarget.value })}
      />
      {scene.by.value === 'target' && (
        <label class="check">
          <input
            type="checkbox"
            checked={scene.isChangedOnly.value}
            onChange={({ currentTarget }) =>
              setQuery({ changed: currentTarget.checked ? '1' : '' })
            }
          />
          only what changed hands
        </label>
      )}
    </>
  );
}

function Controls({ scene, isTable }: { scene: Scene; isTable: boolean }) {
  const { span } = scene;
  const at = () => scene.window.peek().now;
  const isFollowing = span.value.until === null;
  return (
    <div class="tl-controls">
      <fieldset class="segments" aria-label="A lane for each">
        {(['target', 'member'] as const).map((by) => (
          <button
            key={by}
            type="button"
            aria-pressed={scene.by.value === by}
            onClick={() => setQuery({ by: by === 'member' ? by : '' })}
          >
            {by}s
          </button>
        ))}
      </fieldset>
      <fieldset class="segments" aria-label="Length of the window">
        {WINDOWS.map(([name, lengthMs]) => (
          <button
            key={name}
            type="button"
            aria-pressed={span.value.lengthMs === lengthMs}
            onClick={() => scene.move({ ...span.peek(), lengthMs })}
          >
            {name}
          </button>
        ))}
      </fieldset>
      <fieldset class="segments" aria-label="Move the window">
        <button
          type="button"
          aria-label="Back"
          onClick={() => scene.move(panned(span.peek(), -0.5, at()))}
        >
          ◀
        </button>
        <button
          type="button"
          aria-label="Zoom in"
          onClick={() => scene.move(zoomed(span.peek(), 0.5, isFollowing ? 1 : 0.5, at()))}
        >
          +
        </button>
        <button
          type="button"
          aria-label="Zoom out"
          onClick={() => scene.move(zoomed(span.peek(), 2, 0.5, at()))}
        >
          −
        </button>
        <button
          type="button"
          aria-label="Forward"
          disabled={isFollowing}
          onClick={() => scene.move(panned(span.peek(), 0.5, at()))}
        >
          ▶
        </button>
        <button
          type="button"
          aria-pressed={isFollowing}
          onClick={() =>
            scene.move({ ...span.peek(), until: isFollowing ? Math.round(at()) : null })
          }
        >
          {isFollowing ? '● follows now' : 'follow now'}
        </button>
      </fieldset>
      <span class="push" />
      <button
        type="button"
        aria-pressed={isTable}
        onClick={() => setQuery({ as: isTable ? '' : 'table' })}
      >
        {isTable ? 'As lanes' : 'As a table'}
      </button>
    </div>
  );
}
