/**
 * One instance as its user would run it: the production `open`, on the production Redis store, with
 * a poller and some leases of its own; only clock, chance and network are simulated. It treats
 * a target as the documentation says: it asks before each act, and sends its fence
 * along.
 */

import { LeaseLostError } from '../../src/core/errors.ts';
import { Emitter, type EventName, type Events } from '../../src/core/events.ts';
import type { PollContext } from '../../src/fleet/poll/poll-scheduler.ts';
import type { Poller } from '../../src/fleet/poller.ts';
import type { RunContext } from '../../src/fleet/run/task-scheduler.ts';
import type { Runner } from '../../src/fleet/runner.ts';
import { SessionExistsError } from '../../src/fleet/targets/errors.ts';
import { type Holdfast, open } from '../../src/holdfast.ts';
import type { Store } from '../../src/store/port/store.ts';
import { openRedisStoreOn } from '../../src/store/redis/redis-store.ts';
import type { Audit } from './audit.ts';
import { boundOptions } from './bounds.ts';
import type { Counters } from './counters.ts';
import type { Device } from './device.ts';
import type { SimProcess } from './host.ts';
import { IntentCrew, type IntentSetting } from './intent-crew.ts';
import { type NetworkParts, simDialer } from './network.ts';
import type { Trace } from './trace.ts';
import { WorkflowCrew, type WorkflowSetting } from './workflow-crew.ts';

/** A key that is acquired, released and acquired again. */
export interface Contended {
  readonly key: string;
  /**
   * By one holder's name in all of a process' life, so that what comes late may meet a later tenure
   * of its own.
   */
  readonly isNamed: boolean;
  readonly keepMs: number;
  readonly pauseMs: number;
}

/** What all instances of a world have in common. */
export interface Setting {
  readonly targets: readonly string[];
  /**
   * The targets are sessions in the store, which operators pause and resume; else every instance
   * has a list.
   */
  readonly hasSessions: boolean;
  /** Each target has a long-lived task, in place of polls. */
  readonly isRun: boolean;
  readonly ttlMs: number;
  readonly quarantine: 'on' | 'off';
  readonly everyMs: number;
  readonly pollMs: { readonly usual: number; readonly longest: number };
  /** What instances compete for beside their targets. */
  readonly contended: Contended;
  readonly hasHistory: boolean;
  /** Null in worlds without any. */
  readonly workflows: WorkflowSetting | null;
  readonly intents: IntentSetting | null;
}

export interface InstanceParts {
  readonly setting: Setting;
  readonly network: NetworkParts;
  readonly audit: Audit;
  readonly counters: Counters;
  readonly device: Device;
  readonly trace: Trace;
}

/** A store that is not there when an instance starts is tried again after this. */
const OPEN_AGAIN_MS = 1_000;
/**
 * One poll in so many takes as long as polls may take; one in so many does not stop when it is told
 * to.
 */
const LONG_ONE_IN = 20;
/**
 * One task in so many does not stop when it is told to; one makes no progress and waits to be told;
 * one act in so many is the last of its task.
 */
const DEAF_TASK_ONE_IN = 8;
const SILENT_ONE_IN = 30;
const LAST_ONE_IN = 12;
/** How long a task may make no progress before it is told to stop. */
const TASK_STUCK_AFTER_MS = 30_000;
/** Longer than it takes until all is well, and has been for a while. */
const REST_MS = 8 * 60_000;
/** A task whose lease is over, and that goes on, is reported by then. */
const REPORTED_WITHIN_MS = 1_500;
const DEAF_ONE_IN = 60;
/** An act has at most this many steps. The instance asks before each. */
const MOST_ACTS = 3;
/** How long an instance waits for a key that others compete for. */
const WAIT_MS = 120_000;
const STOP_WITHIN_MS = 10_000;
/** The share of orders that take back what was moved by hand. */
const UNPINNED_SHARE = 0.2;
/**
 * The share of moves that a poll makes itself: it releases its own target, before it does anything
 * else.
 */
const RELEASED_SHARE = 0.3;

const WATCHED: readonly EventName[] = [
  'lease.acquired',
  'lease.lost',
  'lease.released',
  'lease.transferred',
  'lease.abandoned',
  'lease.uncertain',
  'lease.confirmed',
  'lease.reasserted',
  'lease.returned',
  'lease.refused',
  'lease.revoked',
  'member.joined',
  'member.left',
  'fleet.asked',
  'fleet.stalled',
  'fleet.resumed',
  'poll.stuck',
  'poll.settled',
  'poll.failed',
  'result.refused',
  'result.failed',
  'loop.delayed',
  'store.connected',
  'store.disconnected',
  'store.forgot',
  'store.quarantined',
  'store.warned',
  'listener.failed',
  'workflow.claimed',
  'workflow.transferred',
  'workflow.revoked',
  'action.failed',
  'action.gone',
  'processor.stalled',
  'processor.resumed',
  'intent.republished',
  'secret.created',
  'secret.differs',
  'sweep.failed',
  'session.advanced',
  'pipeline.retried',
  'run.exited',
  'run.silent',
  'run.stuck',
  'run.settled',
];

export class SimInstance {
  readonly process: SimProcess;
  readonly #parts: InstanceParts;
  readonly #events = new Emitter();
  /** What ends each claim on a target's lease. */
  readonly #claims = new Map<string, () => void>();
  #store: Store | null = null;
  #holdfast: Holdfast | null = null;
  #poller: Poller | Runner | null = null;
  #crew: WorkflowCrew | null = null;
  #desk: IntentCrew | null = null;
  /** Polls under way that do not stop when they are told to. */
  #deaf = 0;
  /** How many polls of each target are under way. */
  readonly #polled = new Map<string, number>();
  /** The next poll releases its own target. */
  #releases = false;
  /** Until then it does nothing that moves a target. */
  #restsUntilMs = 0;
  /** The tasks that run, and whether each was reported as stuck. */
  readonly #tasks = new Map<string, { isStuck: boolean }>();
  /** Timers of the simulation itself, for tasks whose leases are over. */
  #taskWatches = 0;
  #knowsSinceMs = Number.POSITIVE_INFINITY;
  #isStopping = false;
  readonly #over = new AbortController();

  constructor(parts: InstanceParts) {
    this.#parts = parts;
    this.process = parts.network.process;
  }

  /** Since when it remembers the store: a process that connects to an emptied one cannot know. */
  get knowsSinceMs(): number {
    return this.#knowsSinceMs;
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Whether this holder is this instance, and it would take what it is handed. */
  isWell(holder: string): boolean {
    const isMe = this.#holdfast?.instanceId === holder;
    return isMe && !this.#isStopping && !this.process.isDead && this.#deaf === 0;
  }

  /** From now on it does nothing of its own accord that moves a target. */
  rest(): void {
    this.#releases = false;
    this.#restsUntilMs = this.process.monotonicMs() + REST_MS;
  }

  owned(): string[] {
    return this.#poller?.manager.ownedSessions() ?? [];
  }

  async start(): Promise<void> {
    const { process } = this;
    const { setting } = this.#parts;
    const store = await this.#openStore();
    if (store === null) return;
    const { audit } = this.#parts;
    const extended = (facts: object) => audit.model?.heard('lease.extended', facts, process);
    const events = {
      ...Object.fromEntries(WATCHED.map((name) => [name, this.#listener(name)])),
      'lease.extended': extended,
    };
    const holdfast = await open(store, {
      clock: process,
      random: process.random,
      name: process.name,
      on: events,
      history: setting.hasHistory ? 'on' : 'off',
    });
    this.#holdfast = holdfast;
    const shared = {
      ...(!setting.hasSessions && { targets: setting.targets.map((id) => ({ id })) }),
      ttl: setting.ttlMs,
      discovery: 'off' as const,
    };
    this.#poller = setting.isRun
      ? holdfast.runner({
          ...shared,
          stuckAfter: TASK_STUCK_AFTER_MS,
          onStuck: 'restart',
          backoff: '1s..10s',
          run: (target, context) => this.#run(target.id, context),
        })
      : holdfast.poller({
          ...shared,
          every: setting.everyMs,
          timeout: setting.pollMs.longest,
          poll: (target, context) => this.#poll(target.id, context),
        });
    void this.#poller.start();
    void this.restoreTargets();
    void this.#compete(holdfast, setting.contended);
    if (setting.workflows !== null) this.#hire(holdfast, setting.workflows);
    if (setting.intents !== null) this.#accept(store, setting.intents);
  }

  #accept(store: Store, setting: IntentSetting): void {
    const { audit, counters, device } = this.#parts;
    const own = { process: this.process, events: this.#events, over: this.#over.signal };
    this.#desk = new IntentCrew({ ...own, setting, store, audit, counters, device });
    this.#desk.start();
  }

  #hire(holdfast: Holdfast, setting: WorkflowSetting): void {
    const { network, audit, counters, device } = this.#parts;
    const own = { process: this.process, path: network.path, over: this.#over.signal };
    this.#crew = new WorkflowCrew({ ...own, setting, holdfast, audit, counters, device });
    this.#crew.start();
  }

  /** As SIGTERM would: hands over, closes, ends. */
  async stop(): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#over.abort();
    const { audit, counters } = this.#parts;
    const { process } = this;
    // It is still waiting for its store, and has nothing to hand over.
    if (this.#poller === null) return this.end();
    await this.#poller?.stop({ within: STOP_WITHIN_MS });
    await this.#desk?.stop();
    await this.#holdfast?.close({ within: STOP_WITHIN_MS });
    await this.#store?.close();
    counters.add('stopped gracefully');
    const left = process.pendingTimers - this.#taskWatches;
    // Work of the user that does not stop may continue.
    if (left > 0 && this.#deaf + (this.#desk?.deaf ?? 0) === 0)
      audit.report('tidiness', '', `${process.name} has left ${left} timers`);
    this.end();
  }

  /**
   * As an operator would: takes a target, or a key that others compete for, from its holder.
   */
  revoke(choice: number, force: boolean): void {
    const { targets, contended, intents } = this.#parts.setting;
    if (this.#crew !== null) return void this.#crew.intervene(choice).catch(() => {});
    const slots = Array.from({ length: intents?.tuners ?? 0 }, (_, i) => `tuner:${i + 1}`);
    const keys = [...targets, contended.key, ...slots];
    const key = keys[Math.floor(choice * keys.length)] ?? '';
    const isTarget = targets.includes(key);
    const options = { reason: 'simulated', force, class: isTarget ? 'poll' : 'lease' } as const;
    // The store may be away: then nothing is revoked.
    void this.#holdfast?.revoke(key, options).catch(() => {});
  }

  /**
   * As an operator would: moves a target to one of those who are there, or lets it go its way
   * again. Always the same target: an instance that more targets are moved to than its share has
   * more than its share, and shares are to be even when all is well.
   */
  transfer(choice: number): void {
    const [target] = this.#parts.setting.targets;
    if (target === undefined || this.#holdfast === null) return;
    if (choice >= 1 - RELEASED_SHARE) {
      this.#releases = true;
      return;
    }
    const { fleet } = this.#holdfast;
    const move = async () => {
      if (choice < UNPINNED_SHARE) return fleet.unpin(target);
      const { members } = await fleet.view();
      const place = (choice - UNPINNED_SHARE) / (1 - UNPINNED_SHARE - RELEASED_SHARE);
      const { id = '' } = members[Math.floor(place * members.length)] ?? {};
      return fleet.transfer(target, id, { reason: 'simulated' });
    };
    // The store may be away, and so may whom it is moved to: then nothing is.
    void move().then(
      () => this.#parts.counters.add('moved by hand'),
      () => {},
    );
  }

  /** As an operator would: pauses a target, and says which. */
  pause(choice: number, target?: string): string | null {
    const { targets } = this.#parts.setting;
    const id = target ?? targets[Math.floor(choice * targets.length)];
    if (id === undefined || this.#holdfast === null) return null;
    void this.#holdfast.targets.pause(id).then(
      () => this.#parts.counters.add('paused'),
      () => {},
    );
    return id;
  }

  resume(target: string): void {
    // The store may be away: then it stays paused until all is to be well.
    void this.#holdfast?.targets.resume(target).catch(() => {});
  }

  /** As an operator would: sees to it that every target is there, and none is paused. */
  async restoreTargets(): Promise<void> {
    const { targets, hasSessions } = this.#parts.setting;
    const holdfast = this.#holdfast;
    if (!hasSessions || holdfast === null) return;
    while (!this.#isStopping) {
      try {
        const added = await holdfast.targets.addAll(targets.map((id) => ({ id })));
        for (const result of added)
          if (!result.ok && !(result.error instanceof SessionExistsError)) throw result.error;
        for (const id of targets) await holdfast.targets.resume(id);
        return;
      } catch {
        await this.process.sleep(OPEN_AGAIN_MS, this.#over.signal).catch(() => {});
      }
    }
  }

  /** Its worker has so long to stop, and the process continues with another. */
  replaceWorker(withinMs: number): void {
    if (!this.#isStopping) void this.#desk?.replaceWorker(withinMs);
  }

  /** The process is gone, however that came. */
  end(): void {
    const { audit, network } = this.#parts;
    this.process.kill();
    network.path.abandon(this.process);
    audit.forget(this.process);
  }

  /**
   * Continues until there is a store, or this process has ended: then nothing comes back any more.
   */
  async #openStore(): Promise<Store | null> {
    const { process } = this;
    const dialer = simDialer(this.#parts.network);
    for (const name of WATCHED) this.#events.on(name, this.#listener(name));
    while (!this.#isStopping) {
      try {
        const { random } = process;
        const { quarantine, ttlMs, intents } = this.#parts.setting;
        const bounds = { lease: intents?.longestTtlMs ?? ttlMs, poll: ttlMs, workflow: ttlMs };
        const options = { clock: process, random, quarantine, events: this.#events };
        this.#store = await openRedisStoreOn(dialer, { ...options, ...boundOptions(bounds) });
        return this.#store;
      } catch {
        await process.sleep(OPEN_AGAIN_MS, this.#over.signal).catch(() => {});
      }
    }
    return null;
  }

  #listener(name: EventName): (facts: object) => void {
    const { counters, trace, audit } = this.#parts;
    return (facts: { leaseClass?: string; key?: string; reason?: string }) => {
      if (this.process.isDead) return;
      audit.model?.heard(name, facts, this.process);
      const { leaseClass, key = '', reason } = facts;
      counters.add(reason === undefined ? name : `${name}: ${reason}`);
      trace.note(this.process.name, name, facts);
      if (name === 'store.connected') this.#connected();
      if (name === 'pipeline.retried') {
        const { session, inMs } = facts as Events['pipeline.retried'];
        audit.workers?.retried(session, inMs, this.process);
      }
      const { target } = facts as { target?: string };
      const task = this.#tasks.get(target ?? key);
      if (name === 'run.stuck' && task !== undefined) task.isStuck = true;
      if (leaseClass !== 'poll') return;
      if (name === 'lease.lost' && task !== undefined) this.#watchTask(key, task);
      if (name === 'lease.acquired') counters.add('granted: poll');
      this.#follow(name, key);
    };
  }

  #connected(): void {
    const { nowMs } = this.#parts.network.timeline;
    this.#knowsSinceMs = Math.min(this.#knowsSinceMs, nowMs);
  }

  /** What it believes to own, it claims. */
  #follow(name: EventName, key: string): void {
    const { audit } = this.#parts;
    const { process } = this;
    const isOver =
      name === 'lease.lost' ||
      name === 'lease.released' ||
      name === 'lease.transferred' ||
      name === 'lease.abandoned';
    const isHandedOver = name === 'lease.released' || name === 'lease.transferred';
    if (isHandedOver && (this.#polled.get(key) ?? 0) > 0)
      audit.report('handover', `poll:${key}`, `${process.name} let go of ${key} while it polls it`);
    if (isOver || name === 'lease.acquired') {
      this.#claims.get(key)?.();
      this.#claims.delete(key);
    }
    if (name !== 'lease.acquired') return;
    const isValid = () => this.#poller?.manager.isOwned(key) === true;
    this.#claims.set(key, audit.claim({ process, target: `poll:${key}`, isValid }));
  }

  async #poll(target: string, context: PollContext): Promise<string> {
    const { audit, counters, setting } = this.#parts;
    const { process } = this;
    const isValid = () => isAllowed(context);
    const done = audit.claim({ process, target: `poll:${target}`, isValid });
    const isDeaf = this.#oneIn(DEAF_ONE_IN);
    const mostMs = this.#oneIn(LONG_ONE_IN) ? setting.pollMs.longest * 1.2 : setting.pollMs.usual;
    const acts = 1 + Math.floor(process.random.next() * MOST_ACTS);
    if (isDeaf) this.#deaf++;
    counters.add('poll begun');
    counters.add(`poll begun: ${target}`);
    this.#polled.set(target, (this.#polled.get(target) ?? 0) + 1);
    if (this.#releases) {
      this.#releases = false;
      counters.add('released by its own poll');
      void this.#poller?.manager.release(target);
    }
    try {
      for (let act = 0; act < acts; act++) {
        const ms = (process.random.next() * mostMs) / acts;
        if (isDeaf) await process.sleep(ms);
        else await process.sleep(ms, context.signal);
        context.assertHeld();
        this.#touch(`poll:${target}`, `poll:lease:${target}`, context.fence);
      }
      return 'ok';
    } finally {
      if (isDeaf) this.#deaf--;
      this.#polled.set(target, (this.#polled.get(target) ?? 1) - 1);
      done();
    }
  }

  /** A task whose lease is over has to end, or be reported. */
  #watchTask(target: string, task: { readonly isStuck: boolean }): void {
    const { process } = this;
    this.#taskWatches++;
    process.after(REPORTED_WITHIN_MS, () => {
      this.#taskWatches--;
      if (this.#tasks.get(target) !== task || task.isStuck) return;
      const text = `${process.name} goes on with ${target} after its lease, and does not say so`;
      this.#parts.audit.report('tasks', `poll:${target}`, text);
    });
  }

  /** A long-lived task: it acts until it is told to stop, or ends by itself. */
  async #run(target: string, context: RunContext): Promise<void> {
    const { audit, counters, setting } = this.#parts;
    const { process } = this;
    const report = (what: string) => audit.report('tasks', `poll:${target}`, what);
    if (this.#tasks.has(target)) report(`${process.name} runs ${target} twice at once`);
    if (!context.isHeld()) report(`${process.name} began ${target} without its lease`);
    const task = { isStuck: false };
    this.#tasks.set(target, task);
    const isValid = () => isAllowed(context);
    const done = audit.claim({ process, target: `poll:${target}`, isValid });
    const isDeaf = this.#oneIn(DEAF_TASK_ONE_IN);
    const isResting = process.monotonicMs() < this.#restsUntilMs;
    const isSilent = this.#oneIn(SILENT_ONE_IN) && !isResting;
    if (isDeaf) this.#deaf++;
    this.#polled.set(target, (this.#polled.get(target) ?? 0) + 1);
    counters.add('task begun');
    try {
      for (;;) {
        const ms = process.random.next() * TASK_STUCK_AFTER_MS * 0.5;
        await process.sleep(ms, context.signal).catch(() => {});
        if (context.signal.aborted) break;
        counters.add(`poll begun: ${target}`);
        if (isSilent) continue;
        this.#act(target, context, report);
        context.progress();
        if (this.#oneIn(LAST_ONE_IN)) break;
        if (this.#oneIn(LAST_ONE_IN)) throw new Error('simulated');
      }
      // Some do not stop when they are told to.
      if (isDeaf) await process.sleep(process.random.next() * setting.pollMs.longest);
    } finally {
      if (isDeaf) this.#deaf--;
      this.#polled.set(target, (this.#polled.get(target) ?? 1) - 1);
      this.#tasks.delete(target);
      done();
    }
  }

  #act(target: string, context: RunContext, report: (what: string) => void): void {
    const { process } = this;
    try {
      context.assertHeld();
    } catch (error) {
      if (error instanceof LeaseLostError && !context.signal.aborted)
        report(`${process.name} was not told that the lease of ${target} is over`);
      throw error;
    }
    this.#touch(`poll:${target}`, `poll:lease:${target}`, context.fence);
  }

  /** It has just asked whether it may. */
  #touch(target: string, storeKey: string, fence: number): void {
    const { audit, device } = this.#parts;
    audit.model?.acted(storeKey, fence, this.process);
    device.write(this.process, target, fence);
  }

  /** Takes a key, works under it, lets it go, and again. */
  async #compete(holdfast: Holdfast, contended: Contended): Promise<void> {
    const { key, isNamed, keepMs, pauseMs } = contended;
    const { audit, setting } = this.#parts;
    const { process } = this;
    const holder = isNamed ? { holder: process.name } : {};
    const target = `lease:${key}`;
    while (!this.#isStopping) {
      try {
        await process.sleep(process.random.next() * pauseMs, this.#over.signal);
        const work = async (held: PollContext) => {
          const done = audit.claim({ process, target, isValid: () => isAllowed(held) });
          try {
            for (let act = 0; act < MOST_ACTS; act++) {
              await process.sleep((process.random.next() * keepMs) / MOST_ACTS, held.signal);
              held.assertHeld();
              this.#touch(target, target, held.fence);
            }
          } finally {
            done();
          }
        };
        await holdfast.withLease(key, work, { ...holder, wait: WAIT_MS, ttl: setting.ttlMs });
      } catch {
        // Held by others, lost, the store is away, or we stop: all of it is told by events.
      }
    }
  }

  #oneIn(count: number): boolean {
    return this.process.random.next() * count < 1;
  }
}

/** Whether work in flight may continue. */
function isAllowed({ assertHeld }: Pick<PollContext, 'assertHeld'>): boolean {
  try {
    assertHeld();
    return true;
  } catch {
    return false;
  }
}
