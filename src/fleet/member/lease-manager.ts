/**
 * One instance as a member of the fleet. It beats, reads the fleet, plans which member should own
 * which target, and takes, asks for and hands over targets until the plan is met. There is no
 * leader: every instance does the same.
 *
 * Only the lease says which instance may work. Everything else (members, plans, signals) may be
 * late or wrong, which costs time and is never unsafe.
 *
 * **new** –start→ **running** –stop→ **stopping** (it announces that, takes nothing more, hands
 * over the targets that others ask for, then the rest) → **stopped**. It does not start again: an
 * instance id is good for one life.
 */
import { isDoneWithin } from '../../core/clock.ts';
import { ClosedError } from '../../core/errors.ts';
import { checkTargetId } from '../../core/ids.ts';
import { jittered } from '../../core/random.ts';
import { MAX_FENCE } from '../../lease/fence.ts';
import type { Leases } from '../../lease/leases.ts';
import type { Timings } from '../../lease/timings.ts';
import type { Runtime } from '../../store/runtime.ts';
import {
  decide,
  lookAgainAtMs,
  type RoundSelf,
  type RoundView,
  type Share,
  type WantedTarget,
} from '../plan/decide.ts';
import { type Explanation, explain, loadsOf } from '../plan/explain.ts';
import { hashTarget } from '../plan/hash.ts';
import { firstChoice, hasCommand } from '../plan/plan.ts';
import { PlanCache } from '../plan/plan-cache.ts';
import type { TargetSource } from '../targets/target-source.ts';
import { FleetMembers } from '../view/fleet-members.ts';
import { FleetTarget } from '../view/fleet-target.ts';
import { SCAN_CHUNK, scanLeases } from '../view/lease-scan.ts';
import type { FleetMember } from '../view/member.ts';
import { PinSet } from '../view/pin-set.ts';
import { askTopic, Handover, readAsk } from './handover.ts';
import { FLEET_TOPIC, Heartbeat, isOrder, orderFor } from './heartbeat.ts';
import { EVERYTHING, MemberLoop, type Need, NOTHING } from './member-loop.ts';
import { TargetLeases, type TargetLeasesOptions } from './target-leases.ts';

/** An ask that brought nothing is repeated with the next regular round, which may be early. */
const PATIENCE_SHARE = 0.8;
/** After hints may have been missed, each instance reads the fleet within this time. */
const GAP_SPREAD_MS = 500;
/** After a join, moves wait for more joins: a share of the renewal interval, within limits. */
const SETTLE_SHARE = 1 / 10;
const MIN_SETTLE_MS = 100;
const MAX_SETTLE_MS = 1_000;
/** A stopping instance gives the others this long to ask for a settled target; then it chooses. */
const ASK_WAIT_MS = 500;
/** How often a stopping instance checks whether that time is over. */
const STOP_CHECK_MS = 20;
/** The share of the time to stop for announcing it: a store that hangs must not take the rest. */
const ANNOUNCE_SHARE = 1 / 4;
/** Kept of that time for leaving, however long work takes: a share of it, and at most this. */
const LEAVE_SHARE = 1 / 10;
const MAX_LEAVE_MS = 500;
/** A walk over a large keyspace takes seconds; one that takes longer is given up. */
const WALK_MS = 30_000;
/** After a walk that failed: pauses double from this to the time between two walks. */
const WALK_RETRY_MS = 1_000;

export interface LeaseManagerOptions extends TargetLeasesOptions {
  readonly targets: TargetSource;
  readonly weight: number;
  /** The names of the commands that this instance has; default as for a poller. */
  readonly commands?: readonly string[] | undefined;
  /** How often to look for members and targets of other programs; Infinity for never. */
  readonly discoverEveryMs: number;
}

export interface LeaseInfo {
  readonly sessionId: string;
  readonly ownerId: string | null;
  readonly state: 'unknown' | 'owned' | 'other' | 'uncertain';
  readonly acquiredAt: Date | null;
  readonly lastRenewedAt: Date | null;
}

export type ManagerState = 'new' | 'running' | 'stopping' | 'stopped';

export class LeaseManager {
  readonly #rt: Runtime;
  readonly #leases: Leases;
  readonly #options: LeaseManagerOptions;
  readonly #timings: Timings;
  readonly #source: TargetSource;
  /** Every target in the source, and those that are still being released. */
  readonly #targets = new Map<string, FleetTarget>();
  readonly #heartbeat: Heartbeat;
  readonly #fleetMembers: FleetMembers;
  readonly #pins: PinSet;
  readonly #plans = new PlanCache();
  readonly #loop: MemberLoop;
  readonly #targetLeases: TargetLeases;
  readonly #handover: Handover;
  readonly #unsubscribes: (() => void)[] = [];
  readonly #unlisten: () => void;
  readonly #over = new AbortController();
  #state: ManagerState = 'new';
  #starting: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;
  /** The members of the last plan, this instance first. */
  #members: readonly FleetMember[] = [];
  #listedVersion = -1;
  /** Targets or pins have changed since each target was given its pin. */
  #arePinsNew = true;
  /** Owned targets that were pinned to a member without a heartbeat in the round before. */
  #orphanedPins = new Set<string>();

  constructor(rt: Runtime, leases: Leases, options: LeaseManagerOptions) {
    this.#rt = rt;
    this.#leases = leases;
    this.#options = options;
    this.#source = options.targets;
    this.#timings = leases.check({ ...options.timings, class: 'poll' });
    const { renewEveryMs } = this.#timings;
    this.#pins = new PinSet(rt.store);
    this.#heartbeat = new Heartbeat(rt, options, this.#timings);
    this.#fleetMembers = new FleetMembers(rt);
    this.#loop = new MemberLoop(rt, renewEveryMs, (need, lateMs) => this.#round(need, lateMs));
    this.#targetLeases = new TargetLeases(rt, leases, this.#loop, options);
    this.#handover = new Handover(rt, this.#targetLeases, renewEveryMs * PATIENCE_SHARE);
    this.#unlisten = rt.events.on('store.forgot', () => this.#pins.reset());
  }

  get instanceId(): string {
    return this.#rt.instanceId;
  }

  get state(): ManagerState {
    return this.#state;
  }

  /** Joins the fleet. Resolves after the first round, even if the store could not be asked. */
  start(): Promise<void> {
    if (this.#state === 'stopping' || this.#state === 'stopped')
      throw new ClosedError({ operation: 'start: a lease manager runs once' });
    this.#starting ??= this.#start();
    return this.#starting;
  }

  /**
   * Hands everything over and leaves within `withinMs`, even if the store does not answer. Work in
   * flight has nearly all of that time to finish. A target whose work has not finished by then is
   * never handed over: its lease expires.
   */
  stop(withinMs: number): Promise<void> {
    this.#stopping ??= this.#stop(withinMs);
    return this.#stopping;
  }

  /** True if this instance owns the target, or could take it. */
  async tryAcquire(id: string): Promise<boolean> {
    checkTargetId(id);
    if (this.#state !== 'running') throw new ClosedError({ operation: 'tryAcquire' });
    const target = this.#targets.get(id);
    if (target === undefined || !this.#mayOwn(target)) return false;
    target.notBeforeMs = 0;
    if (!this.#heartbeat.isDraining) {
      await this.#targetLeases.take([target]);
      this.#onArrived(target);
    }
    return this.isOwned(id);
  }

  /**
   * Hands the target to another instance, or releases it if no other may take it. This instance
   * does not take it again automatically for one renewal interval.
   */
  async release(id: string): Promise<void> {
    const target = this.#targets.get(id);
    if (target === undefined) return;
    target.notBeforeMs = this.#rt.clock.monotonicMs() + this.#timings.renewEveryMs;
    await this.#passOn(target);
  }

  /**
   * Leaves the lease of an owned target to expire, because the work under it makes no progress and
   * does not stop. Another instance takes the target then, with a higher fence.
   */
  abandon(id: string): void {
    const target = this.#targets.get(id);
    if (target !== undefined) this.#targetLeases.abandon(target);
  }

  /** May new work on the target begin here? Synchronous, no I/O, reads the clocks itself. */
  isOwned(id: string): boolean {
    return this.#targetLeases.get(id)?.lease?.isHeld() === true;
  }

  ownedSessions(): string[] {
    return [...this.#targetLeases.owned].flatMap(({ id, lease }) => (lease?.isHeld() ? [id] : []));
  }

  /** The ids of all instances with a heartbeat, as the store has them now. */
  async getLiveNodes(): Promise<string[]> {
    const timeoutMs = this.#timings.operationTimeoutMs;
    const live = await this.#rt.store.members.list({ timeoutMs });
    return live.map(({ id }) => id);
  }

  /** The instance that should own the target, by the last plan of this instance. */
  preferredOwner(id: string): string | null {
    checkTargetId(id);
    const planned = this.#targets.get(id)?.planned;
    if (planned) return planned;
    return firstChoice(hashTarget(id), this.#successors())?.id ?? null;
  }

  leaseInfo(id: string): LeaseInfo {
    checkTargetId(id);
    const target = this.#targets.get(id);
    const { acquiredAt = null, lastRenewedAt = null } = target?.lease ?? {};
    const ownerId = target?.owner ?? null;
    const state = leaseState(target, ownerId);
    return { sessionId: id, ownerId, state, acquiredAt, lastRenewedAt };
  }

  /** Why the target is where it is, as far as this instance knows; null for an unknown target. */
  explain(id: string): Explanation | null {
    const target = this.#targets.get(id);
    if (target === undefined) return null;
    return explain(target, {
      members: this.#members,
      quotas: this.#plans.last.quotas,
      loads: loadsOf(this.#targets.values()),
      nowMs: this.#rt.clock.monotonicMs(),
    });
  }

  /**
   * A write under the target's fence was refused because a higher one was seen, although this
   * instance holds the lease: the store has lost data, and its clock lags. Takes the target again
   * with a higher fence. It transfers the target to itself, so that no other instance is granted it
   * in between, and so that a store in quarantine grants it at all.
   */
  outrank(id: string, fence: number, seen: number): void {
    const target = this.#targets.get(id);
    // No store mints a fence that high: a program other than Holdfast wrote it.
    if (target?.lease?.fence !== fence || seen >= MAX_FENCE) return;
    target.fenceFloor = seen + 1;
    void this.#targetLeases.retake(target);
  }

  async #start(): Promise<void> {
    this.#state = 'running';
    void this.#listen();
    void this.#discover();
    await this.#loop.start();
  }

  /** Looks, decides, acts. Returns when the next round is due, unless the rounds are woken. */
  async #round(need: Need, lateMs: number): Promise<number> {
    const { clock } = this.#rt;
    this.#heartbeat.noteDelay(lateMs);
    const areMembersNew = await this.#refresh(need);
    await this.#readLeases(need.owners || areMembersNew);
    const planMs = this.#replan();
    const { take, ask, release, drop, refresh } = decide(
      this.#view(),
      this.#self(),
      clock.monotonicMs(),
    );
    for (const target of release) void this.#targetLeases.release(target);
    for (const { id } of drop) this.#targets.delete(id);
    for (const { target, atMs } of refresh) target.refreshAtMs = atMs;
    this.#reportPlan(planMs);
    this.#handover.answerAll(this.#members, this.#share());
    await this.#targetLeases.take(take);
    return Math.min(
      this.#ask(ask),
      lookAgainAtMs(this.#targets.values(), this.#self()),
      this.#fleetMembers.earliestExpiryMs,
    );
  }

  /** Returns whether the members have changed. */
  async #refresh(need: Need): Promise<boolean> {
    const { operationTimeoutMs: timeoutMs, ttlMs } = this.#timings;
    const nowMs = this.#rt.clock.monotonicMs();
    const isMembersDue = need.members || this.#fleetMembers.earliestExpiryMs <= nowMs;
    const readPins = async () => {
      if (await this.#pins.refreshIfDue(nowMs, ttlMs, timeoutMs)) this.#arePinsNew = true;
    };
    const [areMembersNew] = await Promise.all([
      isMembersDue && this.#fleetMembers.refresh(timeoutMs),
      need.targets && this.#source.refresh(),
      isMembersDue && this.#beat(),
      isMembersDue && readPins(),
    ]);
    if (this.#source.version !== this.#listedVersion) this.#listTargets();
    if (isMembersDue) this.#removeOrphanedPins();
    return areMembersNew;
  }

  /** Beats, and once more if operators have given this instance an order. */
  async #beat(): Promise<void> {
    const [isOrderNew] = await Promise.all([this.#heartbeat.readOrder(), this.#beatOnce()]);
    if (isOrderNew) await this.#beatAndAnnounce();
  }

  async #beatAndAnnounce(): Promise<void> {
    await this.#beatOnce();
    this.#heartbeat.announce();
  }

  #beatOnce(): Promise<void> {
    const { asks } = this.#handover;
    return this.#heartbeat.beat({ owned: this.#targetLeases.owned.size, asks });
  }

  /**
   * A pin to a member that is gone has no effect, and never will: its id does not come back. The
   * owner of the target removes it in the second round without that member: the first may have read
   * the members before it joined.
   */
  #removeOrphanedPins(): void {
    const orphaned = [...this.#pins.all].flatMap(([target, { member }]) => {
      const isLive = member === this.instanceId || this.#fleetMembers.get(member) !== undefined;
      return isLive || this.#targetLeases.get(target) === undefined ? [] : [target];
    });
    const removable = orphaned.filter((target) => this.#orphanedPins.has(target));
    this.#orphanedPins = new Set(orphaned);
    if (removable.length === 0) return;
    // Housekeeping: a pin that is not removed now is removed later.
    this.#pins.remove(removable, this.#timings.operationTimeoutMs).catch(() => {});
  }

  #listTargets(): void {
    this.#listedVersion = this.#source.version;
    this.#arePinsNew = true;
    for (const id of this.#source.ids())
      if (!this.#targets.has(id)) this.#targets.set(id, new FleetTarget(id));
    for (const target of this.#targets.values()) target.command = this.#source.commandOf(target.id);
  }

  /** It is listed, and this instance has its command. */
  #mayOwn(target: FleetTarget): boolean {
    return this.#source.has(target.id) && hasCommand(this.#heartbeat.member, target);
  }

  async #readLeases(all: boolean): Promise<void> {
    const nowMs = this.#rt.clock.monotonicMs();
    const due = [...this.#targets.values()].filter(
      ({ state, refreshAtMs }) => state === 'watched' && (all || refreshAtMs <= nowMs),
    );
    for (let at = 0; at < due.length; at += SCAN_CHUNK) {
      const chunk = due.slice(at, at + SCAN_CHUNK);
      const lapsed = await scanLeases(this.#rt, chunk, this.#timings.operationTimeoutMs);
      for (const owner of lapsed) this.#fleetMembers.markLapsed(owner);
    }
  }

  /** Returns how long the plan took. */
  #replan(): number {
    const { clock } = this.#rt;
    const startMs = clock.monotonicMs();
    this.#members = [this.#heartbeat.member, ...this.#fleetMembers.others()];
    if (this.#arePinsNew) {
      for (const target of this.#targets.values()) target.pinned = this.#pins.memberOf(target.id);
      this.#arePinsNew = false;
    }
    const listed = [...this.#targets.values()].filter(({ id }) => this.#source.has(id));
    this.#plans.assign(this.#members, listed);
    return clock.monotonicMs() - startMs;
  }

  #reportPlan(tookMs: number): void {
    const { events } = this.#rt;
    if (!events.hasListener('fleet.planned')) return;
    events.emit('fleet.planned', {
      members: this.#members.length,
      targets: this.#plans.last.planned.length,
      quota: this.#share().quota,
      owned: this.#targetLeases.owned.size,
      tookMs,
    });
  }

  #view(): RoundView {
    const settleMs = this.#timings.renewEveryMs * SETTLE_SHARE;
    return {
      targets: this.#targets.values(),
      isListed: (id) => this.#source.has(id),
      members: this.#members,
      memberOf: (id) => this.#fleetMembers.get(id),
      settledAtMs:
        this.#fleetMembers.joinedAtMs + Math.min(Math.max(settleMs, MIN_SETTLE_MS), MAX_SETTLE_MS),
    };
  }

  #self(): RoundSelf {
    return { ...this.#heartbeat.member, isLeaving: this.#heartbeat.leaveByMs !== null };
  }

  /** What this instance may own, by the last plan. Before the first one it gives nothing away. */
  #share(): Share {
    const { isDraining, leaveByMs } = this.#heartbeat;
    const leftMs = leaveByMs === null ? undefined : leaveByMs - this.#rt.clock.monotonicMs();
    return {
      quota: this.#plans.last.quotas[0] ?? Number.POSITIVE_INFINITY,
      isDraining,
      isSplit: this.#plans.last.isSplit,
      withinMs: leftMs === undefined ? undefined : Math.max(0, leftMs),
    };
  }

  /** Asks for what may move now. Returns when the rest may. */
  #ask(wanted: readonly WantedTarget[]): number {
    const nowMs = this.#rt.clock.monotonicMs();
    const due = wanted.filter(({ fromMs }) => fromMs <= nowMs);
    this.#handover.ask(
      due.map(({ target }) => target),
      this.#share().quota,
    );
    let laterMs = Number.POSITIVE_INFINITY;
    for (const { fromMs } of wanted) if (fromMs > nowMs) laterMs = Math.min(laterMs, fromMs);
    return laterMs;
  }

  /** Hints make everything prompt; without them it happens in the next regular round. */
  async #listen(): Promise<void> {
    const { store, clock, instanceId } = this.#rt;
    // A store that comes back wakes all instances at once; they need not all ask it at once.
    const onGap = () => {
      this.#heartbeat.expectOrder();
      this.#pins.expect();
      this.#loop.wake(EVERYTHING, GAP_SPREAD_MS);
    };
    const onFleet = (message: string) => {
      if (message === orderFor(instanceId)) this.#heartbeat.expectOrder();
      // A pin concerns the plan of every instance.
      if (isOrder(message)) this.#pins.expect();
      if (message !== instanceId) this.#loop.wake(EVERYTHING);
    };
    const onAsk = (message: string) => this.#onAsk(message);
    const { signals } = store;
    const subscriptions = [
      () => signals.subscribe(FLEET_TOPIC, { onMessage: onFleet, onGap }),
      () => signals.subscribe(askTopic(instanceId), { onMessage: onAsk, onGap }),
      () => this.#source.listen(() => this.#wakeForTargets()),
    ];
    const offers = { onOffer: (id: string) => this.#onOffer(id), onGap };
    while (this.#state === 'running') {
      try {
        for (const subscribe of subscriptions.slice(this.#unsubscribes.length)) {
          const unsubscribe = await subscribe();
          // This manager has stopped meanwhile, and has undone the others.
          if (this.#over.signal.aborted) return unsubscribe();
          this.#unsubscribes.push(unsubscribe);
        }
        if (await this.#leases.listenForOffers('poll', offers)) return;
      } catch {
        // The store is unavailable: the rounds report that.
      }
      await clock.sleep(this.#timings.renewEveryMs, this.#over.signal).catch(() => {});
    }
  }

  /**
   * Looks for targets and members that other programs wrote, until this manager stops. Beside the
   * rounds: how long the walk takes depends on everything else in the store, and meanwhile this
   * instance has to beat.
   */
  async #discover(): Promise<void> {
    const { store, clock, random, events } = this.#rt;
    const { discoverEveryMs } = this.#options;
    const { signal } = this.#over;
    if (!Number.isFinite(discoverEveryMs)) return;
    let retryMs = WALK_RETRY_MS;
    while (!signal.aborted) {
      let pauseMs = discoverEveryMs;
      try {
        // One after the other: nothing waits for them, and the store serves others.
        await this.#source.discover();
        await store.members.list({ thorough: true, timeoutMs: WALK_MS });
        if (!signal.aborted) this.#loop.wake({ ...NOTHING, members: true, targets: true });
        retryMs = WALK_RETRY_MS;
      } catch (error) {
        if (!signal.aborted) events.emit('discovery.failed', { error });
        pauseMs = Math.min(retryMs, discoverEveryMs);
        retryMs = pauseMs * 2;
      }
      await clock.sleep(jittered(pauseMs, random), signal).catch(() => {});
    }
  }

  #wakeForTargets(): void {
    this.#loop.wake({ ...NOTHING, targets: true });
  }

  #onAsk(message: string): void {
    const ask = readAsk(message);
    if (ask === null) return;
    const asker = this.#fleetMembers.get(ask.from);
    if (this.#handover.answer(ask, asker, this.#share())) return;
    // An operator may have moved the target there, and this instance missed the signal.
    this.#pins.expect();
    this.#loop.wake({ ...NOTHING, members: true });
  }

  #onOffer(id: string): void {
    const target = this.#targets.get(id);
    if (target === undefined || !this.#mayOwn(target)) this.#wakeForTargets();
    // Even while draining: the owner has given it up, and from here it can be handed on.
    else if (this.#heartbeat.leaveByMs === null)
      void this.#targetLeases.claim(target).then(() => this.#onArrived(target));
  }

  /** When the last target that was asked for has arrived, a round may ask for more. */
  #onArrived(target: FleetTarget): void {
    if (this.#handover.arrived(target)) this.#loop.wake(NOTHING);
  }

  async #stop(withinMs: number): Promise<void> {
    if (this.#state === 'new') {
      this.#state = 'stopped';
      return;
    }
    this.#state = 'stopping';
    const { clock } = this.#rt;
    const leftMs = (untilMs: number) => Math.max(0, untilMs - clock.monotonicMs());
    const untilMs = clock.monotonicMs() + withinMs;
    const workUntilMs = untilMs - Math.min(withinMs * LEAVE_SHARE, MAX_LEAVE_MS);
    this.#heartbeat.prepareToLeave(workUntilMs);
    this.#targetLeases.takeNoMore();
    // First: the other instances are to ask for the targets.
    const announced = this.#beatAndAnnounce().catch(() => {});
    await isDoneWithin(clock, withinMs * ANNOUNCE_SHARE, announced);
    await this.#handOver(workUntilMs);
    // A round that is under way may still be granted a lease, and releases it.
    await isDoneWithin(clock, leftMs(workUntilMs), this.#loop.stop());
    await this.#targetLeases.settled(leftMs(workUntilMs));
    this.#over.abort();
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#targetLeases.close();
    this.#heartbeat.close();
    this.#unlisten();
    // If the store does not answer, the heartbeat expires.
    const leaveMs = Math.min(leftMs(untilMs), this.#timings.operationTimeoutMs);
    await isDoneWithin(clock, leaveMs, this.#heartbeat.leave(leaveMs));
    this.#state = 'stopped';
  }

  /**
   * Waits for other instances to ask for the settled targets, and transfers the rest unasked. A
   * target is released only if there is no other instance: a store in quarantine grants no free
   * key, but lets a successor claim a transferred one.
   */
  async #handOver(untilMs: number): Promise<void> {
    const { clock } = this.#rt;
    const settledAtMs = new Map<FleetTarget, number>();
    for (const target of this.#targetLeases.owned) {
      const markSettled = () => settledAtMs.set(target, clock.monotonicMs());
      const settled = this.#options.work.end(target.id, false);
      if (settled === null) markSettled();
      else void settled.then(markSettled);
    }
    const waitMs = this.#successors().length > 0 ? ASK_WAIT_MS : 0;
    while (this.#targetLeases.owned.size > 0) {
      const nowMs = clock.monotonicMs();
      const isOver = nowMs >= untilMs;
      for (const target of this.#targetLeases.owned) {
        const sinceMs = settledAtMs.get(target) ?? Number.POSITIVE_INFINITY;
        if (isOver || nowMs - sinceMs >= waitMs) void this.#passOn(target, 0);
      }
      if (this.#targetLeases.owned.size > 0) await clock.sleep(STOP_CHECK_MS);
    }
  }

  /** Transfers the target to another member once its work has settled, or releases it. */
  #passOn(target: FleetTarget, withinMs?: number): Promise<void> {
    const successors = this.#successors().filter(({ id }) => id !== this.instanceId);
    const planned = successors.find(({ id }) => id === target.planned);
    // A plan that is out of date may name one that lacks the command.
    const isAble = planned !== undefined && hasCommand(planned, target);
    const successor = isAble ? planned : firstChoice(target, successors);
    if (successor === undefined) return this.#targetLeases.release(target, withinMs);
    return this.#targetLeases.give(target, successor.id, withinMs);
  }

  /** The members that may take over. */
  #successors(): FleetMember[] {
    return [this.#heartbeat.member, ...this.#fleetMembers.others()].filter(
      ({ isForeign, isDraining }) => !isForeign && !isDraining,
    );
  }
}

function leaseState(target: FleetTarget | undefined, owner: string | null): LeaseInfo['state'] {
  const lease = target?.lease ?? null;
  if (lease !== null && target?.state !== 'lost')
    return lease.state === 'uncertain' ? 'uncertain' : 'owned';
  return owner === null ? 'unknown' : 'other';
}
