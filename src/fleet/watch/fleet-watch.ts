/**
 * Follows the fleet for all its subscribers in this process, from the first to the last of them.
 * While nothing happens it makes a few requests a second, however large the fleet is:
 *
 * - Targets, pins and members: when signals or the log tell of a change, and now and then; of
 *   targets and pins only those that changed.
 * - Leases: those that the log names; those that should have been renewed or have expired; and in
 *   turn a part of all, for changes that were not reported.
 *
 * After a time without the store, or without hints, everything is read again.
 */

import type { Timer } from '../../core/clock.ts';
import { Loop } from '../../core/loop.ts';
import type { Runtime } from '../../store/runtime.ts';
import { EventLog, type LoggedEvent } from '../../telemetry/event-log.ts';
import { FLEET_TOPIC } from '../member/heartbeat.ts';
import { TARGET_TOPIC, type TargetIds } from '../targets/target-record.ts';
import { SCAN_CHUNK } from '../view/lease-scan.ts';
import type { FleetSighting } from './fleet-picture.ts';
import { type Difference, FleetState } from './fleet-state.ts';
import { FleetSubscription } from './fleet-subscription.ts';
import type { WatchedTarget } from './watched-target.ts';

/** How often the next part of all leases is read: a thousand, or half of a small fleet. */
const TURN_EVERY_MS = 500;
const MEMBERS_EVERY_MS = 1_000;
const TARGETS_EVERY_MS = 2_000;
/** Operators pin little, and signals announce it. */
const PINS_EVERY_MS = 20_000;
/** Hints that arrive within this time lead to one round. */
const LINGER_MS = 40;
/** Between two rounds without a hint. */
const MIN_PAUSE_MS = 20;
/** Even if nothing has changed, subscribers are shown that within two seconds. */
const PUBLISH_EVERY_MS = 1_500;

const TARGET_EVENTS = new Set(
  ['added', 'changed', 'paused', 'resumed', 'removed'].map((verb) => `session.${verb}`),
);

/** What the next round has to read, whatever the time. */
interface Need {
  isAll: boolean;
  isMembers: boolean;
  isTargets: boolean;
  isPins: boolean;
  readonly leases: Set<WatchedTarget>;
}

export class FleetWatch {
  readonly #rt: Runtime;
  readonly #state: FleetState;
  readonly #subscriptions = new Set<FleetSubscription>();
  readonly #loop: Loop;
  readonly #over = new AbortController();
  /** By topic. */
  readonly #unsubscribes = new Map<string, () => void>();
  readonly #unlisten: () => void;
  #isReady = false;
  #stalled: { readonly error: unknown } | null = null;
  #publishedAtMs = 0;
  #need: Need = needOf({ isAll: true });
  #membersAtMs = 0;
  #targetsAtMs = 0;
  #pinsAtMs = 0;
  #turnAtMs = 0;
  /** Where the next turn begins, among all targets. */
  #turn = 0;
  #linger: Timer | null = null;

  constructor(rt: Runtime, targetIds: TargetIds) {
    this.#rt = rt;
    this.#state = new FleetState(rt, targetIds);
    this.#loop = new Loop(rt, {
      everyMs: TURN_EVERY_MS,
      round: () => this.#round(),
      onStalled: (error) => {
        this.#stalled = { error };
        for (const subscription of this.#subscriptions) subscription.wake();
      },
      // The round that succeeds says so itself, before it shows the fleet.
      onResumed: () => {},
    });
    this.#unlisten = rt.events.on('store.forgot', () => {
      this.#state.reset();
      this.#hint({ isAll: true });
    });
    void this.#loop.start();
    void this.#followLog();
  }

  /** The last subscriber has gone: this watch reads nothing any more. */
  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  /** The fleet, if there is something to show and the store answers. */
  get state(): FleetState | null {
    return this.#isReady && this.#stalled === null && !this.isOver ? this.#state : null;
  }

  /** The fleet as it is, then each change, until the signal fires or this is closed. */
  async *follow(signal: AbortSignal): AsyncGenerator<FleetSighting, void, undefined> {
    const subscription = new FleetSubscription();
    this.#subscriptions.add(subscription);
    const onAbort = () => subscription.end();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      for (;;) {
        const sighting = subscription.next(this.#state, this.#isReady, this.#stalled);
        if (sighting !== null) yield sighting;
        else if (subscription.isOver) return;
        else await subscription.woken();
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#subscriptions.delete(subscription);
      // Not awaited: a request may be under way.
      if (this.#subscriptions.size === 0) void this.#stop();
    }
  }

  /** Ends all subscriptions, and with the last one this watch. */
  close(): void {
    for (const subscription of this.#subscriptions) subscription.end();
  }

  async #stop(): Promise<void> {
    this.#over.abort();
    this.#linger?.cancel();
    await this.#loop.stop();
    // Last: a round that was under way may have subscribed.
    for (const unsubscribe of this.#unsubscribes.values()) unsubscribe();
    this.#unlisten();
  }

  async #round(): Promise<number> {
    try {
      await this.#subscribe();
      await this.#refresh();
    } catch (error) {
      // Anything may have changed by the time the store answers again.
      this.#need.isAll = true;
      throw error;
    }
    if (!this.isOver) this.#publish(this.#state.publish());
    return this.#pauseMs();
  }

  #publish(difference: Difference): void {
    const nowMs = this.#rt.clock.monotonicMs();
    const { targets, removed, members } = difference;
    const isQuiet = targets.length === 0 && removed.length === 0 && !members;
    const isNews = !isQuiet || !this.#isReady || this.#stalled !== null;
    this.#isReady = true;
    this.#stalled = null;
    if (!isNews && nowMs - this.#publishedAtMs < PUBLISH_EVERY_MS) return;
    this.#publishedAtMs = nowMs;
    for (const subscription of this.#subscriptions) subscription.add(difference);
  }

  async #refresh(): Promise<void> {
    const state = this.#state;
    const nowMs = this.#rt.clock.monotonicMs();
    // Cleared before the reads: a hint that arrives meanwhile leads to another read.
    const need = this.#need;
    this.#need = needOf({});
    const isTargets = need.isAll || need.isTargets || nowMs >= this.#targetsAtMs;
    const isPins = need.isAll || need.isPins || nowMs >= this.#pinsAtMs;
    const isMembers = need.isAll || need.isMembers || nowMs >= this.#membersAtMs;
    if (need.isAll) {
      await state.refreshAll();
      this.#turnAtMs = nowMs + TURN_EVERY_MS;
    } else {
      if (isTargets) await state.refreshTargets();
      if (isPins) await state.refreshPins();
      if (isMembers) await state.refreshMembers();
      await state.refreshLeases(this.#dueLeases(need.leases, nowMs));
    }
    if (isTargets) this.#targetsAtMs = nowMs + TARGETS_EVERY_MS;
    if (isPins) this.#pinsAtMs = nowMs + PINS_EVERY_MS;
    if (isMembers) this.#membersAtMs = Math.min(nowMs + MEMBERS_EVERY_MS, state.earliestExpiryMs);
  }

  /** The leases to read now: those hinted at, those that are due, and the next part of all. */
  #dueLeases(hinted: ReadonlySet<WatchedTarget>, nowMs: number): WatchedTarget[] {
    const { targets } = this.#state;
    const due = new Set(hinted);
    // One comparison each: less work than an order that every read changes.
    for (const target of targets) if (target.refreshAtMs <= nowMs) due.add(target);
    if (nowMs >= this.#turnAtMs) {
      this.#turnAtMs = nowMs + TURN_EVERY_MS;
      if (this.#turn >= targets.length) this.#turn = 0;
      const end = this.#turn + Math.min(SCAN_CHUNK, Math.ceil(targets.length / 2));
      for (const target of targets.slice(this.#turn, end)) due.add(target);
      this.#turn = end;
    }
    return [...due];
  }

  /** Until the next round, unless there is a hint. */
  #pauseMs(): number {
    let nextMs = Math.min(this.#turnAtMs, this.#membersAtMs);
    for (const { refreshAtMs } of this.#state.targets) nextMs = Math.min(nextMs, refreshAtMs);
    return Math.max(MIN_PAUSE_MS, nextMs - this.#rt.clock.monotonicMs());
  }

  async #subscribe(): Promise<void> {
    const topics: Record<string, Partial<Need>> = {
      [FLEET_TOPIC]: { isMembers: true, isPins: true },
      [TARGET_TOPIC]: { isTargets: true },
    };
    for (const [topic, need] of Object.entries(topics)) {
      if (this.#unsubscribes.has(topic)) continue;
      const subscriber = {
        onMessage: () => this.#hint(need),
        onGap: () => this.#hint({ isAll: true }),
      };
      const unsubscribe = await this.#rt.store.signals.subscribe(topic, subscriber);
      this.#unsubscribes.set(topic, unsubscribe);
    }
  }

  async #followLog(): Promise<void> {
    const { signal } = this.#over;
    const { store, clock } = this.#rt;
    for await (const one of new EventLog({ store, clock }).pages({ signal })) {
      if (one.kind !== 'page') continue;
      if (one.page.gap) this.#hint({ isAll: true });
      for (const event of one.page.entries) this.#onLogged(event);
    }
  }

  #onLogged({ event, leaseClass, key }: LoggedEvent): void {
    if (event.startsWith('lease.')) {
      const target = leaseClass === 'poll' ? this.#state.target(String(key)) : undefined;
      if (target === undefined) return;
      this.#need.leases.add(target);
      this.#hint({});
    } else if (event.startsWith('member.')) {
      this.#hint({ isMembers: true });
    } else if (TARGET_EVENTS.has(event)) {
      this.#hint({ isTargets: true });
    } else if (event === 'store.forgot') {
      this.#hint({ isAll: true });
    }
  }

  #hint(need: Partial<Need>): void {
    Object.assign(this.#need, need);
    if (this.isOver) return;
    this.#linger ??= this.#rt.clock.after(LINGER_MS, () => {
      this.#linger = null;
      this.#loop.wake();
    });
  }
}

function needOf(need: Partial<Need>): Need {
  return {
    isAll: false,
    isMembers: false,
    isTargets: false,
    isPins: false,
    leases: new Set(),
    ...need,
  };
}
