/**
 * When a watched fleet is read, and what of it. While nothing happens this makes a few requests a
 * second, however large the fleet is:
 *
 * - Targets, pins and members: when signals or the log tell of a change, and now and then; of
 *   targets and pins only what has changed.
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
import { type Difference, FleetState } from './fleet-state.ts';
import type { FleetWatcher } from './fleet-watcher.ts';
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
/** Even if nothing has changed, watchers are shown that within two seconds. */
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

export class FleetRounds {
  readonly state: FleetState;
  readonly watchers = new Set<FleetWatcher>();
  readonly #rt: Runtime;
  readonly #loop: Loop;
  readonly #over = new AbortController();
  /** By topic. */
  readonly #subscriptions = new Map<string, () => void>();
  #unlisten: () => void = () => {};
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
    this.state = new FleetState(rt, targetIds);
    this.#loop = new Loop(rt, {
      everyMs: TURN_EVERY_MS,
      round: () => this.#round(),
      onStalled: (error) => {
        this.#stalled = { error };
        for (const watcher of this.watchers) watcher.wake();
      },
      // The round that ends it says so itself, before it shows what it has read.
      onResumed: () => {},
    });
  }

  /** There is something to show. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Why the last round failed; null after one that succeeded. */
  get stalled(): { readonly error: unknown } | null {
    return this.#stalled;
  }

  start(): void {
    this.#unlisten = this.#rt.events.on('store.forgot', () => {
      this.state.reset();
      this.#hint({ isAll: true });
    });
    void this.#loop.start();
    void this.#followLog();
  }

  async stop(): Promise<void> {
    this.#over.abort();
    this.#linger?.cancel();
    await this.#loop.stop();
    // Last: a round that was under way may have subscribed.
    for (const unsubscribe of this.#subscriptions.values()) unsubscribe();
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
    if (!this.#over.signal.aborted) this.#publish(this.state.publish());
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
    for (const watcher of this.watchers) watcher.add(difference);
  }

  async #refresh(): Promise<void> {
    const { state } = this;
    const nowMs = this.#rt.clock.monotonicMs();
    // Cleared before the reads: what is hinted at meanwhile is read again.
    const need = this.#need;
    this.#need = needOf({});
    if (need.isAll) await state.refreshAll();
    const isTargets = need.isAll || need.isTargets || nowMs >= this.#targetsAtMs;
    if (isTargets && !need.isAll) await state.refreshTargets();
    if (isTargets) this.#targetsAtMs = nowMs + TARGETS_EVERY_MS;
    const isPins = need.isAll || need.isPins || nowMs >= this.#pinsAtMs;
    if (isPins && !need.isAll) await state.refreshPins();
    if (isPins) this.#pinsAtMs = nowMs + PINS_EVERY_MS;
    const isMembers = need.isAll || need.isMembers || nowMs >= this.#membersAtMs;
    if (isMembers && !need.isAll) await state.refreshMembers();
    if (isMembers) this.#membersAtMs = Math.min(nowMs + MEMBERS_EVERY_MS, state.earliestExpiryMs);
    if (need.isAll) this.#turnAtMs = nowMs + TURN_EVERY_MS;
    else await state.refreshLeases(this.#dueLeases(need.leases, nowMs));
  }

  /** The leases to read now: those hinted at, those that are due, and the next part of all. */
  #dueLeases(hinted: ReadonlySet<WatchedTarget>, nowMs: number): WatchedTarget[] {
    const { targets } = this.state;
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
    for (const { refreshAtMs } of this.state.targets) nextMs = Math.min(nextMs, refreshAtMs);
    return Math.max(MIN_PAUSE_MS, nextMs - this.#rt.clock.monotonicMs());
  }

  async #subscribe(): Promise<void> {
    const topics: Record<string, Partial<Need>> = {
      [FLEET_TOPIC]: { isMembers: true, isPins: true },
      [TARGET_TOPIC]: { isTargets: true },
    };
    for (const [topic, need] of Object.entries(topics)) {
      if (this.#subscriptions.has(topic)) continue;
      const subscriber = {
        onMessage: () => this.#hint(need),
        onGap: () => this.#hint({ isAll: true }),
      };
      const unsubscribe = await this.#rt.store.signals.subscribe(topic, subscriber);
      this.#subscriptions.set(topic, unsubscribe);
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
      const target = leaseClass === 'poll' ? this.state.target(String(key)) : undefined;
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
    if (this.#over.signal.aborted) return;
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
