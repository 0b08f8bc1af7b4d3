/** Draws how renewals went. */
import type uPlot from 'uplot';
import type { SeenVitals } from '../../data/vitals-seen.ts';
import { type TimeChart, timeChart } from '../../parts/time-chart.ts';

const LEAST_S = 60;

export function renewalChart(
  box: HTMLElement,
  height: number,
  points: () => readonly SeenVitals[],
): TimeChart {
  return timeChart({
    box,
    height,
    leastS: LEAST_S,
    data: () => dataOf(points()),
    series: (colour) => {
      const line = (name: string, dash?: number[]): uPlot.Series => ({
        stroke: colour(name),
        width: 2,
        points: { show: false },
        ...(dash !== undefined && { dash }),
      });
      return [line('--owner-0'), line('--owner-1', [6, 3]), line('--owner-3', [2, 3])];
    },
  });
}

function dataOf(points: readonly SeenVitals[]): uPlot.AlignedData {
  return [
    points.map(({ at }) => at),
    points.map(({ renewP50Ms }) => renewP50Ms),
    points.map(({ renewP99Ms }) => renewP99Ms),
    points.map(({ loopDelayMs }) => loopDelayMs),
  ];
}
