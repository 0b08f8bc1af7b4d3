/** Who owned what, over time: a lane per target or per instance, and gaps with their length and explanation. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import '../style/timeline.css';
import { messageOf } from '../data/access.ts';
import { saveReport } from '../data/report-file.ts';
import { counted, moment } from '../data/words.ts';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty } from '../parts/basics.tsx';
import { Icon } from '../parts/icon.tsx';
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
          The server could not read the log: {scene.reading.trouble.value}
        </p>
      )}
      <Body scene={scene} isTable={isTable} />
      {scene.lanes.value.length > 0 && <Legend />}
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
      <Empty title="No lane matches these filters.">
        <button type="button" onClick={() => setQuery({ q: '', changed: '' })}>
          Clear filters
        </button>
      </Empty>
    );
  return (
    <Empty title="The fleet has no targets yet.">
      Add a target. Its owners, past and present, show up here.
      <AsCli command="holdfast targets add http://127.0.0.1:8080/health --id device-1 --every 5s" />
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
        aria-label="Filter lanes by name"
        placeholder="Filter by name  /"
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
          only targets that moved
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
      <fieldset class="segments" aria-label="One lane per">
        {(['target', 'member'] as const).map((by) => (
          <button
            key={by}
            type="button"
            aria-pressed={scene.by.value === by}
            onClick={() => setQuery({ by: by === 'member' ? by : '' })}
          >
            {by === 'member' ? 'Instances' : 'Targets'}
          </button>
        ))}
      </fieldset>
      <fieldset class="segments" aria-label="Time range">
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
      <fieldset class="segments" aria-label="Move and zoom">
        <button
          type="button"
          aria-label="Back"
          onClick={() => scene.move(panned(span.peek(), -0.5, at()))}
        >
          <Icon name="back" />
        </button>
        <button
          type="button"
          aria-label="Zoom in"
          onClick={() => scene.move(zoomed(span.peek(), 0.5, isFollowing ? 1 : 0.5, at()))}
        >
          <Icon name="plus" />
        </button>
        <button
          type="button"
          aria-label="Zoom out"
          onClick={() => scene.move(zoomed(span.peek(), 2, 0.5, at()))}
        >
          <Icon name="minus" />
        </button>
        <button
          type="button"
          aria-label="Forward"
          disabled={isFollowing}
          onClick={() => scene.move(panned(span.peek(), 0.5, at()))}
        >
          <Icon name="forward" />
        </button>
        <button
          type="button"
          aria-pressed={isFollowing}
          onClick={() =>
            scene.move({ ...span.peek(), until: isFollowing ? Math.round(at()) : null })
          }
        >
          {isFollowing && <Icon name="dot" />}
          {isFollowing ? 'Live' : 'Go live'}
        </button>
      </fieldset>
      <span class="push" />
      <button
        type="button"
        aria-pressed={isTable}
        onClick={() => setQuery({ as: isTable ? '' : 'table' })}
      >
        {isTable ? 'Show lanes' : 'Show table'}
      </button>
      <DownloadReport scene={scene} />
    </div>
  );
}

/** The time that is shown, as one page to keep or to send: the same that `holdfast report` writes. */
function DownloadReport({ scene }: { scene: Scene }) {
  const state = useSignal<'idle' | 'busy' | string>('idle');
  const download = async () => {
    const { from, to } = scene.window.peek();
    state.value = 'busy';
    try {
      await saveReport(from, to);
      state.value = 'idle';
    } catch (error) {
      state.value = messageOf(error);
    }
  };
  return (
    <>
      <button type="button" disabled={state.value === 'busy'} onClick={download}>
        {state.value === 'busy' ? 'Preparing …' : 'Download report'}
      </button>
      {state.value !== 'idle' && state.value !== 'busy' && (
        <span class="bad" role="alert">
          The report could not be made: {state.value}
        </span>
      )}
    </>
  );
}
