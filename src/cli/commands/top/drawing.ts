/** Draws the screen of `holdfast top` from its state. */
import type { EventName } from '../../../core/events.ts';
import { shortName } from '../../../core/ids.ts';
import type { MemberView, PicturedTarget } from '../../../fleet/watch/fleet.ts';
import { LEVELS } from '../../../telemetry/levels.ts';
import { sentenceOf } from '../../../telemetry/sentences.ts';
import type { Style } from '../../ui/output.ts';
import { counted, cut, printable, spanOf } from '../../ui/text.ts';
import { stateOf } from '../fleet/members.ts';
import {
  BLANK,
  type Column,
  type Line,
  opposite,
  rendered,
  type Span,
  type Styler,
  sharesOf,
  span,
  tableLines,
  widthOf,
} from './lines.ts';
import type { Happening, Order, TopView } from './top-state.ts';

export interface Frame {
  readonly columns: number;
  readonly rows: number;
  /** The store, without secrets. */
  readonly store: string;
  readonly style: Styler;
  /** Null without a terminal. */
  readonly keys: KeyState | null;
}

/** The effect of the keys pressed so far. */
export interface KeyState {
  readonly filter: string;
  /** The filter is being typed. */
  readonly isTyping: boolean;
  readonly order: Order;
  readonly isPaused: boolean;
  readonly isHelp: boolean;
}

const LONGEST_NAME = 28;
const BAR_WIDTH = 12;
/** A screen with this many rows has room for empty lines. */
const ROOMY_ROWS = 20;
/** Renewals that take longer than this share of the TTL leave little time for a second attempt. */
const SLOW_SHARE = 0.1;
const SLOW_LOOP_MS = 100;

/** The lines of a screen, from the top, cut to its size. */
export function drawTop(view: TopView, frame: Frame): string[] {
  const { columns, rows, keys, style } = frame;
  const head = headOf(view, frame);
  const foot = keys === null ? [] : [footOf(keys)];
  const isRoomy = rows >= ROOMY_ROWS;
  const room = rows - head.length - foot.length - (isRoomy ? 1 : 0);
  const body = keys?.isHelp ? HELP : bodyOf(view, frame, room, isRoomy);
  const top = [...head, ...(isRoomy ? [BLANK] : []), ...body].slice(0, rows - foot.length);
  const gap = keys === null ? 0 : rows - top.length - foot.length;
  const lines = [...top, ...Array.from({ length: gap }, () => BLANK), ...foot];
  return lines.map((line) => rendered(line, columns, style));
}

function headOf(view: TopView, { columns, store, keys }: Frame): Line[] {
  const { ageMs, wallMs, away, roundTripMs } = view;
  const time = span(timeOf(wallMs));
  const isOld = ageMs !== null && ageMs >= OLD_MS;
  const age = ageMs === null ? 'no data yet' : `data ${seconds(ageMs)} old`;
  const paused = keys?.isPaused ? [span('paused  ', 'yellow')] : [];
  const title = [span('holdfast top', 'bold'), span(`  ${printable(store)}`, 'dim')];
  const right = [...paused, span(age, isOld ? 'red' : undefined), span('  '), time];
  const { transitionsPerSecond, failovers, handovers } = view;
  const rates: Line = [
    span(`store ${milliseconds(roundTripMs)}`),
    span(`   ${transitionsPerSecond.toFixed(1)} transitions/s, `),
    span(counted(failovers, 'failover'), failovers > 0 ? 'yellow' : undefined),
    span(`, ${counted(handovers, 'handover')} in the last minute`),
  ];
  const gone: Line = [
    span(
      `the store does not answer, for ${spanOf(away?.forMs ?? 0)}: ${printable(away?.why ?? '')}`,
      'red',
    ),
  ];
  return [opposite(title, right, columns), countsOf(view), away === null ? rates : gone];
}

/** Data that is older than this is shown in red. */
const OLD_MS = 5_000;

function countsOf({ counts }: TopView): Line {
  const { instances, targets, held, unowned, late, moving, paused } = counts;
  const piece = (count: number, what: string, style: Style): Span[] =>
    count === 0 ? [] : [span(', '), span(`${count} ${what}`, style)];
  return [
    span(`${counted(targets, 'target')} on ${counted(instances, 'instance')}, ${held} held`),
    ...piece(unowned, 'unowned', 'red'),
    ...piece(late, 'late', 'red'),
    ...piece(moving, 'moving', 'yellow'),
    ...piece(paused, 'paused', 'yellow'),
  ];
}

function bodyOf(view: TopView, frame: Frame, room: number, isRoomy: boolean): Line[] {
  const sections = [membersOf(view, frame), targetsOf(view, frame), eventsOf(view, frame)];
  const between = isRoomy ? sections.length - 1 : 0;
  const shares = sharesOf(
    room - between - sections.length,
    sections.map(({ rows }) => rows.length),
  );
  return sections.flatMap(({ head, rows, isWhole }, i) => {
    const share = shares[i] ?? 0;
    const isCut = isWhole && share > 1 && rows.length > share;
    const shown = rows.slice(0, isCut ? share - 1 : share);
    const more = isCut ? [[span(`… ${rows.length - shown.length} more`, 'dim')]] : [];
    const gap = isRoomy && i > 0 ? [BLANK] : [];
    return [...gap, head, ...shown, ...more];
  });
}

interface Section {
  readonly head: Line;
  readonly rows: readonly Line[];
  /** Where it has more than there is room for, it says so. */
  readonly isWhole?: boolean;
}

const MEMBER_COLUMNS: readonly Column<MemberView>[] = [
  { head: 'INSTANCE', rank: 0, cell: ({ id }) => span(nameOf(id)) },
  {
    head: 'STATE',
    rank: 2,
    cell: (member) => span(stateOf(member), STATE_STYLES[stateOf(member)]),
  },
  { head: 'OWNED', rank: 4, cell: barOf },
  { head: '', rank: 0, isRight: true, cell: ownedOf },
  { head: 'BEAT', rank: 3, isRight: true, cell: beatOf },
  { head: 'RENEW P99', rank: 5, isRight: true, cell: renewOf },
  { head: 'LOOP', rank: 6, isRight: true, cell: loopOf },
  { head: 'VERSION', rank: 7, cell: ({ version }) => span(printable(version ?? '-'), 'dim') },
];

const STATE_STYLES: Readonly<Record<string, Style>> = { draining: 'yellow', foreign: 'yellow' };

function membersOf({ members, counts }: TopView, { columns }: Frame): Section {
  if (members.length === 0 && counts.instances > 0)
    return { head: [span('No instance matches the filter.', 'dim')], rows: [] };
  if (members.length === 0)
    return { head: [span('No instance runs. Start one: holdfast up', 'yellow')], rows: [] };
  return { ...tableLines(members, MEMBER_COLUMNS, columns), isWhole: true };
}

function barOf({ owned, quota, isForeign, isDraining }: MemberView): Span {
  const most = Math.max(owned, isForeign ? 0 : quota, 1);
  const full = owned === 0 ? 0 : Math.max(1, Math.round((owned / most) * BAR_WIDTH));
  const text = `${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)}`;
  return span(text, isDraining || owned > quota ? 'yellow' : 'green');
}

function ownedOf({ owned, quota, isForeign }: MemberView): Span {
  return span(isForeign ? String(owned) : `${owned}/${quota}`);
}

/** How old its heartbeat is; where it does not say how long one lasts, how long it has left. */
function beatOf({ expiresInMs, beatTtlMs }: MemberView): Span {
  if (expiresInMs <= 0) return span('none', 'red');
  if (!Number.isFinite(expiresInMs)) return span('-');
  if (beatTtlMs === null) return span(`${seconds(expiresInMs)} left`);
  const ageMs = Math.max(0, beatTtlMs - expiresInMs);
  return span(seconds(ageMs), ageMs > beatTtlMs / 2 ? 'yellow' : undefined);
}

function renewOf({ vitals }: MemberView): Span {
  const p99Ms = vitals?.renewP99Ms ?? null;
  if (vitals === null || p99Ms === null) return span('-');
  return span(milliseconds(p99Ms), p99Ms > vitals.ttlMs * SLOW_SHARE ? 'red' : undefined);
}

function loopOf({ vitals }: MemberView): Span {
  if (vitals === null) return span('-');
  const { loopDelayMs } = vitals;
  return span(milliseconds(loopDelayMs), loopDelayMs >= SLOW_LOOP_MS ? 'yellow' : undefined);
}

const TARGET_COLUMNS: readonly Column<PicturedTarget>[] = [
  { head: 'TARGET', rank: 0, cell: ({ id }) => span(cut(printable(id), LONGEST_NAME)) },
  { head: 'STATE', rank: 0, cell: ({ reason }) => span(reason, REASON_STYLES[reason]) },
  { head: 'OWNER', rank: 1, cell: ({ owner }) => span(owner === null ? '-' : nameOf(owner)) },
  { head: 'FOR', rank: 3, cell: ({ planned }) => span(planned === null ? '-' : nameOf(planned)) },
  { head: 'ENDS IN', rank: 2, isRight: true, cell: ({ expiresInMs }) => span(leftOf(expiresInMs)) },
];

const REASON_STYLES: Readonly<Record<string, Style | undefined>> = {
  kept: 'green',
  moving: 'yellow',
  foreign: 'yellow',
  paused: 'yellow',
  expiring: 'yellow',
  late: 'red',
  free: 'red',
  unplaced: 'red',
  revoked: 'red',
  garbage: 'red',
  quarantine: 'red',
  unsettled: 'red',
};

function leftOf(ms: number | null): string {
  if (ms === null) return '-';
  return Number.isFinite(ms) ? seconds(ms) : 'never';
}

function targetsOf({ targets, counts }: TopView, { columns, keys }: Frame): Section {
  if (targets.length > 0) return { ...tableLines(targets, TARGET_COLUMNS, columns), isWhole: true };
  if (counts.targets === 0)
    return {
      head: [span('There are no targets. Add one: holdfast targets add URL', 'yellow')],
      rows: [],
    };
  const isFiltered = keys !== null && keys.filter !== '';
  const words = isFiltered ? 'No target matches the filter.' : 'No target needs attention.';
  return { head: [span(words, isFiltered ? 'dim' : 'green')], rows: [] };
}

function eventsOf({ happenings }: TopView, { columns }: Frame): Section {
  if (happenings.length === 0)
    return { head: [span('Nothing has happened lately.', 'dim')], rows: [] };
  const width = Math.max(...happenings.map(({ event }) => nameOf(event.instance).length));
  return {
    head: [span('WHAT HAPPENED', 'dim')],
    rows: happenings.map((happening) => eventLine(happening, width, columns)),
  };
}

const LEVEL_STYLES: Readonly<Record<string, Style>> = { warn: 'yellow', error: 'red' };

function eventLine({ event: logged, more }: Happening, width: number, columns: number): Line {
  const { position: _, at, instance, event, ...facts } = logged;
  const begin = [span(`${timeOf(at)}  `, 'dim'), span(`${nameOf(instance).padEnd(width)}  `)];
  const end = span(more > 0 ? ` (and ${more} more)` : '', 'dim');
  const text = printable(sentenceOf(event, facts, instance));
  const style = LEVEL_STYLES[LEVELS[event as EventName] ?? 'info'];
  return [...begin, span(cut(text, columns - widthOf([...begin, end])), style), end];
}

function footOf({ filter, isTyping, order, isPaused }: KeyState): Line {
  if (isTyping)
    return [
      span('/', 'bold'),
      span(`${printable(filter)}▏`),
      span('   Enter keeps it, Esc clears it', 'dim'),
    ];
  const key = (name: string, what: string): Span[] => [
    span(name, 'bold'),
    span(` ${what}   `, 'dim'),
  ];
  return [
    ...key('q', 'quit'),
    ...key('/', filter === '' ? 'filter' : `filter: ${printable(filter)}`),
    ...key('s', `order: ${order}`),
    ...key('p', isPaused ? 'continue' : 'pause'),
    ...key('?', 'help'),
  ];
}

const HELP: readonly Line[] = [
  ['q', 'quit, as Ctrl-C does'],
  ['/', 'filter: only targets and instances whose name contains the text'],
  ['Esc', 'no filter'],
  ['s', 'order of the instances: by name, targets owned, heartbeat, slowest renewals'],
  ['p', 'pause, or continue'],
  ['?', 'show or hide this help'],
].map(([key = '', what = '']) => [span(key.padEnd(5), 'bold'), span(what)]);

function nameOf(id: string): string {
  return cut(printable(shortName(id)), LONGEST_NAME);
}

function timeOf(ms: number): string {
  return new Date(ms).toTimeString().slice(0, 8);
}

/** In whole seconds: a user cannot read faster changes. */
function seconds(ms: number): string {
  return ms < 60_000 ? `${Math.floor(ms / 1_000)} s` : spanOf(ms);
}

function milliseconds(ms: number): string {
  return ms < 10 ? `${ms.toFixed(1)} ms` : spanOf(ms);
}
