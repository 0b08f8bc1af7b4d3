/**
 * What one process knows of a fleet that it looks at. It asks the store for what it is told to ask for, and no more: who watches a large
 * fleet can not look at all of it all the time. What comes of several looks is put together by `settle`: who should own what, and what is
 * otherwise than it was.
 */
import type { Clock } from '../../core/clock.ts';
import { Emitter } from '../../core/events.ts';
import type { ReadReply } from '../../store/port/lease-store.ts';
import type { Store } from '../../store/port/store.ts';
import { explain, type FleetSight, loadsOf } from '../plan/explain.ts';
import { hashMember } from '../plan/hash.ts';
import { firstChoice, type Plan } from '../plan/plan.ts';
import { Planner } from '../plan/planner.ts';
import { TargetFeed } from '../targets/target-feed.ts';
import type { TargetIds, TargetRecord } from '../targets/target-record.ts';
import { LeaseScan, SURVEY_CHUNK, see } from '../view/lease-scan.ts';
import { type FleetMember, fleetMember } from '../view/member.ts';
import { Pins } from '../view/pins.ts';
import {
  areSameMembers,
  type FleetChange,
  type FleetPicture,
  type MemberView,
  memberView,
  type PicturedTarget,
  SightedTarget,
  whyOf,
} from './fleet-picture.ts';

const CALL = { timeoutMs: 5_000 };
/** A walk over a large keyspace takes its time. */
const WALK = { timeoutMs: 30_000 };
/** So many of the last requests are remembered for how long the store takes. */
const TRIPS_KEPT = 9;
/** Up to so many targets are told anew when they were renewed: in larger fleets that would be most of what is told. */
const SMALL_FLEET = 1_000;
/** What is left of a lease when this many renewals have not come: the first may just be on its way. */
const LATE_RENEWALS = 2;
/** Of an owner that does not say how often it renews: what is left of a lease that was renewed in time, as a share of the most ever seen. */
const LATE_SHARE = 1 / 3;
/** A lease that is about to end is not asked for more often than this. */
const LEAST_PAUSE_MS = 50;

export interface LookoutParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly sessionIds: TargetIds;
}

/** What is otherwise than when it was last settled. */
export interface Difference {
  readonly targets: readonly SightedTarget[];
  readonly removed: readonly string[];
  readonly members: boolean;
}

export class FleetState {
  readonly #parts: LookoutParts;
  /** Whoever owns it tells of sessions that make no sense; who only looks does not. */
  readonly #events = new Emitter();
  readonly #sessions: TargetFeed;
  readonly #survey: LeaseScan;
  readonly #pins: Pins;
  readonly #planner = new Planner();
  readonly #targets = new Map<string, SightedTarget>();
  /** In order of id; of these, those that are to be polled. */
  #ordered: readonly SightedTarget[] = [];
  #polled: readonly SightedTarget[] = [];
  #members: ReadonlyMap<string, FleetMember> = new Map();
  /** Of these, those that a target may like. */
  #takers: readonly FleetMember[] = [];
  /** Members have been looked at since it was last settled; and others have come or gone, or changed their kind. */
  #hasLooked = false;
  #hasOthers = false;
  /** As they were last told, and when. */
  #views: readonly MemberView[] = [];
  #viewedMs = 0;
  #plan: Plan | null = null;
  #loads: ReadonlyMap<string, number> = new Map();
  /** Looked at, or new, since it was last settled. */
  #touched = new Set<SightedTarget>();
  #removed = new Set<string>();
  /** Per owner, the longest that a lease of it had left when it was looked at. */
  readonly #longestMs = new Map<string, number>();
  readonly #tripsMs: number[] = [];
  /** When it was last settled, on both clocks. */
  #settledMs = 0;
  #at = 0;

  constructor(parts: LookoutParts) {
    const { store, clock, sessionIds: ids } = parts;
    this.#parts = parts;
    this.#sessions = new TargetFeed({ store, events: this.#events, ids });
    this.#survey = new LeaseScan({ store, clock, onLapse: () => {} });
    this.#pins = new Pins(store);
  }

  /** In order of id, also those that are paused. */
  get targets(): readonly SightedTarget[] {
    return this.#ordered;
  }

  target(id: string): SightedTarget | undefined {
    return this.#targets.get(id);
  }

  /** The session of a target, as it was when sessions were last looked at. */
  session(id: string): TargetRecord | undefined {
    return this.#sessions.sessions.get(id);
  }

  /** When the first of the heartbeats known runs out. */
  get earliestExpiryMs(): number {
    let earliestMs = Number.POSITIVE_INFINITY;
    for (const { expiresAtMs } of this.#members.values())
      earliestMs = Math.min(earliestMs, expiresAtMs);
    return earliestMs;
  }

  /** The median of the last few requests. */
  get roundTripMs(): number {
    const sorted = this.#tripsMs.toSorted((a, b) => a - b);
    return sorted[sorted.length >> 1] ?? 0;
  }

  /** Everything, for the first time. */
  async lookAtAll(): Promise<void> {
    await this.lookAtMembers();
    // Instances look for what other programs wrote from time to time. Where none runs, nobody has.
    if ([...this.#members.values()].every(({ isForeign }) => isForeign)) {
      await this.lookAtMembers({ ...WALK, thorough: true });
      await this.#sessions.discover();
    }
    await this.lookAtSessions();
    await this.lookAtPins();
    await this.lookAtLeases(this.#ordered);
  }

  async lookAtMembers(call: { timeoutMs: number; thorough?: boolean } = CALL): Promise<void> {
    const { store, clock } = this.#parts;
    const live = await this.#timed(() => store.members.list(call));
    const nowMs = clock.monotonicMs();
    const known = this.#members;
    const members = live
      .map((member) => fleetMember(member, known.get(member.id) ?? hashMember(member.id), nowMs))
      .sort(byId);
    this.#members = new Map(members.map((member) => [member.id, member]));
    const takers = members.filter(({ isForeign, isDraining }) => !isForeign && !isDraining);
    if (!areSameIds(members, [...known.values()]) || !areSameIds(takers, this.#takers))
      this.#hasOthers = true;
    this.#hasLooked = true;
    this.#takers = takers;
    for (const owner of this.#longestMs.keys())
      if (!this.#members.has(owner)) this.#longestMs.delete(owner);
  }

  async lookAtSessions(): Promise<void> {
    const changed = await this.#sessions.refresh();
    if (changed.size === 0) return;
    for (const id of changed) this.#note(id, this.#sessions.sessions.get(id));
    this.#ordered = [...this.#targets.values()].sort(byId);
    this.#polled = this.#ordered.filter(({ isPaused }) => !isPaused);
  }

  /** Where operators have moved what. */
  async lookAtPins(): Promise<void> {
    if (!(await this.#pins.refresh(CALL.timeoutMs))) return;
    for (const target of this.#targets.values()) {
      const pinned = this.#pins.memberOf(target.id);
      if (pinned === target.pinned) continue;
      target.pinned = pinned;
      this.#touched.add(target);
    }
  }

  async lookAtLeases(targets: readonly SightedTarget[]): Promise<void> {
    for (let at = 0; at < targets.length; at += SURVEY_CHUNK) {
      const chunk = targets.slice(at, at + SURVEY_CHUNK);
      await this.#timed(() => this.#survey.look(chunk, CALL.timeoutMs));
      const nowMs = this.#parts.clock.monotonicMs();
      for (const { owner, expiresAtMs } of chunk) this.#measure(owner, expiresAtMs - nowMs);
      for (const target of chunk) {
        this.#judge(target, nowMs);
        this.#touched.add(target);
      }
    }
  }

  /** The store has lost what it knew: sessions are listed anew with the next look at them. */
  forget(facts: { store: string; why: string }): void {
    this.#events.emit('store.forgot', facts);
    this.#pins.beginAnew();
  }

  /** Puts together what was seen. From now on pictures show it. */
  settle(): Difference {
    const { clock } = this.#parts;
    this.#settledMs = clock.monotonicMs();
    this.#at = Math.round(clock.wallMs());
    const isReplanned = this.#replan();
    const isNews = this.#ordered.length <= SMALL_FLEET;
    const targets: SightedTarget[] = [];
    for (const target of this.#hasOthers ? this.#ordered : this.#touched) {
      const { id, owner } = target;
      const isKnown = this.#targets.get(id) === target;
      if (isKnown && target.tell(this.#members.get(owner ?? ''), isNews)) targets.push(target);
    }
    const difference = {
      ...{ targets, removed: [...this.#removed] },
      members: (isReplanned || this.#hasLooked) && this.#hasNewViews(),
    };
    this.#touched = new Set();
    this.#removed = new Set();
    this.#hasLooked = false;
    this.#hasOthers = false;
    return difference;
  }

  picture(): FleetPicture {
    return {
      ...this.#when(),
      members: this.#viewMembers(),
      targets: this.#ordered.flatMap((target) => target.picture(this.#settledMs) ?? []),
    };
  }

  /** What is said of these, which are otherwise than they were told. */
  change(ids: Iterable<string>, gone: Iterable<string>, hasMembers: boolean): FleetChange {
    const removed = [...gone];
    const targets = [...ids].flatMap((id) => {
      return this.#targets.get(id)?.picture(this.#settledMs) ?? [];
    });
    return {
      ...this.#when(),
      ...(hasMembers && { members: this.#viewMembers() }),
      ...(targets.length > 0 && { targets }),
      ...(removed.length > 0 && { removed }),
    };
  }

  /** One target as the store has just shown it, among the others as they are known, with the reason in words. */
  describe(session: TargetRecord, reply: ReadReply): PicturedTarget & { readonly why: string } {
    const { sight } = this;
    const { nowMs } = sight;
    const target = new SightedTarget(session.id);
    see(target, reply, nowMs);
    this.#judge(target, nowMs);
    target.isPaused = session.isPaused;
    target.pinned = this.#pins.memberOf(session.id);
    target.preferred = this.#preferredOf(target);
    if (!target.isPaused) target.planned = this.#targets.get(session.id)?.planned ?? null;
    target.tell(this.#members.get(target.owner ?? ''), true);
    const picture = target.picture(nowMs) as PicturedTarget;
    return { ...picture, why: whyOf(picture, explain(target, sight).text) };
  }

  /** What targets are explained by. */
  get sight(): FleetSight {
    const { quotas = [] } = this.#plan ?? {};
    const members = [...this.#members.values()];
    return { members, quotas, loads: this.#loads, nowMs: this.#parts.clock.monotonicMs() };
  }

  close(): void {
    this.#sessions.close();
  }

  #note(id: string, session: TargetRecord | undefined): void {
    const known = this.#targets.get(id);
    if (session?.kind !== 'poll') {
      if (!this.#targets.delete(id)) return;
      this.#removed.add(id);
      return;
    }
    const target = known ?? new SightedTarget(id);
    target.isPaused = session.isPaused;
    if (target.isPaused) target.planned = null;
    if (known === undefined) {
      target.preferred = this.#preferredOf(target);
      target.pinned = this.#pins.memberOf(id);
    }
    this.#targets.set(id, target);
    this.#removed.delete(id);
    this.#touched.add(target);
  }

  #measure(owner: string | null, leftMs: number): void {
    if (owner === null || !Number.isFinite(leftMs)) return;
    if (leftMs > (this.#longestMs.get(owner) ?? 0)) this.#longestMs.set(owner, leftMs);
  }

  /** Whether its owner is late, and when it has to be looked at again for that. */
  #judge(target: SightedTarget, nowMs: number): void {
    const { owner, expiresAtMs } = target;
    target.isLate = false;
    if (expiresAtMs === 0) {
      target.lookAtMs = Number.POSITIVE_INFINITY;
      return;
    }
    const lateAtMs = owner === null ? expiresAtMs : expiresAtMs - this.#lateBelowMs(owner);
    target.isLate = lateAtMs < nowMs && owner !== null;
    target.lookAtMs = Math.max(target.isLate ? expiresAtMs : lateAtMs, nowMs + LEAST_PAUSE_MS);
  }

  #lateBelowMs(owner: string): number {
    const vitals = this.#members.get(owner)?.vitals ?? null;
    if (vitals !== null) return vitals.ttlMs - LATE_RENEWALS * vitals.renewEveryMs;
    return (this.#longestMs.get(owner) ?? 0) * LATE_SHARE;
  }

  /** Says whether there is another plan than before. Those that it puts elsewhere are touched by it. */
  #replan(): boolean {
    if (this.#hasOthers)
      for (const target of this.#ordered) target.preferred = this.#preferredOf(target);
    const members = [...this.#members.values()];
    const plan = this.#planner.plan(members, this.#polled);
    if (plan === this.#plan) return false;
    this.#plan = plan;
    for (const [t, target] of this.#polled.entries()) {
      const planned = members[plan.planned[t] as number]?.id ?? null;
      if (planned === target.planned) continue;
      target.planned = planned;
      this.#touched.add(target);
    }
    this.#loads = loadsOf(this.#polled);
    return true;
  }

  #preferredOf(target: SightedTarget): string | null {
    return firstChoice(target, this.#takers)?.id ?? null;
  }

  /** Whether members are otherwise than they were last told, by more than time. */
  #hasNewViews(): boolean {
    const views = this.#viewMembers();
    const goneByMs = this.#settledMs - this.#viewedMs;
    if (areSameMembers(this.#views, views, goneByMs)) return false;
    this.#views = views;
    this.#viewedMs = this.#settledMs;
    return true;
  }

  #viewMembers(): readonly MemberView[] {
    const { quotas = [] } = this.#plan ?? {};
    return [...this.#members.values()].map((member, m) =>
      memberView(member, this.#loads.get(member.id) ?? 0, quotas[m] ?? 0, this.#settledMs),
    );
  }

  #when(): Pick<FleetPicture, 'at' | 'roundTripMs'> {
    return { at: this.#at, roundTripMs: this.roundTripMs };
  }

  async #timed<T>(request: () => Promise<T>): Promise<T> {
    const { clock } = this.#parts;
    const sentMs = clock.monotonicMs();
    const reply = await request();
    this.#tripsMs.push(clock.monotonicMs() - sentMs);
    if (this.#tripsMs.length > TRIPS_KEPT) this.#tripsMs.shift();
    return reply;
  }
}

function areSameIds(some: readonly FleetMember[], others: readonly FleetMember[]): boolean {
  return some.length === others.length && some.every(({ id }, i) => id === others[i]?.id);
}

function byId(a: { id: string }, b: { id: string }): number {
  return a.id < b.id ? -1 : 1;
}
