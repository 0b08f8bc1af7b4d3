/** An instance and its targets. */
import { useComputed } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { SeenMember, SeenTarget } from '../../data/fleet.ts';
import { attention, doubtful, type Lane, laneOf } from '../../data/lanes.ts';
import { memberState } from '../../data/member-state.ts';
import { now } from '../../data/now.ts';
import { markOf, nameOf } from '../../data/palette.ts';
import { actorOf } from '../../data/stage.ts';
import { termsOf, timeLeft } from '../../data/ttl.ts';
import { counted, spanOf } from '../../data/words.ts';
import { Meter, Owner } from '../../parts/basics.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Restarted } from '../restarted.tsx';
import { StageButtons } from '../stage-buttons.tsx';
import { Cells } from './cells.tsx';
import { Dense } from './dense.tsx';
import { isFiltered, shape, wanted } from './filter.ts';
import type { DenseLayout } from './layout.ts';

/** Squares of targets that need attention are large enough for a letter. */
const ATTENTION_STEP = 18;
/** Cells with ids, up to so many; more become squares, however few there are in all. */
const MOST_NAMED = 200;

export interface LaneCardProps {
  readonly owner: string;
  /** Null: the instance is gone, but the store still names it as an owner. */
  readonly member: SeenMember | null;
  readonly layout: DenseLayout;
  readonly isFirst: boolean;
}

export function LaneCard({ owner, member, layout, isFirst }: LaneCardProps) {
  const lane = laneOf(owner);
  const version = lane.version.value;
  const items = wanted(lane.items);
  if (items.length === 0 && (member === null || isFiltered.value)) return null;
  const isDense = shape.value === 'dense';
  const name = nameOf(owner);
  const label = `${name}: ${counted(items.length, 'target')}`;
  return (
    <section class={isDense ? 'lane dense-lane' : 'lane'} aria-label={name}>
      <header>
        <h3>
          <Owner id={owner} />
        </h3>
        <State member={member} owner={owner} />
        <Restarted id={owner} />
        <Load member={member} owner={owner} owned={lane.items.length} isShort={isDense} />
      </header>
      {isDense ? (
        <Dense
          {...{
            name: owner,
            items,
            version,
            label: `${label}. Arrow keys move, Enter opens.`,
            isFirst,
          }}
          step={layout.step}
          width={layout.width}
        />
      ) : (
        <Cells {...{ items, version, label }} />
      )}
      {items.length === 0 && !isDense && <p class="quiet small">It owns no targets now.</p>}
      <footer>
        <Doubtful owner={owner} />
        <StageButtons member={owner} name={name} />
      </footer>
    </section>
  );
}

/** Nothing if all is well and there is little room, or if the demo has just killed or frozen it: the fleet has not noticed yet. */
function State({ member, owner }: { member: SeenMember | null; owner: string }) {
  const state = useComputed(() => JSON.stringify(memberState(member, now.value)));
  const { word, level } = JSON.parse(state.value) as ReturnType<typeof memberState>;
  const actor = actorOf(owner, nameOf(owner));
  const isActorWell = actor === undefined || actor.state === 'running';
  if (level === 'good' && (shape.value === 'dense' || !isActorWell)) return null;
  return <span class={`badge ${level}`}>{word}</span>;
}

function Load({
  member,
  owner,
  owned,
  isShort,
}: {
  member: SeenMember | null;
  owner: string;
  owned: number;
  isShort: boolean;
}) {
  const has = member?.owned ?? owned;
  const quota = member?.quota ?? 0;
  return (
    <div class="lane-load">
      <span title={`It owns ${has}. Its quota is ${quota}.`}>
        {has} / {quota}
        {!isShort && <span class="quiet"> targets</span>}
      </span>
      <Meter
        share={quota === 0 ? (has === 0 ? 0 : 1) : has / quota}
        label={`${nameOf(owner)} owns ${has} of ${quota}`}
        colour={markOf(owner).colour}
      />
      <span class="quiet">
        <Earliest lane={laneOf(owner)} owner={owner} isShort={isShort} />
        {!isShort && member !== null && <> · weight {member.weight}</>}
      </span>
    </div>
  );
}

/** When the first of its leases would expire if the instance died now. */
function Earliest({ lane, owner, isShort }: { lane: Lane; owner: string; isShort: boolean }) {
  const first = useComputed(() => {
    lane.version.value;
    return firstToEnd(lane.items);
  });
  const words = useComputed(() => {
    if (first.value === undefined) return 'no lease';
    const left = timeLeft(first.value, termsOf(owner), now.value);
    if (left === null) return 'never expires';
    const span = `${left.isAtLeast ? '≥ ' : ''}${spanOf(Math.round(left.ms / 100) * 100)}`;
    return isShort ? span : `lease ${span}`;
  });
  return <span title="Until its first lease expires, unless the instance renews it">{words}</span>;
}

function firstToEnd(items: readonly SeenTarget[]): SeenTarget | undefined {
  let first = items[0];
  for (const target of items)
    if (target.expiresAtMs < (first?.expiresAtMs ?? Number.POSITIVE_INFINITY)) first = target;
  return first;
}

/** The targets that it may lose are in the lane at the top. */
function Doubtful({ owner }: { owner: string }) {
  const count = useComputed(() => {
    attention.version.value;
    return doubtful.get(owner) ?? 0;
  });
  if (count.value === 0) return null;
  return (
    <span class="warn small">
      <Icon name="warning" /> {count.value.toLocaleString('en')} uncertain: see the top lane
    </span>
  );
}

/** A lane for the targets that need attention, and one for the paused ones. */
export function SpecialLane({
  lane,
  title,
  name,
  width,
  isAlarm = false,
  children,
}: {
  lane: Lane;
  title: string;
  name: string;
  width: number;
  isAlarm?: boolean;
  children: ComponentChildren;
}) {
  const version = lane.version.value;
  const items = wanted(lane.items);
  if (items.length === 0) return null;
  const label = `${title}: ${counted(items.length, 'target')}`;
  return (
    <section class={isAlarm ? 'lane alarm' : 'lane aside'} aria-label={title}>
      <header>
        <h3>
          {isAlarm && <Icon name="warning" />}
          {title}
        </h3>
        <span class={isAlarm ? 'badge bad' : 'badge'}>{counted(items.length, 'target')}</span>
        <p class="small">{children}</p>
      </header>
      {items.length <= MOST_NAMED && shape.value !== 'dense' ? (
        <Cells {...{ items, version, label }} />
      ) : (
        <Dense
          {...{ name, items, version, isFirst: isAlarm, width: width - 26 }}
          label={`${label}. Arrow keys move, Enter opens.`}
          step={ATTENTION_STEP}
        />
      )}
    </section>
  );
}
