/** Who owns what, now. It is the first view. */
import { useComputed } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { about } from '../data/access.ts';
import { members, type SeenMember, seenAtMs } from '../data/fleet.ts';
import { all, attention, counts, owners, ownersVersion, paused } from '../data/lanes.ts';
import { nameOf } from '../data/palette.ts';
import { type Actor, actorOf, actors, followStage, stageTrouble } from '../data/stage.ts';
import { Owner } from '../parts/basics.tsx';
import { NoInstances, NoMatch, NoTargets } from './fleet-empty.tsx';
import { Filters, Shapes } from './map/controls.tsx';
import { CountStats } from './map/counts.tsx';
import { Detail } from './map/detail.tsx';
import { filter, isFiltered, shape, wanted } from './map/filter.ts';
import { LaneCard, SpecialLane } from './map/lane-card.tsx';
import { Lately } from './map/lately.tsx';
import { layoutFor } from './map/layout.ts';
import { Legend } from './map/legend.tsx';
import { ActorButtons } from './stage-buttons.tsx';
import { TargetList } from './target-list.tsx';
import '../style/map.css';

/** What stands above and below the lanes, so that the rest of the window is theirs. */
const AROUND_PX = 360;
const LEAST_HEIGHT_PX = 360;

export function MapView() {
  useEffect(() => {
    const end = new AbortController();
    followStage(end.signal);
    return () => end.abort();
  }, []);
  if (seenAtMs.value === null) return <p class="quiet">Loading the fleet …</p>;
  return (
    <>
      <div class="view-head">
        <h1>Map</h1>
        {counts.value.all > 0 && (
          <>
            <Shapes />
            <Legend />
            <span class="push" />
            <Filters />
          </>
        )}
      </div>
      <StageHint />
      {counts.value.all > 0 && <CountStats />}
      <Lately />
      <h2 class="visually-hidden">Instances and their targets</h2>
      <Fleet />
      {shape.value !== 'list' && counts.value.all > 0 && <Detail />}
    </>
  );
}

function StageHint() {
  if (about.value?.stage !== true) return null;
  return (
    <p class="stage-hint">
      <strong>This is a demo: kill or freeze an instance.</strong> When its leases expire, the other
      instances take over its targets. A thawed instance finds its leases lost.
      {stageTrouble.value !== null && <span class="bad"> {stageTrouble.value}</span>}
    </p>
  );
}

function Fleet() {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidthOf(box);
  const isEmpty = counts.value.all === 0;
  return (
    <div class="lanes-box" ref={box}>
      {members.value.length === 0 && <NoInstances />}
      {isEmpty && <NoTargets />}
      <SpecialLane
        {...{ lane: attention, name: '!attention', width, isAlarm: true }}
        title="Needs attention"
      >
        These targets have no owner, or their owner may be about to lose them.
      </SpecialLane>
      <Unmatched />
      {shape.value === 'list' && !isEmpty ? <List /> : width > 0 && <Lanes width={width} />}
      <SpecialLane {...{ lane: paused, name: '!paused', width }} title="Paused">
        No instance polls these targets until you resume them.
      </SpecialLane>
    </div>
  );
}

/** An instance, one that is gone but still owns something, or one of the demo that is neither. */
interface Entry {
  readonly name: string;
  readonly owner: string;
  readonly member: SeenMember | null;
  readonly actor?: Actor;
}

/** In order of name, so that an instance that restarts stays in its place. */
function entriesNow(): readonly Entry[] {
  const there = members.value.map((member) => ({ name: member.name, owner: member.id, member }));
  const known = new Set(there.map(({ owner }) => owner));
  const gone = [...owners].flatMap(([owner, { items }]) =>
    known.has(owner) || items.length === 0 ? [] : [{ name: nameOf(owner), owner, member: null }],
  );
  const seen = [...there, ...gone];
  const played = new Set(seen.map(({ owner, name }) => actorOf(owner, name)));
  const unseen = actors.value
    .filter((actor) => !played.has(actor))
    .map((actor) => ({ name: actor.name, owner: '', member: null, actor }));
  return [...seen, ...unseen].sort((a, b) => (a.name + a.owner < b.name + b.owner ? -1 : 1));
}

function Lanes({ width }: { width: number }) {
  const entries = useComputed(() => {
    ownersVersion.value;
    return entriesNow();
  }).value;
  const chosen = filter.value.member;
  const shown = chosen === '' ? entries : entries.filter(({ owner }) => owner === chosen);
  const isDense = shape.value === 'dense';
  const targets = counts.value.all;
  const height = heightForLanes();
  // The same object while nothing changes, so that unchanged lanes are not drawn again.
  const layout = useMemo(
    () => layoutFor({ lanes: shown.length, targets, width, height }),
    [shown.length, targets, width, height],
  );
  return (
    <div
      class={isDense ? `lanes dense-lanes${layout.isCrowded ? ' crowded' : ''}` : 'lanes'}
      style={isDense ? { '--lane-columns': layout.columns } : {}}
    >
      {shown.map(({ owner, member, actor }, i) =>
        actor === undefined ? (
          <LaneCard
            key={owner}
            {...{ owner, member, layout, isFirst: i === 0 && attention.items.length === 0 }}
          />
        ) : (
          <ActorCard key={actor.name} actor={actor} />
        ),
      )}
    </div>
  );
}

const ACTOR_WORDS: Readonly<Record<Actor['state'], string>> = {
  dead: 'Its process is dead. The other instances take over its targets.',
  frozen: 'Its process is frozen. The other instances take over its targets.',
  starting: 'Its process is starting.',
  running: 'Its process runs, but has not joined the fleet yet.',
};

/** An instance of the demo that is not in the fleet now, with buttons to start or thaw it. */
function ActorCard({ actor }: { actor: Actor }) {
  return (
    <section class={`lane actor ${actor.state}`} aria-label={actor.name}>
      <header>
        <h3>
          <Owner id={actor.name} link={false} />
        </h3>
      </header>
      <p class="quiet small">{ACTOR_WORDS[actor.state]}</p>
      <footer>
        <ActorButtons actor={actor} />
      </footer>
    </section>
  );
}

function List() {
  all.version.value;
  const items = wanted(all.items);
  if (items.length === 0) return null;
  const height = heightForLanes();
  return (
    <section class="panel" aria-label="All targets">
      <TargetList items={items} label="Targets" height={height} />
    </section>
  );
}

function Unmatched() {
  if (!isFiltered.value || counts.value.all === 0) return null;
  all.version.value;
  return wanted(all.items).length > 0 ? null : <NoMatch />;
}

function heightForLanes(): number {
  return Math.max(LEAST_HEIGHT_PX, innerHeight - AROUND_PX);
}

function useWidthOf(box: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}
