/** How fast a member renews, as it says itself, and how that went since the page was opened. */
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
          It does not say how long its renewals take: it is of another make, or older.
        </p>
      </Panel>
    );
  const margin = marginMs(member);
  return (
    <Panel title="Renewals" aside={`a lease lasts ${spanOf(vitals.ttlMs)}`}>
      <dl class="facts">
        <dt>renewed every</dt>
        <dd>{spanOf(vitals.renewEveryMs)}</dd>
        <dt>half take at most</dt>
        <dd>{figure(vitals.renewP50Ms)}</dd>
        <dt>99 of 100 take at most</dt>
        <dd>{figure(vitals.renewP99Ms)}</dd>
        <dt>margin</dt>
        <dd class={margin !== null && margin <= 0 ? 'bad' : ''}>
          {margin === null ? 'not known yet' : `${spanOf(margin)}: TTL minus a slow renewal`}
        </dd>
        <dt>event loop late by</dt>
        <dd>{figure(vitals.loopDelayMs)} at most, over the last minute</dd>
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
      <div ref={box} role="img" aria-label="Renewals since this page was opened, in milliseconds" />
      <figcaption class="quiet small">
        <span class="key p50">half</span> <span class="key p99">99 of 100</span>{' '}
        <span class="key loop">event loop late</span>, in ms, since you look
      </figcaption>
    </figure>
  );
}
