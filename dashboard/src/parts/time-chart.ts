/** What charts over time have in common: their axes, their colours, and that they fit their box. It brings uPlot along, so it is loaded only where something is drawn. */
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { clockTime } from '../data/words.ts';

export interface TimeChart {
  /** Draws what there is now. */
  draw(): void;
  end(): void;
}

export interface TimeChartParts {
  readonly box: HTMLElement;
  readonly height: number;
  /** How long the axis of time is at least: a few points do not fill it, and of a single one the chart would make years. */
  readonly leastS: number;
  /** Times in seconds first, then a row per series. */
  data(): uPlot.AlignedData;
  /** `colour` gives that of a token: `--accent`. */
  series(colour: (name: string) => string): uPlot.Series[];
}

export function timeChart({ box, height, leastS, data, series }: TimeChartParts): TimeChart {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour('--ink-2'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { stroke: colour('--line'), width: 1 },
  };
  const options: uPlot.Options = {
    width: Math.max(1, box.clientWidth),
    height,
    legend: { show: false },
    cursor: { show: false },
    axes: [
      { ...axis, space: 70, values: (_chart, all) => all.map(timeOf) },
      { ...axis, size: 60, values: (_chart, all) => all.map(lengthOf) },
    ],
    scales: {
      x: { range: () => spanOf(data()[0], leastS) },
      y: { range: (_chart, _least, most) => [0, Math.max(1, (most ?? 1) * 1.15)] },
    },
    series: [{}, ...series(colour)],
  };
  const chart = new uPlot(options, data(), box);
  const observer = new ResizeObserver(() => {
    if (box.clientWidth > 0) chart.setSize({ width: box.clientWidth, height });
  });
  observer.observe(box);
  return {
    draw: () => chart.setData(data()),
    end: () => {
      observer.disconnect();
      chart.destroy();
    },
  };
}

/** Short enough for the axis: `250 ms`, `1.5 s`. */
function lengthOf(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${ms / 1_000} s`;
}

function timeOf(atS: number): string {
  return clockTime(atS * 1_000).slice(0, 8);
}

function spanOf(timesS: uPlot.AlignedData[0], leastS: number): [number, number] {
  const last = timesS[timesS.length - 1] ?? 0;
  return [Math.min(timesS[0] ?? 0, last - leastS), last];
}
