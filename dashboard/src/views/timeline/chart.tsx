/** The lanes under one axis of time. Only those that are seen are drawn. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Mark } from '../../data/story.ts';
import { clockTime } from '../../data/words.ts';
import { useGestures } from './gestures.ts';
import { placeOf } from './lane.ts';
import { Marks, MemberLane, percent, TargetLane } from './lanes.tsx';
import type { Scene } from './scene.ts';
import { panned, ticks, zoomed } from './span.ts';
import { SYMBOLS } from './symbols.tsx';

const LANE_PX = 30;
/** The axis and the lane of the fleet, which stay where they are. */
const HEAD_PX = 58;
const SPARE = 6;
const TICK_PX = 90;

export function Chart({ scene }: { scene: Scene }) {
  const box = useRef<HTMLElement>(null);
  const track = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ top: 0, height: 600 });
  const { span } = scene;
  useGestures(box, track, {
    pan: (share) => scene.move(panned(span.peek(), share, scene.window.peek().now)),
    zoom: (factor, share) => {
      const isFollowing = span.peek().until === null;
      scene.move(zoomed(span.peek(), factor, isFollowing ? 1 : share, scene.window.peek().now));
    },
    follow: () => scene.move({ ...span.peek(), until: null }),
  });
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const look = () => {
      setSeen({ top: element.scrollTop, height: element.clientHeight });
      scene.trackPx.value = Math.max(1, track.current?.clientWidth ?? 1);
    };
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener('scroll', look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', look);
    };
  }, []);
  const lanes = scene.lanes.value;
  const first = Math.max(0, Math.floor(seen.top / LANE_PX) - SPARE);
  const last = Math.min(lanes.length, Math.ceil((seen.top + seen.height) / LANE_PX) + SPARE);
  return (
    <section
      ref={box}
      class="tl-box"
      aria-label="Timeline. Left and right arrows move it, plus and minus zoom, 0 goes live."
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
    >
      <div class="tl-head">
        <span class="tl-label quiet small">Fleet</span>
        <div class="tl-axis" ref={track}>
          <Axis scene={scene} />
          <FleetMarks scene={scene} />
        </div>
      </div>
      <div class="tl-lanes" style={{ height: `${lanes.length * LANE_PX}px` }}>
        <Ground scene={scene} />
        <Lanes scene={scene} ids={lanes.slice(first, last)} first={first} />
      </div>
    </section>
  );
}

/** How high the box is that many lanes need: no higher than the screen has room for. */
export function heightOf(lanes: number): string {
  return `min(${HEAD_PX + lanes * LANE_PX + 2}px, max(260px, calc(100vh - 340px)))`;
}

function Lanes({ scene, ids, first }: { scene: Scene; ids: readonly string[]; first: number }) {
  const isMember = scene.by.value === 'member';
  const most = isMember ? mostOwned(scene) : 0;
  return (
    <ul aria-label="Lanes">
      {ids.map((id, i) => (
        <li
          key={id}
          class="tl-lane"
          style={{ top: `${(first + i) * LANE_PX}px`, height: `${LANE_PX}px` }}
          aria-setsize={scene.lanes.value.length}
          aria-posinset={first + i + 1}
        >
          {isMember ? (
            <MemberLane id={id} scene={scene} most={most} />
          ) : (
            <TargetLane id={id} scene={scene} />
          )}
        </li>
      ))}
    </ul>
  );
}

function mostOwned(scene: Scene): number {
  let most = 1;
  for (const steps of scene.owned.value.values())
    for (const { owned } of steps) most = Math.max(most, owned);
  return most;
}

function Axis({ scene }: { scene: Scene }) {
  const window = scene.window.value;
  const most = Math.max(2, Math.floor(scene.trackPx.value / TICK_PX));
  const zoneMs = -new Date(window.to).getTimezoneOffset() * 60_000;
  const { stepMs, at } = ticks(window, most, zoneMs);
  const length = window.to - window.from;
  return (
    <div class="tl-ticks" aria-hidden="true">
      {at.map((moment) => {
        const share = (moment - window.from) / length;
        const hasRoom = (1 - share) * scene.trackPx.value > TICK_PX * 0.7;
        return (
          <span key={moment} style={{ left: percent(share) }}>
            {hasRoom && tickText(moment, stepMs)}
          </span>
        );
      })}
    </div>
  );
}

function tickText(at: number, stepMs: number): string {
  const text = clockTime(at);
  if (stepMs < 1_000) return text;
  return stepMs < 60_000 ? text.slice(0, 8) : text.slice(0, 5);
}

function FleetMarks({ scene }: { scene: Scene }) {
  scene.reading.version.value;
  const { from, to } = scene.window.value;
  const marks = scene.reading.story.marks().filter(({ at }) => at >= from && at <= to);
  return (
    <div class="tl-fleet">
      <Marks marks={marks} scene={scene} />
    </div>
  );
}

/** Behind all lanes: outages of the store, the present, and what has not been loaded yet. */
function Ground({ scene }: { scene: Scene }) {
  const window = scene.window.value;
  const { readFrom, isWhole } = scene.reading;
  const unread = placeOf(Number.NEGATIVE_INFINITY, readFrom.value ?? window.to, window);
  const ahead = (window.now - window.from) / (window.to - window.from);
  return (
    <div class="tl-ground" aria-hidden="true">
      {scene.bands.value.map((mark) => (
        <Band key={mark.entry.position} mark={mark} scene={scene} />
      ))}
      {unread !== null && unread.width > 0 && (
        <div class="tl-unread" style={{ left: percent(unread.left), width: percent(unread.width) }}>
          <span>{isWhole.value ? 'before the log begins' : 'loading …'}</span>
        </div>
      )}
      {ahead < 0.999 && <div class="tl-now" style={{ left: percent(ahead) }} />}
    </div>
  );
}

function Band({ mark, scene }: { mark: Mark; scene: Scene }) {
  if (mark.until === null) return null;
  const place = placeOf(mark.at, mark.until, scene.window.value);
  if (place === null) return null;
  const style = { left: percent(place.left), width: percent(place.width) };
  return <div class={`tl-band ${mark.kind}`} style={style} title={SYMBOLS[mark.kind].name} />;
}
