/**
 * What one round comes to. Look: who lives, what there is, who owns it. Plan. Then act on the difference: what is free and
 * should be ours is taken; what is free and should be another's is taken too if that one does not come; what should be
 * ours and is another's is asked for; what is ours and should not be polled any more is let go.
 */
import type { Clock } from '../../core/clock.ts';
import type { Emitter } from '../../core/events.ts';
import type { Timings } from '../../lease/timings.ts';
import { type Plan, rankOf } from '../plan/plan.ts';
import { Planner } from '../plan/planner.ts';
import type { LeaseScan } from '../view/lease-scan.ts';
import type { FleetMember } from '../view/member.ts';
import type { Membership } from '../view/membership.ts';
import type { Pins } from '../view/pins.ts';
import { TargetEntry } from '../view/target-entry.ts';
import type { Handover, Share } from './handover.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { Ownership } from './ownership.ts';
import type { Need } from './rounds.ts';

/** Who is not planned for a free target waits this long per rank, so that it can not race the one who is. */
const STAGGER_MS = 150;
/** After a join, moves wait for more to come: a share of the renewal interval, within limits. */
const SETTLE_SHARE = 1 / 10;
const SETTLE_LEAST_MS = 100;
const SETTLE_MOST_MS = 1_000;

/** What there is to own. */
export interface TargetSource {
  /** The ids of all targets, as known. */
  ids(): Iterable<string>;
  has(id: string): boolean;
  /** Counts the changes of that. */
  readonly version: number;
  /** Brings it up to date. */
  refresh(): Promise<void>;
  /** Looks for targets that other programs have written. */
  discover(): Promise<void>;
  /** Calls back when a refresh may find something new; the function returned ends that. */
  listen(onHint: () => void): Promise<() => void>;
}

export interface CoordinationParts {
  readonly clock: Clock;
  readonly events: Emitter;
  readonly targets: TargetSource;
  readonly timings: Timings;
  readonly presence: Heartbeat;
  readonly roster: Membership;
  readonly survey: LeaseScan;
  readonly holdings: Ownership;
  readonly moves: Handover;
  readonly pins: Pins;
}

export class Coordination {
  readonly #parts: CoordinationParts;
  readonly #entries: Map<string, TargetEntry>;
  readonly #planner = new Planner();
  #members: readonly FleetMember[] = [];
  #listedVersion = -1;
  /** Pins are told of; one that was not heard of is found by a look now and then. */
  #readPinsAtMs = Number.NEGATIVE_INFINITY;
  /** Targets, or pins, are others than when each was last told of its pin. */
  #arePinsNew = true;
  /** Targets of ours that are pinned to somebody who was not there at the last look. */
  #orphanedPins = new Set<string>();

  constructor(parts: CoordinationParts, entries: Map<string, TargetEntry>) {
    this.#parts = parts;
    this.#entries = entries;
  }

  /** What this instance may own, by the last plan; nothing is given away before there was one. */
  get share(): Share {
    const { clock, presence } = this.#parts;
    const { isDraining, leaveByMs } = presence;
    return {
      quota: this.plan.quotas[0] ?? Number.POSITIVE_INFINITY,
      isDraining,
      ...(leaveByMs !== null && { withinMs: Math.max(0, leaveByMs - clock.monotonicMs()) }),
    };
  }

  get plan(): Plan {
    return this.#planner.last;
  }

  get members(): readonly FleetMember[] {
    return this.#members;
  }

  /** Says when the next round is due, unless something happens before. */
  async round(need: Need): Promise<number> {
    const areMembersNew = await this.#refresh(need);
    await this.#look(need.owners || areMembersNew);
    this.#dropUnlisted();
    this.#replan();
    const { take, wanted } = this.#sort();
    this.#parts.moves.answer(this.#members, this.share);
    await this.#parts.holdings.take(take);
    const askAtMs = this.#ask(wanted);
    return Math.min(askAtMs, this.#lookAtMs(), this.#parts.roster.earliestExpiryMs);
  }

  /** Something may have been pinned, or is not any more: the next look shows it. */
  expectPins(): void {
    this.#readPinsAtMs = Number.NEGATIVE_INFINITY;
  }

  /** Says whether the members have changed. */
  async #refresh(need: Need): Promise<boolean> {
    const { clock, targets, roster, timings } = this.#parts;
    const nowMs = clock.monotonicMs();
    const isMembersDue = need.members || roster.earliestExpiryMs <= nowMs;
    const [areMembersNew] = await Promise.all([
      isMembersDue && roster.refresh(timings.operationTimeoutMs),
      need.targets && targets.refresh(),
      isMembersDue && this.#beat(),
      isMembersDue && this.#readPins(),
    ]);
    if (targets.version !== this.#listedVersion) this.#listTargets();
    if (isMembersDue) this.#forgetPins();
    return areMembersNew;
  }

  async #beat(): Promise<void> {
    const { presence, holdings, moves } = this.#parts;
    const beat = () => presence.beat({ owned: holdings.ours.size, asks: moves.asks });
    const [isOrderNew] = await Promise.all([presence.readOrder(), beat()]);
    if (!isOrderNew) return;
    await beat();
    presence.announce();
  }

  async #readPins(): Promise<void> {
    const { clock, pins, timings } = this.#parts;
    const nowMs = clock.monotonicMs();
    if (nowMs < this.#readPinsAtMs) return;
    // Before they are read: what is pinned meanwhile is read once more.
    this.#readPinsAtMs = nowMs + timings.ttlMs;
    try {
      if (await pins.refresh(timings.operationTimeoutMs)) this.#arePinsNew = true;
    } catch (error) {
      this.expectPins();
      throw error;
    }
  }

  /**
   * A pin to a member that is gone has no effect, and never will: its id does not come back. Whoever owns the target forgets it, at the second
   * look that does not show the member: the first one may have been made before it came.
   */
  #forgetPins(): void {
    const { pins, presence, roster, timings } = this.#parts;
    const orphaned = [...pins.all].flatMap(([target, { member }]) => {
      const isThere = member === presence.member.id || roster.get(member) !== undefined;
      return isThere || this.#entries.get(target)?.state !== 'ours' ? [] : [target];
    });
    const toForget = orphaned.filter((target) => this.#orphanedPins.has(target));
    this.#orphanedPins = new Set(orphaned);
    if (toForget.length === 0) return;
    // Housekeeping: what is not forgotten now is forgotten later.
    pins.forget(toForget, timings.operationTimeoutMs).catch(() => {});
  }

  #listTargets(): void {
    const { targets } = this.#parts;
    this.#listedVersion = targets.version;
    this.#arePinsNew = true;
    for (const id of targets.ids()) {
      if (!this.#entries.has(id)) this.#entries.set(id, new TargetEntry(id));
    }
  }

  async #look(all: boolean): Promise<void> {
    const { survey, clock, timings } = this.#parts;
    const nowMs = clock.monotonicMs();
    const due = [...this.#entries.values()].filter(
      ({ state, lookAtMs }) => state === 'watched' && (all || lookAtMs <= nowMs),
    );
    await survey.look(due, timings.operationTimeoutMs);
  }

  #replan(): void {
    const { clock, events, roster, targets, holdings, pins } = this.#parts;
    const startMs = clock.monotonicMs();
    this.#members = roster.members();
    if (this.#arePinsNew) {
      for (const entry of this.#entries.values()) entry.pinned = pins.memberOf(entry.id);
      this.#arePinsNew = false;
    }
    const entries = [...this.#entries.values()].filter(({ id }) => targets.has(id));
    const { planned: owners } = this.#planner.plan(this.#members, entries);
    for (let t = 0; t < entries.length; t++) {
      const planned = this.#members[owners[t] as number];
      (entries[t] as TargetEntry).planned = planned?.id ?? null;
    }
    if (!events.hasListener('fleet.planned')) return;
    events.emit('fleet.planned', {
      members: this.#members.length,
      targets: entries.length,
      quota: this.share.quota,
      owned: holdings.ours.size,
      tookMs: clock.monotonicMs() - startMs,
    });
  }

  /** What to take, and what to ask for. */
  #sort(): { take: TargetEntry[]; wanted: TargetEntry[] } {
    const { clock, targets, presence } = this.#parts;
    const nowMs = clock.monotonicMs();
    const self = presence.member;
    const take: TargetEntry[] = [];
    const wanted: TargetEntry[] = [];
    if (presence.leaveByMs !== null) return { take, wanted };
    for (const entry of this.#entries.values()) {
      if (entry.state !== 'watched' || !targets.has(entry.id)) continue;
      // Whoever has handed it to us has let go of it, so that it is ours to hand on.
      if (self.isDraining) {
        if (entry.owner === self.id) take.push(entry);
      } else if (entry.planned === self.id && this.#canBeAsked(entry.owner, self.id)) {
        // Not what was revoked from us, nor what was released here on purpose.
        if (Math.max(entry.sitsOutUntilMs, entry.notBeforeMs) <= nowMs) wanted.push(entry);
      } else if (this.#mayTake(entry, self, nowMs)) take.push(entry);
    }
    return { take, wanted };
  }

  /** When the store has to be looked at next, for what is not ours and could be. */
  #lookAtMs(): number {
    if (this.#parts.presence.isDraining) return Number.POSITIVE_INFINITY;
    let atMs = Number.POSITIVE_INFINITY;
    for (const { state, lookAtMs } of this.#entries.values())
      if (state === 'watched') atMs = Math.min(atMs, lookAtMs);
    return atMs;
  }

  #canBeAsked(owner: string | null, self: string): boolean {
    if (owner === null || owner === self) return false;
    return this.#parts.roster.get(owner)?.isForeign === false;
  }

  #mayTake(entry: TargetEntry, self: FleetMember, nowMs: number): boolean {
    const { owner, expiresAtMs, planned, notBeforeMs, freeSinceMs } = entry;
    // Handed to us, or ours from before: the store grants it to nobody else.
    if (owner === self.id) return true;
    if (owner !== null || expiresAtMs > nowMs) return false;
    if (notBeforeMs > nowMs || planned === null) {
      entry.lookAtMs = planned === null ? Number.POSITIVE_INFINITY : notBeforeMs;
      return false;
    }
    if (planned === self.id) return true;
    const rivals = this.#members.filter(({ id }) => id !== planned);
    entry.lookAtMs = freeSinceMs + STAGGER_MS * (1 + rankOf(self, entry, rivals));
    return entry.lookAtMs <= nowMs;
  }

  /** Paused and deleted targets are nobody's. What is being let go of is remembered until it is. */
  #dropUnlisted(): void {
    const { holdings, targets } = this.#parts;
    for (const entry of this.#entries.values()) {
      if (targets.has(entry.id)) continue;
      if (entry.state === 'ours') void holdings.letGo(entry);
      else if (entry.state === 'watched') this.#entries.delete(entry.id);
    }
  }

  /** Asks for what may move now; says when the rest may. */
  #ask(wanted: readonly TargetEntry[]): number {
    const { clock, moves, presence, roster, timings } = this.#parts;
    const self = presence.member.id;
    const settleMs = timings.renewEveryMs * SETTLE_SHARE;
    const settledAtMs =
      roster.joinedAtMs + Math.min(Math.max(settleMs, SETTLE_LEAST_MS), SETTLE_MOST_MS);
    const isSettled = settledAtMs <= clock.monotonicMs();
    // Who leaves has said so, and so has an operator: there is nothing to wait for.
    const now = isSettled
      ? wanted
      : wanted.filter(
          ({ owner, pinned }) => pinned === self || roster.get(owner ?? '')?.isDraining,
        );
    moves.ask(now, this.share.quota);
    return now.length < wanted.length ? settledAtMs : Number.POSITIVE_INFINITY;
  }
}
