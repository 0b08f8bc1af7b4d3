/** Draws how long polls took, and which failed. */
import type uPlot from 'uplot';
import type { PollSample } from '../../../../src/client/operating-messages.ts';
import { type TimeChart, timeChart } from '../../parts/time-chart.ts';

const LEAST_S = 30;

export function pollChart(
  box: HTMLElement,
  height: number,
  samples: () => readonly PollSample[],
): TimeChart {
  return timeChart({
    box,
    height,
    leastS: LEAST_S,
    data: () => dataOf(samples()),
    series: (colour) => [
      {
        stroke: colour('--accent'),
        width: 2,
        spanGaps: true,
        points: { show: true, size: 5, fill: colour('--accent') },
      },
      {
        // Rings on no line, so that they are told from the others without their colour.
        stroke: colour('--bad'),
        paths: () => null,
        points: { show: true, size: 11, width: 2.5, fill: colour('--bad-ground') },
      },
    ],
  });
}

function dataOf(samples: readonly PollSample[]): uPlot.AlignedData {
  return [
    samples.map(({ at }) => at / 1_000),
    samples.map(({ tookMs, ok }) => (ok ? tookMs : null)),
    samples.map(({ tookMs, ok }) => (ok ? null : tookMs)),
  ];
}
