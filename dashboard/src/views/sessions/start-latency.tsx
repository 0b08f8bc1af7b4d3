import { useEffect, useRef, useState } from 'preact/hooks';
import { client } from '../../data/access.ts';
import { useArrivals } from '../../data/arrivals.ts';
import { counted, spanOf } from '../../data/words.ts';
import { Panel } from '../../parts/basics.tsx';
import { BARS_MS, barsOf, quantile, START_EVENTS, StartTimes } from './start-times.ts';

/** How long starts take, as figures and as a small chart. */
export function StartLatency() {
  const times = useRef(new StartTimes());
  const [tookMs, setTookMs] = useState<readonly number[]>([]);
  useEffect(() => {
    const end = new AbortController();
    client.history({ event: START_EVENTS, limit: 1_000 }, { signal: end.signal }).then(
      ({ events }) => {
        times.current.add([...events].reverse());
        setTookMs(times.current.tookMs);
      },
      // What comes from now on is counted all the same.
      () => {},
    );
    return () => end.abort();
  }, []);
  useArrivals(START_EVENTS, (come) => {
    times.current.add(come);
    setTookMs(times.current.tookMs);
  });
  return (
    <Panel title="Start latency" aside="from accepted to running">
      {tookMs.length === 0 ? (
        <p class="quiet">The log has no starts.</p>
      ) : (
        <Chart tookMs={tookMs} />
      )}
    </Panel>
  );
}

function Chart({ tookMs }: { tookMs: readonly number[] }) {
  const bars = barsOf(tookMs);
  const highest = Math.max(...bars);
  const p50 = spanOf(quantile(tookMs, 0.5) ?? 0);
  const p95 = spanOf(quantile(tookMs, 0.95) ?? 0);
  return (
    <>
      <p>
        Median <strong>{p50}</strong>, p95 <strong>{p95}</strong>, of{' '}
        {counted(tookMs.length, 'start')}.
      </p>
      <div class="start-bars" role="img" aria-label={`p50 ${p50}, p95 ${p95}`}>
        {bars.map((count, i) => (
          <div key={BARS_MS[i]} title={`${counted(count, 'start')} up to ${endOf(i)}`}>
            <span>{count > 0 && count}</span>
            <i style={{ height: `${Math.ceil((count / highest) * 48)}px` }} />
            <span>{endOf(i)}</span>
          </div>
        ))}
      </div>
    </>
  );
}

function endOf(i: number): string {
  const ms = BARS_MS[i] ?? 0;
  if (!Number.isFinite(ms)) return 'more';
  return ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`;
}
