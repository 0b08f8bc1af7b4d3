/**
 * The fleet as one process that watches it knows it. Its caller says which part to read: a watcher
 * of a large fleet cannot read all of it all the time. `publish` puts several reads together: it
 * plans, and returns the changes since the last time.
 */
import type { ReadReply } from '../../store/port/lease-store.ts';
import type { Runtime } from '../../store/runtime.ts';
import { type ExplainedFleet, explain, loadsOf } from '../plan/explain.ts';
import { hashMember } from '../plan/hash.ts';
import { firstChoice } from '../plan/plan.ts';
import { PlanCache } from '../plan/plan-cache.ts';
import type { TargetIds, TargetRecord } from '../targets/target-record.ts';
import { TargetWatch } from '../targets/target-watch.ts';
import { markLease, SCAN_CHUNK, scanLeases } from '../view/lease-scan.ts';
import { type FleetMember, fleetMember } from '../view/member.ts';
import { PinSet } from '../view/pin-set.ts';
import {
  areSameMembers,
  type FleetChange,
  type FleetPicture,
  type MemberView,
  memberView,
  type PicturedTarget,
  whyOf,
} from './fleet-picture.ts';
import { WatchedTarget } from './watched-target.ts';

const CALL = { timeoutMs: 5_000 };
/** A walk over a large keyspace takes longer. */
const WALK = { timeoutMs: 30_000 };
/** How many of the last requests count for the round trip. */
const TRIPS_KEPT = 9;
/**
 * Up to so many targets a renewal is published: in larger fleets it would be most of the traffic.
 */
const SMALL_FLEET = 1_000;
/** An owner is late after this many renewals: the first may just be on its way. */
const LATE_RENEWALS = 2;
/** For an owner that does not say how often it renews: the share of its longest known lease. */
const LATE_SHARE = 1 / 3;
/** A lease that is about to expire is not read more often than this. */
const MIN_PAUSE_MS = 50;

/** The changes since the last `publish`. */
export interface Difference {
  readonly targets: readonly WatchedTarget[];
  readonly removed: readonly string[];
  readonly members: boolean;
}

export class FleetState {
  readonly #rt: Runtime;
  readonly #watch: TargetWatch;
  readonly #pins: PinSet;
  readonly #plans = new PlanCache();
  readonly #targets = new Map<string, WatchedTarget>();
  /** In order of id. */
  #ordered: readonly WatchedTarget[] = [];
  /** Those of them that are not paused. */
  #polled: readonly WatchedTarget[] = [];
  #members: ReadonlyMap<string, FleetMember> = new Map();
  /** Those of them that a target may prefer. */
  #takers: readonly FleetMember[] = [];
  /** Members were read since the last `publish`. */
  #hasReadMembers = false;
  /** Members joined, left, or began or ended to drain since the last `publish`. */
  #hasOtherMembers = false;
  /** The members as they were last published, and when. */
  #views: readonly MemberView[] = [];
  #viewedAtMs = 0;
  #loads: ReadonlyMap<string, number> = new Map();
  /** Read or added since the last `publish`. */
  #touched = new Set<WatchedTarget>();
  #removed = new Set<string>();
  /** Per owner, the longest that a lease had left when it was read. */
  readonly #maxLeftMs = new Map<string, number>();
  readonly #tripsMs: number[] = [];
  /** When the fleet was last published, on both clocks. */
  #publishedAtMs = 0;
  #at = 0;

  constructor(rt: Runtime, targetIds: TargetIds) {
    this.#rt = rt;
    // Without events: the owners of the targets report unreadable records.
    this.#watch = new TargetWatch(rt.store, targetIds);
    this.#pins = new PinSet(rt.store);
  }

  /** In order of id; paused ones too. */
  get targets(): readonly WatchedTarget[] {
    return this.#ordered;
  }

  target(id: string): WatchedTarget | undefined {
    return this.#targets.get(id);
  }

  /** When the first of the known heartbeats expires. */
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

  async refreshAll(): Promise<void> {
    await this.refreshMembers();
    // Instances find what other programs wrote now and then. Where none runs, none has.
    if ([...this.#members.values()].every(({ isForeign }) => isForeign)) {
      await this.refreshMembers({ ...WALK, thorough: true });
      await this.#watch.discover();
    }
    await this.refreshTargets();
    await this.refreshPins();
    await this.refreshLeases(this.#ordered);
  }

  async refreshMembers(call: { timeoutMs: number; thorough?: boolean } = CALL): Promise<void> {
    const { store, clock } = this.#rt;
    const live = await this.#timed(() => store.members.list(call));
    const nowMs = clock.monotonicMs();
    const known = this.#members;
    const members = live
      .map((member) => fleetMember(member, known.get(member.id) ?? hashMember(member.id), nowMs))
      .sort(byId);
    this.#members = new Map(members.map((member) => [member.id, member]));
    const takers = members.filter(({ isForeign, isDraining }) => !isForeign && !isDraining);
    if (!areSameIds(members, [...known.values()]) || !areSameIds(takers, this.#takers))
      this.#hasOtherMembers = true;
    this.#hasReadMembers = true;
    this.#takers = takers;
    for (const owner of this.#maxLeftMs.keys())
      if (!this.#members.has(owner)) this.#maxLeftMs.delete(owner);
  }

  async refreshTargets(): Promise<void> {
    const changed = await this.#watch.refresh();
    if (changed.size === 0) return;
    for (const id of changed) this.#setTarget(id, this.#watch.records.get(id));
    this.#ordered = [...this.#targets.values()].sort(byId);
    this.#polled = this.#ordered.filter(({ isPaused }) => !isPaused);
  }

  async refreshPins(): Promise<void> {
    if (!(await this.#pins.refresh(CALL.timeoutMs))) return;
    for (const target of this.#targets.values()) {
      const pinned = this.#pins.memberOf(target.id);
      if (pinned === target.pinned) continue;
      target.pinned = pinned;
      this.#touched.add(target);
    }
  }

  async refreshLeases(targets: readonly WatchedTarget[]): Promise<void> {
    for (let at = 0; at < targets.length; at += SCAN_CHUNK) {
      const chunk = targets.slice(at, at + SCAN_CHUNK);
      await this.#timed(() => scanLeases(this.#rt, chunk, CALL.timeoutMs));
      const nowMs = this.#rt.clock.monotonicMs();
      for (const { owner, expiresAtMs } of chunk) this.#measure(owner, expiresAtMs - nowMs);
      for (const target of chunk) {
        this.#markLate(target, nowMs);
        this.#touched.add(target);
      }
    }
  }

  /** After data loss: the next refresh reads targets and pins from the beginning. */
  reset(): void {
    this.#watch.reset();
    this.#pins.reset();
  }

  /** Plans with the latest reads. From now on pictures show them. */
  publish(): Difference {
    const { clock } = this.#rt;
    this.#publishedAtMs = clock.monotonicMs();
    this.#at = Math.round(clock.wallMs());
    const isReplanned = this.#replan();
    const isRenewalNews = this.#ordered.length <= SMALL_FLEET;
    const targets: WatchedTarget[] = [];
    for (const target of this.#hasOtherMembers ? this.#ordered : this.#touched) {
      const { id, owner } = target;
      const isKnown = this.#targets.get(id) === target;
      if (isKnown && target.publish(this.#members.get(owner ?? ''), isRenewalNews))
        targets.push(target);
    }
    const difference = {
      targets,
      removed: [...this.#removed],
      members: (isReplanned || this.#hasReadMembers) && this.#publishMembers(),
    };
    this.#touched = new Set();
    this.#removed = new Set();
    this.#hasReadMembers = false;
    this.#hasOtherMembers = false;
    return difference;
  }

  picture(): FleetPicture {
    return {
      at: this.#at,
      roundTripMs: this.roundTripMs,
      members: this.#viewMembers(),
      targets: this.#ordered.flatMap((target) => target.picture(this.#publishedAtMs) ?? []),
    };
  }

  /** The part of the picture that has changed, for a watcher that has the rest. */
  change(ids: Iterable<string>, gone: Iterable<string>, hasMembers: boolean): FleetChange {
    const removed = [...gone];
    const targets = [...ids].flatMap(
      (id) => this.#targets.get(id)?.picture(this.#publishedAtMs) ?? [],
    );
    return {
      at: this.#at,
      roundTripMs: this.roundTripMs,
      ...(hasMembers && { members: this.#viewMembers() }),
      ...(targets.length > 0 && { targets }),
      ...(removed.length > 0 && { removed }),
    };
  }

  /** One target with the lease that was just read, in the fleet as it is known, and why. */
  describe(record: TargetRecord, lease: ReadReply): PicturedTarget & { readonly why: string } {
    const fleet = this.explained;
    const { nowMs } = fleet;
    const { id, isPaused, command } = record;
    const target = new WatchedTarget(id);
    target.command = command;
    markLease(target, lease, nowMs);
    this.#markLate(target, nowMs);
    target.isPaused = isPaused;
    target.pinned = this.#pins.memberOf(id);
    target.preferred = this.#preferredOf(target);
    if (!isPaused) target.planned = this.#targets.get(id)?.planned ?? null;
    target.publish(this.#members.get(target.owner ?? ''), true);
    const picture = target.picture(nowMs) as PicturedTarget;
    return { ...picture, why: whyOf(picture, explain(target, fleet).text) };
  }

  /** The fleet that explanations refer to. */
  get explained(): ExplainedFleet {
    return {
      members: [...this.#members.values()],
      quotas: this.#plans.last.quotas,
      loads: this.#loads,
      nowMs: this.#rt.clock.monotonicMs(),
    };
  }

  #setTarget(id: string, record: TargetRecord | undefined): void {
    const known = this.#targets.get(id);
    if (record?.kind !== 'poll') {
      if (this.#targets.delete(id)) this.#removed.add(id);
      return;
    }
    const target = known ?? new WatchedTarget(id);
    target.isPaused = record.isPaused;
    if (target.isPaused) target.planned = null;
    if (known === undefined || target.command !== record.command) {
      target.command = record.command;
      target.preferred = this.#preferredOf(target);
      target.pinned = this.#pins.memberOf(id);
    }
    this.#targets.set(id, target);
    this.#removed.delete(id);
    this.#touched.add(target);
  }

  #measure(owner: string | null, leftMs: number): void {
    if (owner === null || !Number.isFinite(leftMs)) return;
    if (leftMs > (this.#maxLeftMs.get(owner) ?? 0)) this.#maxLeftMs.set(owner, leftMs);
  }

  /** Whether its owner is late to renew, and when its lease is read again for that. */
  #markLate(target: WatchedTarget, nowMs: number): void {
    const { owner, expiresAtMs } = target;
    target.isLate = false;
    if (expiresAtMs === 0) {
      target.refreshAtMs = Number.POSITIVE_INFINITY;
      return;
    }
    const lateAtMs = owner === null ? expiresAtMs : expiresAtMs - this.#lateBelowMs(owner);
    target.isLate = lateAtMs < nowMs && owner !== null;
    target.refreshAtMs = Math.max(target.isLate ? expiresAtMs : lateAtMs, nowMs + MIN_PAUSE_MS);
  }

  #lateBelowMs(owner: string): number {
    const vitals = this.#members.get(owner)?.vitals ?? null;
    if (vitals !== null) return vitals.ttlMs - LATE_RENEWALS * vitals.renewEveryMs;
    return (this.#maxLeftMs.get(owner) ?? 0) * LATE_SHARE;
  }

  /** Returns whether there is a new plan. */
  #replan(): boolean {
    if (this.#hasOtherMembers)
      for (const target of this.#ordered) target.preferred = this.#preferredOf(target);
    const before = this.#plans.last;
    const moved = this.#plans.assign([...this.#members.values()], this.#polled);
    for (const target of moved) this.#touched.add(target);
    if (this.#plans.last === before) return false;
    this.#loads = loadsOf(this.#polled);
    return true;
  }

  #preferredOf(target: WatchedTarget): string | null {
    return firstChoice(target, this.#takers)?.id ?? null;
  }

  /** Returns whether the members have changed by more than time. */
  #publishMembers(): boolean {
    const views = this.#viewMembers();
    const elapsedMs = this.#publishedAtMs - this.#viewedAtMs;
    if (areSameMembers(this.#views, views, elapsedMs)) return false;
    this.#views = views;
    this.#viewedAtMs = this.#publishedAtMs;
    return true;
  }

  #viewMembers(): readonly MemberView[] {
    const { quotas } = this.#plans.last;
    return [...this.#members.values()].map((member, m) =>
      memberView(member, this.#loads.get(member.id) ?? 0, quotas[m] ?? 0, this.#publishedAtMs),
    );
  }

  async #timed<T>(request: () => Promise<T>): Promise<T> {
    const { clock } = this.#rt;
    const sentAtMs = clock.monotonicMs();
    const reply = await request();
    this.#tripsMs.push(clock.monotonicMs() - sentAtMs);
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
