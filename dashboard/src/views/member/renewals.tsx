/** How fast an instance renews, by its own report, and how that went since the dashboard was opened. */
import { effect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { members, type SeenMember } from '../../data/fleet.ts';
import { marginMs } from '../../data/member-state.ts';
import { theme } from '../../data/theme.ts';
import { vitalsSeen } from '../../data/vitals-seen.ts';
import { spanOf } from '../../data/words.ts';
import { Panel } from '../../parts/basics.tsx';

const HEIGHT = 180;

export function Renewals({ member }: { member: SeenMember }) {
  const { vitals } = member;
  if (vitals === null)
    return (
      <Panel title="Renewals">
        <p class="quiet">
          This instance does not report its renewals: it is a non-Holdfast program, or an older
          version.
        </p>
      </Panel>
    );
  const margin = marginMs(member);
  return (
    <Panel title="Renewals" aside={`TTL ${spanOf(vitals.ttlMs)}`}>
      <dl class="facts">
        <dt>renewed every</dt>
        <dd>{spanOf(vitals.renewEveryMs)}</dd>
        <dt>median (p50)</dt>
        <dd>{figure(vitals.renewP50Ms)}</dd>
        <dt>slow (p99)</dt>
        <dd>{figure(vitals.renewP99Ms)}</dd>
        <dt>margin</dt>
        <dd class={margin !== null && margin <= 0 ? 'bad' : ''}>
          {margin === null ? 'unknown' : `${spanOf(margin)}: TTL minus a slow renewal`}
        </dd>
        <dt>event-loop delay</dt>
        <dd>{figure(vitals.loopDelayMs)} at most in the last minute</dd>
      </dl>
      <Chart id={member.id} />
    </Panel>
  );
}

function figure(ms: number | null): string {
  return ms === null ? 'none yet' : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

/** The chart's code is loaded with the first of them. */
function Chart({ id }: { id: string }) {
  const box = useRef<HTMLDivElement>(null);
  const colours = theme.value;
  useEffect(() => {
    let isOver = false;
    let end = () => {};
    void import('./renewal-chart.ts').then(({ renewalChart }) => {
      if (isOver || box.current === null) return;
      const chart = renewalChart(box.current, HEIGHT, () => vitalsSeen(id));
      const endDrawing = effect(() => {
        members.value;
        chart.draw();
      });
      end = () => {
        endDrawing();
        chart.end();
      };
    });
    return () => {
      isOver = true;
      end();
    };
  }, [id, colours]);
  return (
    <figure class="renewal-chart">
      <div
        ref={box}
        role="img"
        aria-label="Time of renewals since you opened this view, in milliseconds"
      />
      <figcaption class="quiet small">
        <span class="key p50">p50</span> <span class="key p99">p99</span>{' '}
        <span class="key loop">event-loop delay</span>, in ms, since you opened the dashboard
      </figcaption>
    </figure>
  );
}
