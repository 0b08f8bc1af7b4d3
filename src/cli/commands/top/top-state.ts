/** The state behind `holdfast top`: the fleet and its latest events. Callers give the time. */
import { shortName } from '../../../core/ids.ts';
import type {
  FleetChange,
  FleetPicture,
  FleetSighting,
  MemberView,
  PicturedTarget,
  TargetReason,
} from '../../../fleet/watch/fleet.ts';
import { instancesOf, targetOf } from '../../../telemetry/about.ts';
import type { LoggedEvent } from '../../../telemetry/event-log.ts';
import { isRepeated } from '../fleet/watch.ts';
import { MinuteMetrics } from './minute-metrics.ts';

/** Enough that events of a thousand targets at once, which are one line, leave others to show. */
const MAX_EVENTS = 2_000;
/** No screen is higher. */
const MAX_HAPPENINGS = 200;

/** Reasons that an operator may have to act on, the worst first. */
const TROUBLES: readonly TargetReason[] = [
  'garbage',
  'unplaced',
  'free',
  'revoked',
  'quarantine',
  'unsettled',
  'expiring',
  'late',
];

export const ORDERS = ['name', 'owned', 'heartbeat', 'renewals'] as const;
export type Order = (typeof ORDERS)[number];

/** A moment, on both clocks. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

/** An event, and the number of similar events right before it. */
export interface Happening {
  readonly event: LoggedEvent;
  readonly more: number;
}

/** The state at one moment, ready to draw. */
export interface TopView {
  readonly wallMs: number;
  /** Null until the fleet was read once. */
  readonly ageMs: number | null;
  readonly roundTripMs: number;
  /** The store does not answer. */
  readonly away: { readonly forMs: number; readonly why: string } | null;
  readonly counts: Readonly<
    Record<'instances' | 'targets' | 'held' | 'unowned' | 'late' | 'moving' | 'paused', number>
  >;
  /** In the last minute. */
  readonly transitionsPerSecond: number;
  readonly failovers: number;
  readonly handovers: number;
  readonly members: readonly MemberView[];
  /** Those with trouble; with a filter, all that it matches. */
  readonly targets: readonly PicturedTarget[];
  /** The latest first. */
  readonly happenings: readonly Happening[];
}

export class TopState {
  #picture: FleetPicture | null = null;
  #targets = new Map<string, { readonly target: PicturedTarget; readonly seenMs: number }>();
  #membersMs = 0;
  #away: { readonly sinceMs: number; readonly why: string } | null = null;
  /** The earliest first. */
  #events: LoggedEvent[] = [];
  #transitions = new MinuteMetrics();
  #failovers = new MinuteMetrics();
  #handovers = new MinuteMetrics();
  readonly #gone = new Set<string>();

  /** Takes over an update of the fleet. */
  update(sighting: FleetSighting, { monotonicMs }: Moment): void {
    if (sighting.kind === 'stalled') {
      const { error } = sighting;
      const why = error instanceof Error ? error.message : String(error);
      this.#away ??= { sinceMs: monotonicMs, why };
      return;
    }
    this.#away = null;
    if (sighting.kind === 'picture') {
      this.#targets.clear();
      this.#change(sighting.picture, sighting.picture.members, monotonicMs);
    } else if (sighting.kind === 'change') {
      this.#change(sighting.change, sighting.change.members, monotonicMs);
    }
  }

  addEvent(event: LoggedEvent, { wallMs }: Moment): void {
    const { at, how } = event;
    // In doubt, a lease still has its owner.
    const isTransition = /^lease\.(?!uncertain|confirmed)/.test(event.event);
    if (isTransition) this.#transitions.add(at, wallMs);
    if (event.event === 'target.taken' && how === 'failover') this.#failovers.add(at, wallMs);
    if (event.event === 'target.taken' && how === 'handover') this.#handovers.add(at, wallMs);
    if (isRepeated(event, this.#gone)) return;
    this.#events.push(event);
    // In blocks: to remove one moves all others.
    if (this.#events.length > 2 * MAX_EVENTS) this.#events = this.#events.slice(-MAX_EVENTS);
  }

  /** A copy that later updates do not change. */
  copy(): TopState {
    const copy = new TopState();
    copy.#picture = this.#picture;
    copy.#targets = new Map(this.#targets);
    copy.#membersMs = this.#membersMs;
    copy.#away = this.#away;
    copy.#events = [...this.#events];
    copy.#transitions = this.#transitions.copy();
    copy.#failovers = this.#failovers.copy();
    copy.#handovers = this.#handovers.copy();
    return copy;
  }

  view(now: Moment, { filter, order }: { filter: string; order: Order }): TopView {
    const { monotonicMs, wallMs } = now;
    const picture = this.#picture;
    const away = this.#away;
    const isWanted = (...names: readonly (string | null | undefined)[]) =>
      filter === '' ||
      names.some(
        (name) => name?.includes(filter) === true || shortName(name ?? '').includes(filter),
      );
    const instances = picture?.members.length ?? 0;
    const counts = { instances, targets: 0, held: 0, unowned: 0, late: 0, moving: 0, paused: 0 };
    const targets: PicturedTarget[] = [];
    for (const { target, seenMs } of this.#targets.values()) {
      count(counts, target);
      const { id, owner, planned, reason, expiresInMs } = target;
      const isShown = filter === '' ? TROUBLES.includes(reason) : isWanted(id, owner, planned);
      if (!isShown) continue;
      const leftMs =
        expiresInMs === null ? null : Math.max(0, expiresInMs - (monotonicMs - seenMs));
      targets.push({ ...target, expiresInMs: leftMs });
    }
    const goneByMs = monotonicMs - this.#membersMs;
    const members = (picture?.members ?? [])
      .filter(({ id }) => isWanted(id))
      .map((member) => ({ ...member, expiresInMs: member.expiresInMs - goneByMs }))
      .sort(BY[order]);
    return {
      wallMs,
      ageMs: picture === null ? null : Math.max(0, wallMs - picture.at),
      roundTripMs: picture?.roundTripMs ?? 0,
      away: away === null ? null : { forMs: monotonicMs - away.sinceMs, why: away.why },
      counts,
      transitionsPerSecond: this.#transitions.perSecond(wallMs),
      failovers: this.#failovers.count(wallMs),
      handovers: this.#handovers.count(wallMs),
      members,
      targets: targets.sort(byTrouble),
      happenings: gathered(
        this.#events.filter((event) => isWanted(targetOf(event), ...instancesOf(event))),
      ),
    };
  }

  #change(change: FleetChange, members: FleetChange['members'], nowMs: number): void {
    const { at, roundTripMs, targets = [], removed = [] } = change;
    this.#picture = {
      at,
      roundTripMs,
      targets: [],
      members: members ?? this.#picture?.members ?? [],
    };
    if (members !== undefined) this.#membersMs = nowMs;
    for (const id of removed) this.#targets.delete(id);
    for (const target of targets) this.#targets.set(target.id, { target, seenMs: nowMs });
  }
}

/**
 * The latest first. Of similar events in a row, only the last. Of an event that a target was taken
 * and that its lease was acquired, only the first.
 */
function gathered(events: readonly LoggedEvent[]): Happening[] {
  const happenings: Happening[] = [];
  const grantOf = (event: LoggedEvent) => `${event.instance} ${targetOf(event)} ${event.fence}`;
  const told = new Set<string>();
  for (const event of events.toReversed()) {
    if (event.event === 'target.taken') told.add(grantOf(event));
    if (event.event === 'lease.acquired' && told.has(grantOf(event))) continue;
    const last = happenings.at(-1);
    if (last !== undefined && areAlike(last.event, event))
      happenings[happenings.length - 1] = { event: last.event, more: last.more + 1 };
    else if (happenings.length === MAX_HAPPENINGS) break;
    else happenings.push({ event, more: 0 });
  }
  return happenings;
}

function areAlike(a: LoggedEvent, b: LoggedEvent): boolean {
  return a.event === b.event && a.instance === b.instance && a.how === b.how;
}

function count(
  counts: { -readonly [C in keyof TopView['counts']]: number },
  { owner, reason }: PicturedTarget,
): void {
  counts.targets++;
  if (owner !== null) counts.held++;
  if (reason === 'paused') counts.paused++;
  else if (owner === null) counts.unowned++;
  if (reason === 'late') counts.late++;
  if (reason === 'moving') counts.moving++;
}

function byTrouble(a: PicturedTarget, b: PicturedTarget): number {
  const place = ({ reason }: PicturedTarget) =>
    (TROUBLES.indexOf(reason) + TROUBLES.length + 1) % (TROUBLES.length + 1);
  return place(a) - place(b) || (a.id < b.id ? -1 : 1);
}

type Compare = (a: MemberView, b: MemberView) => number;

const byName: Compare = (a, b) => (a.id < b.id ? -1 : 1);

const BY: Readonly<Record<Order, Compare>> = {
  name: byName,
  owned: (a, b) => b.owned - a.owned || byName(a, b),
  heartbeat: (a, b) => a.expiresInMs - b.expiresInMs || byName(a, b),
  renewals: (a, b) => (b.vitals?.renewP99Ms ?? -1) - (a.vitals?.renewP99Ms ?? -1) || byName(a, b),
};
