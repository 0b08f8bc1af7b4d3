/** All instances, and how each is doing. */
import { useEffect } from 'preact/hooks';
import { members, type SeenMember, seenAtMs } from '../data/fleet.ts';
import { beatAgeMs, marginMs, memberState } from '../data/member-state.ts';
import { now } from '../data/now.ts';
import { markOf } from '../data/palette.ts';
import { serverWallOf } from '../data/server-time.ts';
import { followStage } from '../data/stage.ts';
import { counted, spanOf } from '../data/words.ts';
import { Meter, Owner } from '../parts/basics.tsx';
import { Icon } from '../parts/icon.tsx';
import { ScrollX } from '../parts/scroll-x.tsx';
import { place, setQuery } from '../router.ts';
import { NoInstances } from './fleet-empty.tsx';
import { Restarted } from './restarted.tsx';
import { StageButtons } from './stage-buttons.tsx';
import '../style/members.css';

interface Column {
  readonly name: string;
  readonly title: string;
  readonly isText?: true;
  /** What it is sorted by. */
  value(member: SeenMember): number | string | null;
}

const COLUMNS: readonly Column[] = [
  {
    name: 'name',
    title: 'Name of the instance',
    isText: true,
    value: ({ name, id }) => `${name} ${id}`,
  },
  {
    name: 'state',
    title: 'Whether it is alive',
    isText: true,
    value: (member) => memberState(member, now.peek()).word,
  },
  {
    name: 'heartbeat',
    title: 'Age of its last heartbeat',
    value: (member) => beatAgeMs(member, now.peek()),
  },
  {
    name: 'targets',
    title: 'How many targets it owns, and its quota',
    value: ({ owned }) => owned,
  },
  {
    name: 'weight',
    title: 'Its share of the targets, compared to other instances',
    value: ({ weight }) => weight,
  },
  {
    name: 'renew p50',
    title: 'Median time of a renewal',
    value: ({ vitals }) => vitals?.renewP50Ms ?? null,
  },
  {
    name: 'renew p99',
    title: '99 % of its renewals take no longer',
    value: ({ vitals }) => vitals?.renewP99Ms ?? null,
  },
  { name: 'margin', title: 'How much of the TTL is left after a slow renewal', value: marginMs },
  {
    name: 'loop delay',
    title: 'Longest event-loop delay in the last minute',
    value: ({ vitals }) => vitals?.loopDelayMs ?? null,
  },
  {
    name: 'uptime',
    title: 'How long it has been running',
    value: ({ startedAt }) => (startedAt === null ? null : -startedAt),
  },
  { name: 'version', title: 'Version of Holdfast', isText: true, value: ({ version }) => version },
];

export function MembersView() {
  useEffect(() => {
    const end = new AbortController();
    followStage(end.signal);
    return () => end.abort();
  }, []);
  const all = members.value;
  return (
    <>
      <div class="view-head">
        <h1>Instances</h1>
        <span class="quiet">{counted(all.length, 'instance')}</span>
      </div>
      {all.length > 0 && <Table all={all} />}
      {all.length === 0 && seenAtMs.value !== null && <NoInstances />}
    </>
  );
}

function Table({ all }: { all: readonly SeenMember[] }) {
  const { query } = place.value;
  const by = COLUMNS.find(({ name }) => name === query.get('sort')) ?? COLUMNS[0];
  const isDown = query.get('down') === '1';
  const sorted = by === undefined ? all : sortedBy(all, by, isDown);
  return (
    <div class="panel">
      <ScrollX label="All instances">
        <table class="rows members">
          <thead>
            <tr>
              {COLUMNS.map((column) => (
                <Head key={column.name} {...{ column, isDown, isChosen: column === by }} />
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted.map((member) => (
              <MemberRow key={member.id} member={member} />
            ))}
          </tbody>
        </table>
      </ScrollX>
    </div>
  );
}

/** Unknown values come last in both directions. */
function sortedBy(all: readonly SeenMember[], { value }: Column, isDown: boolean): SeenMember[] {
  const sign = isDown ? -1 : 1;
  return [...all].sort((a, b) => {
    const [one, other] = [value(a), value(b)];
    if (one === null || other === null) return one === other ? 0 : one === null ? 1 : -1;
    return one === other ? 0 : one < other ? -sign : sign;
  });
}

function Head({
  column: { name, title, isText },
  isChosen,
  isDown,
}: {
  column: Column;
  isChosen: boolean;
  isDown: boolean;
}) {
  const order = isDown ? 'descending' : 'ascending';
  const turn = () => setQuery({ sort: name, down: isChosen && !isDown ? '1' : '' });
  return (
    <th class={isText ? '' : 'number'} aria-sort={isChosen ? order : 'none'}>
      <button type="button" class="plain" title={title} onClick={turn}>
        <span class="column-name">{name}</span>
        {isChosen && <Icon name={isDown ? 'descending' : 'ascending'} />}
      </button>
    </th>
  );
}

function MemberRow({ member }: { member: SeenMember }) {
  const { id, name, weight, owned, quota, vitals, version, startedAt } = member;
  const { word, level } = memberState(member, now.value);
  const margin = marginMs(member);
  return (
    <tr>
      <td>
        <Owner id={id} />
      </td>
      <td>
        <div class="member-state">
          <span class={`badge ${level}`}>{word}</span>
          <Restarted id={id} />
          <StageButtons member={id} name={name} />
        </div>
      </td>
      <td class="number">{spanOrDash(beatAgeMs(member, now.value))}</td>
      <td>
        <div class="member-load">
          <Meter
            share={quota === 0 ? Math.min(1, owned) : owned / quota}
            label={`${name} owns ${owned} of ${quota}`}
            colour={markOf(id).colour}
          />
          {owned} / {quota}
        </div>
      </td>
      <td class="number">{weight}</td>
      <td class="number">{figure(vitals?.renewP50Ms)}</td>
      <td class="number">{figure(vitals?.renewP99Ms)}</td>
      <td class={margin !== null && margin <= 0 ? 'number bad' : 'number'}>{spanOrDash(margin)}</td>
      <td class="number">{figure(vitals?.loopDelayMs)}</td>
      <td class="number">
        {startedAt === null ? '–' : spanOf(Math.max(0, serverWallOf(now.value) - startedAt))}
      </td>
      <td>{version ?? '–'}</td>
    </tr>
  );
}

function spanOrDash(ms: number | null): string {
  return ms === null ? '–' : spanOf(Math.round(ms / 100) * 100);
}

function figure(ms: number | null | undefined): string {
  return ms === null || ms === undefined ? '–' : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}
