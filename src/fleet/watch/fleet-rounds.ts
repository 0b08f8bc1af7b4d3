/**
 * When a fleet is looked at that somebody watches, and at what. Of a fleet in which nothing happens a few requests a second are made, however
 * large it is:
 *
 * - Sessions, pins and members: when signals or the log tell of them, and from time to time; of the first two, only what has changed.
 * - Leases: those that the log tells of; those that would have run out by now, or should have been renewed; and a part of all of them, in
 *   turn, for what nobody told of.
 *
 * After a time without the store, or without hints, everything is looked at anew.
 */

import type { Timer } from '../../core/clock.ts';
import type { Emitter } from '../../core/events.ts';
import { Loop } from '../../core/loop.ts';
import type { Random } from '../../core/random.ts';
import { EventLog, type LoggedEvent } from '../../telemetry/event-log.ts';
import { FLEET_TOPIC } from '../member/heartbeat.ts';
import { TARGET_TOPIC } from '../targets/target-record.ts';
import { SURVEY_CHUNK } from '../view/lease-scan.ts';
import type { SightedTarget } from './fleet-picture.ts';
import { type Difference, FleetState, type LookoutParts } from './fleet-state.ts';

/** How often the next part of all leases is looked at: a thousand, or half of them, so that a small fleet is seen whole every second. */
const TURN_EVERY_MS = 500;
const MEMBERS_EVERY_MS = 1_000;
const SESSIONS_EVERY_MS = 2_000;
/** Operators move little by hand, and signals tell of it. */
const PINS_EVERY_MS = 20_000;
/** What is hinted at within this time is looked at in one round. */
const LINGER_MS = 40;
/** Between two rounds that nothing but time is the reason for. */
const LEAST_PAUSE_MS = 20;

const OF_SESSIONS = new Set(
  ['added', 'changed', 'paused', 'resumed', 'removed'].map((verb) => `session.${verb}`),
);

export interface RoundsParts extends LookoutParts {
  readonly random: Random;
  readonly events: Emitter;
}

export interface RoundsOutcome {
  /** A round is over: this is otherwise than after the one before. */
  onSettled(difference: Difference): void;
  /** The store can not be asked. Told once, until a round is over again. */
  onStalled(error: unknown): void;
}

/** What the next round has to look at, whatever the time. */
interface Need {
  isAll: boolean;
  isMembers: boolean;
  isSessions: boolean;
  isPins: boolean;
  readonly targets: Set<SightedTarget>;
}

export class FleetRounds {
  readonly lookout: FleetState;
  readonly #parts: RoundsParts;
  readonly #outcome: RoundsOutcome;
  readonly #chore: Loop;
  readonly #over = new AbortController();
  /** By topic. */
  readonly #subscriptions = new Map<string, () => void>();
  #need: Need = needOf({ isAll: true });
  #membersAtMs = 0;
  #sessionsAtMs = 0;
  #pinsAtMs = 0;
  #turnAtMs = 0;
  /** Where the next turn begins, among all targets. */
  #turn = 0;
  #linger: Timer | null = null;

  constructor(parts: RoundsParts, outcome: RoundsOutcome) {
    this.#parts = parts;
    this.#outcome = outcome;
    this.lookout = new FleetState(parts);
    this.#chore = new Loop(parts, {
      everyMs: TURN_EVERY_MS,
      round: () => this.#round(),
      onStalled: (error) => outcome.onStalled(error),
      // A round that is over says so itself, before it tells what it has found.
      onResumed: () => {},
    });
  }

  start(): void {
    const onForgot = this.#parts.events.on('store.forgot', (facts) => {
      this.lookout.forget(facts);
      this.#hint({ isAll: true });
    });
    this.#subscriptions.set('', onForgot);
    void this.#chore.start();
    void this.#followLog();
  }

  async stop(): Promise<void> {
    this.#over.abort();
    this.#linger?.cancel();
    await this.#chore.stop();
    // Last: a round that was under way may have subscribed after all.
    for (const unsubscribe of this.#subscriptions.values()) unsubscribe();
    this.lookout.close();
  }

  async #round(): Promise<number> {
    try {
      await this.#subscribe();
      await this.#look();
    } catch (error) {
      // What could not be seen may be otherwise by the time that it can.
      this.#need.isAll = true;
      throw error;
    }
    if (!this.#over.signal.aborted) this.#outcome.onSettled(this.lookout.settle());
    return this.#pauseMs();
  }

  async #look(): Promise<void> {
    const { lookout } = this;
    const nowMs = this.#parts.clock.monotonicMs();
    // Before it is looked at: what is told of meanwhile is looked at once more.
    const need = this.#need;
    this.#need = needOf({});
    if (need.isAll) await lookout.lookAtAll();
    const isSessions = need.isAll || need.isSessions || nowMs >= this.#sessionsAtMs;
    if (isSessions && !need.isAll) await lookout.lookAtSessions();
    if (isSessions) this.#sessionsAtMs = nowMs + SESSIONS_EVERY_MS;
    const isPins = need.isAll || need.isPins || nowMs >= this.#pinsAtMs;
    if (isPins && !need.isAll) await lookout.lookAtPins();
    if (isPins) this.#pinsAtMs = nowMs + PINS_EVERY_MS;
    const isMembers = need.isAll || need.isMembers || nowMs >= this.#membersAtMs;
    if (isMembers && !need.isAll) await lookout.lookAtMembers();
    if (isMembers) this.#membersAtMs = Math.min(nowMs + MEMBERS_EVERY_MS, lookout.earliestExpiryMs);
    if (need.isAll) this.#turnAtMs = nowMs + TURN_EVERY_MS;
    else await lookout.lookAtLeases(this.#due(need.targets, nowMs));
  }

  /** Which leases are to be looked at now: those told of, those whose time has come, and the next part of all. */
  #due(told: ReadonlySet<SightedTarget>, nowMs: number): SightedTarget[] {
    const { targets } = this.lookout;
    const due = new Set(told);
    // A look at each, in memory: less work than to keep them in an order that every look changes.
    for (const target of targets) if (target.lookAtMs <= nowMs) due.add(target);
    if (nowMs >= this.#turnAtMs) {
      this.#turnAtMs = nowMs + TURN_EVERY_MS;
      if (this.#turn >= targets.length) this.#turn = 0;
      const end = this.#turn + Math.min(SURVEY_CHUNK, Math.ceil(targets.length / 2));
      for (const target of targets.slice(this.#turn, end)) due.add(target);
      this.#turn = end;
    }
    return [...due];
  }

  /** Until the next round, unless there is a hint. */
  #pauseMs(): number {
    let nextMs = Math.min(this.#turnAtMs, this.#membersAtMs);
    for (const { lookAtMs } of this.lookout.targets) nextMs = Math.min(nextMs, lookAtMs);
    return Math.max(LEAST_PAUSE_MS, nextMs - this.#parts.clock.monotonicMs());
  }

  async #subscribe(): Promise<void> {
    const topics: Record<string, Partial<Need>> = {
      [FLEET_TOPIC]: { isMembers: true, isPins: true },
      [TARGET_TOPIC]: { isSessions: true },
    };
    for (const [topic, need] of Object.entries(topics)) {
      if (this.#subscriptions.has(topic)) continue;
      const subscriber = {
        onMessage: () => this.#hint(need),
        onGap: () => this.#hint({ isAll: true }),
      };
      const unsubscribe = await this.#parts.store.signals.subscribe(topic, subscriber);
      this.#subscriptions.set(topic, unsubscribe);
    }
  }

  async #followLog(): Promise<void> {
    const { signal } = this.#over;
    const { store, clock } = this.#parts;
    for await (const one of new EventLog({ store, clock }).pages({ signal })) {
      if (one.kind !== 'page') continue;
      if (one.page.gap) this.#hint({ isAll: true });
      for (const event of one.page.entries) this.#hear(event);
    }
  }

  #hear({ event, leaseClass, key }: LoggedEvent): void {
    if (event.startsWith('lease.')) {
      const target = leaseClass === 'poll' ? this.lookout.target(String(key)) : undefined;
      if (target === undefined) return;
      this.#need.targets.add(target);
      this.#hint({});
    } else if (event.startsWith('member.')) {
      this.#hint({ isMembers: true });
    } else if (OF_SESSIONS.has(event)) {
      this.#hint({ isSessions: true });
    } else if (event === 'store.forgot') {
      this.#hint({ isAll: true });
    }
  }

  #hint(need: Partial<Need>): void {
    Object.assign(this.#need, need);
    if (this.#over.signal.aborted) return;
    this.#linger ??= this.#parts.clock.after(LINGER_MS, () => {
      this.#linger = null;
      this.#chore.wake();
    });
  }
}

function needOf(need: Partial<Need>): Need {
  const nothing = { isAll: false, isMembers: false, isSessions: false, isPins: false };
  return { ...nothing, targets: new Set(), ...need };
}
