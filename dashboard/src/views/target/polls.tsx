/** The polls of a target: how long they took, which failed, and the last result. */
import { useEffect, useRef } from 'preact/hooks';
import type { PollSample, TargetDetail } from '../../../../src/client/operating-messages.ts';
import { theme } from '../../data/theme.ts';
import { clockTime, counted, moment, spanOf } from '../../data/words.ts';
import { Owner, Panel } from '../../parts/basics.tsx';
import { Icon } from '../../parts/icon.tsx';
import { gathered, summaryOf } from './polls.ts';

const HEIGHT = 190;
/** Longer values are cut; the command line has all of them. */
const MOST_SHOWN = 4_000;
const MOST_ROWS = 30;

export function Polls({ target }: { target: TargetDetail }) {
  const samples = useRef<readonly PollSample[]>([]);
  samples.current = gathered(samples.current, target.recent);
  const { everyMs } = target;
  return (
    <Panel title="Polls" aside={everyMs === null ? undefined : `every ${spanOf(everyMs)}`}>
      {samples.current.length === 0 ? (
        <p class="quiet">No instance has polled it yet, or its owner keeps no results.</p>
      ) : (
        <>
          <Sum samples={samples.current} />
          <Chart samples={() => samples.current} />
          <details>
            <summary class="quiet small">Show as a table</summary>
            <SampleTable samples={samples.current} />
          </details>
        </>
      )}
      <LastResult target={target} />
    </Panel>
  );
}

function Sum({ samples }: { samples: readonly PollSample[] }) {
  const { count, failed, middleMs, slowestMs } = summaryOf(samples);
  return (
    <p class="polls-sum">
      {counted(count, 'poll')} since {moment(samples[0]?.at ?? 0)}:{' '}
      {failed === 0 ? 'none failed' : <strong class="bad">{failed} failed</strong>}
      {middleMs !== null && `, median ${Math.round(middleMs)} ms`}
      {slowestMs !== null && `, slowest ${Math.round(slowestMs)} ms`}.
    </p>
  );
}

/** The chart's code is loaded with the first of them. */
function Chart({ samples }: { samples: () => readonly PollSample[] }) {
  const box = useRef<HTMLDivElement>(null);
  const draw = useRef<(() => void) | null>(null);
  const colours = theme.value;
  useEffect(() => {
    let isOver = false;
    let end = () => {};
    void import('./poll-chart.ts').then(({ pollChart }) => {
      if (isOver || box.current === null) return;
      const chart = pollChart(box.current, HEIGHT, samples);
      draw.current = chart.draw;
      end = chart.end;
    });
    return () => {
      isOver = true;
      draw.current = null;
      end();
    };
  }, [colours]);
  useEffect(() => draw.current?.());
  return (
    <figure class="poll-chart">
      <div ref={box} role="img" aria-label="How long polls took, in milliseconds, over time" />
      <figcaption class="quiet small">
        <span class="key ok">
          <Icon name="dot" /> succeeded
        </span>{' '}
        <span class="key failed">
          <Icon name="ring" /> failed
        </span>
      </figcaption>
    </figure>
  );
}

function SampleTable({ samples }: { samples: readonly PollSample[] }) {
  return (
    <table class="rows">
      <thead>
        <tr>
          <th scope="col">At</th>
          <th scope="col">Took</th>
          <th scope="col">Result</th>
        </tr>
      </thead>
      <tbody>
        {samples
          .slice(-MOST_ROWS)
          .reverse()
          .map(({ at, tookMs, ok }) => (
            <tr key={at}>
              <td class="mono">{clockTime(at)}</td>
              <td>{Math.round(tookMs)} ms</td>
              <td class={ok ? '' : 'bad'}>{ok ? 'succeeded' : 'failed'}</td>
            </tr>
          ))}
      </tbody>
    </table>
  );
}

function LastResult({ target: { lastResult } }: { target: TargetDetail }) {
  if (lastResult === null) return null;
  const { at, by, ok, tookMs, error, value, failures = 0, nextAt } = lastResult;
  const again = nextAt === undefined ? '' : ` Tried again at ${moment(nextAt)}.`;
  const times = failures > 1 ? ` ${failures} times in a row.` : '';
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, 2);
  return (
    <div class="last-result">
      <p>
        Last poll, by <Owner id={by} /> at {moment(at)},{' '}
        {ok ? 'succeeded' : <strong class="bad">failed</strong>} in {Math.round(tookMs)} ms
        {error === undefined ? '.' : `: ${error}`}
        {times}
        {again}
      </p>
      {text !== undefined && (
        <pre class="mono small">
          {text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)} …` : text}
        </pre>
      )}
    </div>
  );
}
