/** Who owns what, now: the first thing one sees. */
import { useComputed } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { about, may } from '../data/access.ts';
import { members, type SeenMember, seenAtMs } from '../data/fleet.ts';
import { all, attention, counts, owners, ownersVersion, paused } from '../data/lanes.ts';
import { nameOf } from '../data/palette.ts';
import { type Actor, actorOf, actors, followStage, stageTrouble } from '../data/stage.ts';
import { AsCli } from '../parts/as-cli.tsx';
import { Empty } from '../parts/basics.tsx';
import { setQuery } from '../router.ts';
import { AddTarget } from './map/add-target.tsx';
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
const AROUND_PX = 370;
const LEAST_HEIGHT_PX = 360;

export function MapView() {
  useEffect(() => {
    const end = new AbortController();
    followStage(end.signal);
    return () => end.abort();
  }, []);
  if (seenAtMs.value === null) return <p class="quiet">Waiting for a first picture …</p>;
  return (
    <>
      <div class="view-head">
        <h1>Map</h1>
        {counts.value.all > 0 && (
          <>
            <Shapes />
            <span class="push" />
            <Filters />
          </>
        )}
      </div>
      <StageHint />
      <CountStats />
      <Lately />
      <h2 class="visually-hidden">Members and their targets</h2>
      <Fleet />
      {counts.value.all > 0 && <Legend />}
      {shape.value !== 'list' && counts.value.all > 0 && <Detail />}
    </>
  );
}

function StageHint() {
  if (about.value?.stage !== true) return null;
  return (
    <p class="stage-hint">
      <strong>These instances are there to be killed.</strong> Kill one and watch: when its leases
      run out, the others take over what it had. Freeze one: it finds its leases lost when it wakes.
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
      {members.value.length === 0 && <NoMembers />}
      {isEmpty && <NoTargets />}
      <SpecialLane
        {...{ lane: attention, name: '!attention', width, isAlarm: true }}
        title="Without an owner, or uncertain"
      >
        Nobody polls them, or whoever does may be about to lose them.
      </SpecialLane>
      <NoMatch />
      {shape.value === 'list' && !isEmpty ? <List /> : width > 0 && <Lanes width={width} />}
      <SpecialLane {...{ lane: paused, name: '!paused', width }} title="Paused">
        Nobody should poll them until they are resumed.
      </SpecialLane>
    </div>
  );
}

/** A member, one that is gone but still owns something, or an actor that is neither. */
interface Entry {
  readonly name: string;
  readonly owner: string;
  readonly member: SeenMember | null;
  readonly actor?: Actor;
}

/** In order of name, so that whoever is killed and started again stays where it was. */
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
  // The same as long as nothing of it changes, so that lanes in which nothing has are not drawn again.
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
  dead: 'It does not run. What it had is with the others.',
  frozen: 'It stands still, and the others have what it had. Thaw it: it finds its leases lost.',
  starting: 'It starts.',
  running: 'It runs, but does not take part yet.',
};

/** One that is not a member now: so that it can be started or thawed. */
function ActorCard({ actor }: { actor: Actor }) {
  return (
    <section class="lane dead" aria-label={actor.name}>
      <header>
        <h3>{actor.name}</h3>
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

function NoMatch() {
  if (!isFiltered.value || counts.value.all === 0) return null;
  all.version.value;
  if (wanted(all.items).length > 0) return null;
  return (
    <Empty title="No target is like that.">
      <button type="button" onClick={() => setQuery({ q: '', state: '', member: '' })}>
        Show all
      </button>
    </Empty>
  );
}

function NoMembers() {
  return (
    <Empty title="Nobody takes part: nothing is polled.">
      <span>Start an instance on the same store, as many as you like:</span>
      <AsCli command={`holdfast up --store ${about.value?.store ?? 'sqlite:holdfast.db'}`} />
    </Empty>
  );
}

function NoTargets() {
  return (
    <Empty title="There is nothing to poll yet.">
      <span>Add something. The instances share it out among themselves:</span>
      <AsCli command="holdfast sessions add https://example.com" />
      {may('v3:write') && <AddTarget />}
    </Empty>
  );
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
