/**
 * One instance of the fleet: it says that it lives, sees who else does, works out who should own what, and takes, asks
 * for and hands over targets until that is so. There is no leader; every instance does the same.
 *
 * Nothing here decides who may work: that is the lease alone. Everything else, members, plans, signals, may be late or
 * wrong, and costs time, never safety.
 *
 * **New** –start→ **running** –stop→ **stopping** (it says so, starts nothing new, hands over what is asked for, lets go
 * of the rest) → **stopped**. It does not start again: an instance id is good for one life.
 */
import { type Clock, isDoneWithin } from '../../core/clock.ts';
import { ClosedError } from '../../core/errors.ts';
import type { Emitter } from '../../core/events.ts';
import { checkTargetId } from '../../core/ids.ts';
import type { Random } from '../../core/random.ts';
import type { Tracing } from '../../core/tracing.ts';
import { HIGHEST_FENCE } from '../../lease/fence.ts';
import type { Lease } from '../../lease/lease.ts';
import type { Leases } from '../../lease/leases.ts';
import type { TimingOptions, Timings } from '../../lease/timings.ts';
import type { Store } from '../../store/port/store.ts';
import { type Explanation, explain, loadsOf } from '../plan/explain.ts';
import { hashTarget } from '../plan/hash.ts';
import { firstChoice } from '../plan/plan.ts';
import { LeaseScan } from '../view/lease-scan.ts';
import type { FleetMember } from '../view/member.ts';
import { Membership } from '../view/membership.ts';
import { Pins } from '../view/pins.ts';
import type { TargetEntry } from '../view/target-entry.ts';
import { Coordination, type TargetSource } from './coordination.ts';
import { TargetDiscovery } from './discovery.ts';
import { askTopic, Handover, readAsk } from './handover.ts';
import { FLEET_TOPIC, Heartbeat, isOrder, orderFor } from './heartbeat.ts';
import { type Duties, Ownership } from './ownership.ts';
import { EVERYTHING, MemberRounds, NOTHING } from './rounds.ts';
import { VitalSigns } from './vitals.ts';

/** An ask that came to nothing is repeated with the next regular round, which comes a little early. */
const PATIENCE_SHARE = 0.8;
/** After hints may have been missed, instances look again within this time. */
const GAP_SPREAD_MS = 500;
/** A stopping instance gives the others this long to ask for what has settled; then it chooses whom to hand it to. */
const ASK_WAIT_MS = 500;
/** How often a stopping instance looks whether that time is over. */
const STOP_LOOK_MS = 20;
/** The share of the time to stop that it takes at most to say so: a store that hangs must not take the time of the rest. */
const SAY_SHARE = 1 / 4;
/** Kept of that time for leaving, whatever the work on targets takes: a share of it, and at most this. */
const LEAVE_SHARE = 1 / 10;
const LEAVE_MOST_MS = 500;

export interface LeaseManagerParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly leases: Leases;
  readonly tracing?: Tracing;
  readonly instanceId: string;
  readonly targets: TargetSource;
  readonly duties: Duties;
  readonly timings: TimingOptions;
  readonly weight: number;
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
  readonly #parts: LeaseManagerParts;
  readonly #timings: Timings;
  readonly #entries = new Map<string, TargetEntry>();
  readonly #vitals: VitalSigns;
  readonly #presence: Heartbeat;
  readonly #roster: Membership;
  readonly #holdings: Ownership;
  readonly #moves: Handover;
  readonly #coordination: Coordination;
  readonly #rounds: MemberRounds;
  readonly #discovery: TargetDiscovery;
  readonly #unsubscribes: (() => void)[] = [];
  readonly #unlisten: () => void;
  readonly #over = new AbortController();
  #state: ManagerState = 'new';
  #starting: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;

  constructor(parts: LeaseManagerParts) {
    const { store, clock, events } = parts;
    this.#parts = parts;
    this.#timings = parts.leases.check({ ...parts.timings, class: 'poll' });
    const { ttlMs, renewEveryMs, operationTimeoutMs: timeoutMs } = this.#timings;
    const entry = (id: string) => this.#entries.get(id);
    const onFreed = () => this.#rounds.poke(NOTHING);
    const onTaken = (taken: TargetEntry) => {
      if (this.#moves.onTaken(taken)) this.#rounds.poke(NOTHING);
    };
    const pins = new Pins(store);
    this.#unlisten = events.on('store.forgot', () => {
      pins.beginAnew();
      this.#coordination.expectPins();
    });
    const vitals = new VitalSigns({ clock, events, ttlMs, renewEveryMs });
    this.#vitals = vitals;
    this.#presence = new Heartbeat({ ...parts, vitals, ttlMs, timeoutMs });
    this.#roster = new Membership({ store, clock, events, self: () => this.#presence.member });
    this.#holdings = new Ownership({ ...parts, ttlMs, entry, onFreed, onTaken });
    this.#moves = new Handover({
      ...parts,
      holdings: this.#holdings,
      patienceMs: renewEveryMs * PATIENCE_SHARE,
      entry,
    });
    this.#coordination = new Coordination(
      {
        ...parts,
        timings: this.#timings,
        presence: this.#presence,
        roster: this.#roster,
        survey: new LeaseScan({ store, clock, onLapse: (member) => this.#roster.lapse(member) }),
        holdings: this.#holdings,
        moves: this.#moves,
        pins,
      },
      this.#entries,
    );
    const round = this.#coordination.round.bind(this.#coordination);
    const onLate = (lateMs: number) => vitals.late(lateMs);
    this.#rounds = new MemberRounds({ ...parts, everyMs: renewEveryMs, onLate, round });
    const onFound = () => this.#rounds.poke({ ...NOTHING, members: true, targets: true });
    this.#discovery = new TargetDiscovery({ ...parts, onFound });
  }

  get instanceId(): string {
    return this.#parts.instanceId;
  }

  get state(): ManagerState {
    return this.#state;
  }

  /** Takes part from now on. Resolves after the first look at the fleet, or when the store could not be asked: then it goes on trying. */
  start(): Promise<void> {
    if (this.#state === 'stopping' || this.#state === 'stopped')
      throw new ClosedError({ operation: 'start: a lease manager runs once' });
    this.#starting ??= this.#start();
    return this.#starting;
  }

  /**
   * Hands everything over and leaves, within `withinMs`, even if the store does not answer. Work in flight has nearly all of that
   * time to finish; what has not by then is never handed over: its lease runs out.
   */
  stop(withinMs: number): Promise<void> {
    this.#stopping ??= this.#stop(withinMs);
    return this.#stopping;
  }

  /** True if the target is this instance's, or was to be had. */
  async tryAcquire(id: string): Promise<boolean> {
    checkTargetId(id);
    if (this.#state !== 'running') throw new ClosedError({ operation: 'tryAcquire' });
    const entry = this.#entries.get(id);
    if (entry === undefined || !this.#parts.targets.has(id)) return false;
    entry.notBeforeMs = 0;
    if (!this.#presence.isDraining) await this.#holdings.take([entry]);
    return this.isOwned(id);
  }

  /**
   * Hands the target to another instance, or frees it if there is none that may take it. This instance does not take it again by itself
   * for one renewal interval.
   */
  async release(id: string): Promise<void> {
    const entry = this.#entries.get(id);
    if (entry === undefined) return;
    entry.notBeforeMs = this.#parts.clock.monotonicMs() + this.#timings.renewEveryMs;
    await this.#passOn(entry);
  }

  /** May new work on the target begin here? Synchronous, no I/O, reads the clocks itself. */
  isOwned(id: string): boolean {
    const entry = this.#entries.get(id);
    return entry?.state === 'ours' && entry.lease?.isHeld() === true;
  }

  ownedSessions(): string[] {
    return [...this.#holdings.ours].flatMap(({ id, lease }) => (lease?.isHeld() ? [id] : []));
  }

  /** The ids of all instances with a heartbeat, as the store has them now. */
  async getLiveNodes(): Promise<string[]> {
    const timeoutMs = this.#timings.operationTimeoutMs;
    const live = await this.#parts.store.members.list({ timeoutMs });
    return live.map(({ id }) => id);
  }

  /** Who should own the target, by what this instance has last seen. */
  preferredOwner(id: string): string | null {
    checkTargetId(id);
    const planned = this.#entries.get(id)?.planned;
    if (planned) return planned;
    const target = hashTarget(id);
    return firstChoice(target, this.#successors())?.id ?? null;
  }

  leaseInfo(id: string): LeaseInfo {
    checkTargetId(id);
    const entry = this.#entries.get(id);
    const { acquiredAt = null, lastRenewedAt = null } = entry?.lease ?? {};
    const ownerId = entry?.owner ?? null;
    const state = leaseState(entry, ownerId);
    return { sessionId: id, ownerId, state, acquiredAt, lastRenewedAt };
  }

  /** Why the target is where it is, by what this instance has last seen; null for one it does not know. */
  explain(id: string): Explanation | null {
    const entry = this.#entries.get(id);
    if (entry === undefined) return null;
    const { members, plan } = this.#coordination;
    const loads = loadsOf(this.#entries.values());
    const nowMs = this.#parts.clock.monotonicMs();
    return explain(entry, { members, quotas: plan.quotas, loads, nowMs });
  }

  /**
   * What the target's fence protects has seen a higher one, although the lease is ours: the store has forgotten, and its
   * clock lags. Takes the target again, with a fence above that: it hands the target to itself, so that nobody is granted it in between,
   * and so that a store in quarantine grants it at all.
   */
  outrank(id: string, fence: number, seen: number): void {
    const entry = this.#entries.get(id);
    // A fence beyond all that can be minted was written by somebody else: nothing outranks it.
    if (entry?.lease?.fence !== fence || seen >= HIGHEST_FENCE) return;
    entry.fenceFloor = seen + 1;
    void this.#holdings.retake(entry);
  }

  async #start(): Promise<void> {
    this.#state = 'running';
    void this.#listen();
    void this.#discovery.run(this.#over.signal);
    await this.#rounds.start();
  }

  /** Hints make everything prompt; without them it still happens, at the next round. */
  async #listen(): Promise<void> {
    const { store, leases, clock, instanceId, targets } = this.#parts;
    // A store that comes back tells all instances at once; they need not all ask it at once.
    const onGap = () => {
      this.#presence.expectOrder();
      this.#coordination.expectPins();
      this.#rounds.poke(EVERYTHING, GAP_SPREAD_MS);
    };
    const onFleet = (message: string) => {
      if (message === orderFor(instanceId)) this.#presence.expectOrder();
      // Where a target is pinned concerns everybody's plan.
      if (isOrder(message)) this.#coordination.expectPins();
      if (message !== instanceId) this.#rounds.poke(EVERYTHING);
    };
    const onAsk = (message: string) => this.#onAsk(message);
    const { signals } = store;
    const subscriptions = [
      () => signals.subscribe(FLEET_TOPIC, { onMessage: onFleet, onGap }),
      () => signals.subscribe(askTopic(instanceId), { onMessage: onAsk, onGap }),
      () => targets.listen(() => this.#pokeTargets()),
    ];
    const offers = { onOffer: (id: string) => this.#onOffer(id), onGap };
    while (this.#state === 'running') {
      try {
        for (const subscribe of subscriptions.slice(this.#unsubscribes.length)) {
          const unsubscribe = await subscribe();
          // It took longer than this manager, which has undone the others.
          if (this.#over.signal.aborted) return unsubscribe();
          this.#unsubscribes.push(unsubscribe);
        }
        if (await leases.hearOffers('poll', offers)) return;
      } catch {
        // As for every round: the store is not there now.
      }
      await clock.sleep(this.#timings.renewEveryMs, this.#over.signal).catch(() => {});
    }
  }

  #pokeTargets(): void {
    this.#rounds.poke({ ...NOTHING, targets: true });
  }

  #onAsk(message: string): void {
    const ask = readAsk(message);
    if (ask === null) return;
    const asker = this.#roster.get(ask.from);
    const isAnswered = this.#moves.hear(ask, asker, this.#coordination.share);
    if (isAnswered) return;
    // It may have been moved there by hand, and this instance not have heard of it.
    this.#coordination.expectPins();
    this.#rounds.poke({ ...NOTHING, members: true });
  }

  #onOffer(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || !this.#parts.targets.has(id)) this.#pokeTargets();
    // Also while draining: who offers it has let go of it, and from here it can be handed on.
    else if (this.#presence.leaveByMs === null) this.#holdings.claim(entry);
  }

  async #stop(withinMs: number): Promise<void> {
    if (this.#state === 'new') {
      this.#state = 'stopped';
      return;
    }
    this.#state = 'stopping';
    const { clock } = this.#parts;
    const leftMs = (untilMs: number) => Math.max(0, untilMs - clock.monotonicMs());
    const untilMs = clock.monotonicMs() + withinMs;
    const workUntilMs = untilMs - Math.min(withinMs * LEAVE_SHARE, LEAVE_MOST_MS);
    this.#presence.prepareToLeave(workUntilMs);
    this.#holdings.takeNoMore();
    // The first to hear of it are those who take over.
    await isDoneWithin(clock, withinMs * SAY_SHARE, this.#sayLeaving());
    await this.#handOver(workUntilMs);
    // A round that is under way may yet be granted something, and give it back.
    await isDoneWithin(clock, leftMs(workUntilMs), this.#rounds.stop());
    await this.#holdings.settled(leftMs(workUntilMs));
    this.#over.abort();
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    this.#holdings.close();
    this.#vitals.close();
    this.#unlisten();
    // Where the store can not be told, the heartbeat runs out.
    const leaveMs = Math.min(leftMs(untilMs), this.#timings.operationTimeoutMs);
    await isDoneWithin(clock, leaveMs, this.#presence.leave(leaveMs));
    this.#state = 'stopped';
  }

  async #sayLeaving(): Promise<void> {
    const { asks } = this.#moves;
    await this.#presence
      .beat({ owned: this.#holdings.ours.size, asks })
      .then(() => this.#presence.announce())
      .catch(() => {});
  }

  /**
   * Waits for the others to ask for what has settled, and hands them the rest unasked. It is let go of only where there is nobody: a store
   * in quarantine grants nobody a key that is free, but lets a successor have what it is handed.
   */
  async #handOver(untilMs: number): Promise<void> {
    const { clock, duties } = this.#parts;
    const settledAtMs = new Map<TargetEntry, number>();
    for (const entry of this.#holdings.ours) {
      const note = () => settledAtMs.set(entry, clock.monotonicMs());
      const settled = duties.end(entry.id, false);
      if (settled === null) note();
      else void settled.then(note);
    }
    const waitMs = this.#successors().length > 0 ? ASK_WAIT_MS : 0;
    while (this.#holdings.ours.size > 0) {
      const nowMs = clock.monotonicMs();
      const isOver = nowMs >= untilMs;
      for (const entry of this.#holdings.ours) {
        const sinceMs = settledAtMs.get(entry) ?? Number.POSITIVE_INFINITY;
        if (isOver || nowMs - sinceMs >= waitMs) void this.#passOn(entry, 0);
      }
      if (this.#holdings.ours.size > 0) await clock.sleep(STOP_LOOK_MS);
    }
  }

  /** Hands the target to another that may take it, once its work has settled. It is let go of where there is none. */
  #passOn(entry: TargetEntry, withinMs?: number): Promise<void> {
    const successors = this.#successors().filter(({ id }) => id !== this.instanceId);
    const planned = successors.find(({ id }) => id === entry.planned);
    const successor = planned ?? firstChoice(entry, successors);
    if (successor === undefined) return this.#holdings.letGo(entry, withinMs);
    return this.#holdings.give(entry, successor.id, withinMs);
  }

  /** Who may take over. */
  #successors(): FleetMember[] {
    return this.#roster.members().filter(({ isForeign, isDraining }) => !isForeign && !isDraining);
  }
}

function leaseState(entry: TargetEntry | undefined, owner: string | null): LeaseInfo['state'] {
  const lease: Lease | null = entry?.lease ?? null;
  if (lease !== null && entry?.state !== 'settling')
    return lease.state === 'uncertain' ? 'uncertain' : 'owned';
  return owner === null ? 'unknown' : 'other';
}
