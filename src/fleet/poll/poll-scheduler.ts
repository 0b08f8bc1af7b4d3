/**
 * Polls what this instance owns: all targets on one timer, each at its own pace, no more than a few at once.
 *
 * A target is **due** when its time has come, **ready** while it waits for others to finish, **polled** while its poll
 * runs. Right before it begins, and in the same turn, the lease is asked whether new work may begin: a poll that waited,
 * or a process that was frozen, finds out here.
 *
 * A target that is ours is always one of the three. One that is paused or removed stays due, because letting go of it may fail: it is
 * polled again if it is resumed first.
 *
 * A poll ends by itself, or is told to stop: its time is up, its lease is lost, or the instance stops. One that does not
 * stop when told is **stuck**: it is reported, its target is not polled again and never handed over until it has stopped.
 */

import type { Clock } from '../../core/clock.ts';
import type { Emitter } from '../../core/events.ts';
import { jittered, type Random } from '../../core/random.ts';
import { TimerHeap } from '../../core/timer-heap.ts';
import type { Tracing } from '../../core/tracing.ts';
import type { Lease } from '../../lease/lease.ts';
import type { Duties } from '../member/ownership.ts';
import { PollTimeoutError } from '../targets/errors.ts';
import type { Target } from '../targets/target-source.ts';
import { RecentPolls } from './recent-polls.ts';

/** A poll that was told to stop gets this long before it is reported. */
const STUCK_AFTER_MS = 1_000;
/** A lease that is uncertain is asked again after this, unless it is lost before. */
const UNCERTAIN_MS = 250;

export interface PollContext {
  /** Fires when the lease is lost, the time is up, or the instance stops. Pass it on. */
  readonly signal: AbortSignal;
  /** Proof of ownership for whatever the poll writes to. */
  readonly fence: number;
  isHeld(): boolean;
  assertHeld(): void;
}

export type Poll = (target: Target, context: PollContext) => unknown;

/** What a poll came to. */
interface Outcome {
  readonly target: string;
  readonly fence: number;
  readonly tookMs: number;
  readonly ok: boolean;
  readonly value?: unknown;
  readonly error?: string;
  /** The polls of this tenure before. */
  readonly recent: RecentPolls;
}

export interface ScheduleParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly events: Emitter;
  readonly tracing: Tracing;
  readonly poll: Poll;
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly concurrency: number;
  target(id: string): Target | undefined;
  onOutcome(outcome: Outcome): void;
  /** The target is not polled here any more. */
  onEnd(id: string): void;
}

/** One target that is ours. */
class Duty {
  readonly id: string;
  readonly lease: Lease;
  readonly recent = new RecentPolls();
  dueMs = 0;
  slot = -1;
  /** When its last poll began; null before the first. */
  startedAtMs: number | null = null;
  run: Run | null = null;
  isOver = false;

  constructor(id: string, lease: Lease) {
    this.id = id;
    this.lease = lease;
  }
}

/** One poll that is under way, as its handler sees it. */
class Run implements PollContext {
  readonly startMs: number;
  readonly #lease: Lease;
  /** Made on first use: many handlers never ask for the signal, and there are many polls. */
  #controller: AbortController | null = null;
  #stopped: { readonly reason: unknown } | null = null;
  isStuck = false;
  /** Resolves when it has stopped. There from the beginning: its handler may release its own target before it first awaits. */
  readonly settled: Promise<void>;
  #settle = () => {};

  constructor(lease: Lease, startMs: number) {
    this.#lease = lease;
    this.startMs = startMs;
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.#stopped !== null) this.#controller.abort(this.#stopped.reason);
    }
    return this.#controller.signal;
  }

  get fence(): number {
    return this.#lease.fence;
  }

  // Not methods: handlers take them out of the context.
  readonly isHeld = (): boolean => this.#stopped === null && this.#lease.isHeld();
  readonly assertHeld = (): void => this.#lease.assertHeld();

  /** Why it was told to stop; undefined while it may go on. */
  get stopReason(): unknown {
    return this.#stopped?.reason;
  }

  /** Tells it to stop. False if it has been told before. */
  stop(reason: unknown): boolean {
    if (this.#stopped !== null) return false;
    this.#stopped = { reason };
    this.#controller?.abort(reason);
    return true;
  }

  settle(): void {
    this.#settle();
  }
}

export class PollScheduler implements Duties {
  readonly #parts: ScheduleParts;
  readonly #duties = new Map<string, Duty>();
  readonly #agenda: TimerHeap<Duty>;
  #ready: Duty[] = [];
  #inFlight = 0;
  #isPumping = false;
  #isOver = false;

  constructor(parts: ScheduleParts) {
    this.#parts = parts;
    this.#agenda = new TimerHeap(parts.clock, () => this.#onDue());
  }

  /** How many polls are under way. */
  get inFlight(): number {
    return this.#inFlight;
  }

  begin(id: string, lease: Lease): void {
    const duty = new Duty(id, lease);
    this.#duties.set(id, duty);
    if (!this.#isOver) this.#agenda.schedule(duty, this.#parts.clock.monotonicMs());
  }

  end(id: string, isLost: boolean): Promise<void> | null {
    const duty = this.#duties.get(id);
    if (duty === undefined) return null;
    duty.isOver = true;
    this.#agenda.remove(duty);
    this.#parts.onEnd(id);
    const { run } = duty;
    if (run === null) {
      this.#duties.delete(id);
      return null;
    }
    if (isLost) this.#stop(duty, run, duty.lease.signal.reason);
    return run.settled;
  }

  /** The target is not what it was: its next poll may be due earlier or later. */
  changed(id: string): void {
    const duty = this.#duties.get(id);
    if (duty !== undefined && duty.slot >= 0) this.#agenda.schedule(duty, this.#nextMs(duty));
  }

  /** What is under way may finish. No timer is left that could keep the process alive. */
  beginNoMore(): void {
    this.#isOver = true;
    this.#ready = [];
    this.#agenda.clear();
  }

  /** Tells every poll under way to stop. */
  stopAll(reason: Error): void {
    for (const duty of this.#duties.values())
      if (duty.run !== null) this.#stop(duty, duty.run, reason);
  }

  #onDue(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    for (let duty = this.#agenda.takeFirst(nowMs); duty; duty = this.#agenda.takeFirst(nowMs))
      this.#ready.push(duty);
    this.#pump();
  }

  /** Begins polls while there is room, in the order in which they were due. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    let taken = 0;
    while (taken < this.#ready.length && this.#inFlight < this.#parts.concurrency)
      this.#try(this.#ready[taken++] as Duty);
    // One copy for all that were taken: what waits may be many.
    this.#ready = this.#ready.slice(taken);
    this.#isPumping = false;
  }

  #try(duty: Duty): void {
    const { clock, target: find, everyMs } = this.#parts;
    if (duty.isOver || this.#isOver) return;
    const target = find(duty.id);
    const nowMs = clock.monotonicMs();
    // Paused or deleted a moment ago: the manager lets go of it, or `changed` says that it is resumed.
    if (target === undefined) this.#agenda.schedule(duty, nowMs + everyMs);
    // Fail closed: without a lease that is certain nothing begins. A confirmed renewal brings it back.
    else if (duty.lease.isHeld()) this.#begin(duty, target);
    else if (!duty.isOver) this.#agenda.schedule(duty, nowMs + UNCERTAIN_MS);
  }

  /** When its next poll is due. */
  #nextMs({ id, startedAtMs }: Duty): number {
    const { clock, random, everyMs, target: find } = this.#parts;
    const nowMs = clock.monotonicMs();
    if (startedAtMs === null) return nowMs;
    return Math.max(nowMs, startedAtMs + jittered(find(id)?.everyMs ?? everyMs, random));
  }

  #begin(duty: Duty, target: Target): void {
    const { clock, timeoutMs } = this.#parts;
    const run = new Run(duty.lease, clock.monotonicMs());
    duty.run = run;
    duty.startedAtMs = run.startMs;
    this.#inFlight++;
    const timer = clock.after(timeoutMs, () =>
      this.#stop(duty, run, new PollTimeoutError({ target: duty.id, timeoutMs })),
    );
    void this.#poll(duty, target, run).then(() => {
      timer.cancel();
      this.#settle(duty, run);
      run.settle();
    });
  }

  /** Never rejects. */
  async #poll(duty: Duty, target: Target, run: Run): Promise<void> {
    const { clock, events, onOutcome } = this.#parts;
    const { startMs, fence } = run;
    const { recent } = duty;
    const facts = () => ({ target: duty.id, fence, tookMs: clock.monotonicMs() - startMs });
    try {
      const value = await this.#handle(target, run);
      onOutcome({ ...facts(), ok: true, value, recent });
      if (events.hasListener('poll.done')) events.emit('poll.done', facts());
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      events.emit('poll.failed', { ...facts(), why });
      // What a lost lease has stopped says nothing about its target.
      if (!duty.isOver || run.stopReason instanceof PollTimeoutError)
        onOutcome({ ...facts(), ok: false, error: why, recent });
    }
  }

  #handle(target: Target, run: Run): unknown {
    const { tracing, poll } = this.#parts;
    const attributes = { 'holdfast.target': target.id, 'holdfast.fence': run.fence };
    return tracing.run({ name: 'holdfast.poll', attributes, isRoot: true }, (span) => {
      span.watch(run);
      return poll(target, run);
    });
  }

  #stop(duty: Duty, run: Run, reason: unknown): void {
    if (!run.stop(reason)) return;
    const { clock, events } = this.#parts;
    const timer = clock.after(STUCK_AFTER_MS, () => {
      run.isStuck = true;
      // Its place is free for another: one target that hangs must not keep the rest waiting.
      this.#inFlight--;
      const runsForMs = clock.monotonicMs() - run.startMs;
      events.emit('poll.stuck', { target: duty.id, fence: run.fence, runsForMs });
      this.#pump();
    });
    void run.settled.then(() => timer.cancel());
  }

  #settle(duty: Duty, run: Run): void {
    const { clock, events } = this.#parts;
    if (run.isStuck) {
      const { id, lease } = duty;
      const tookMs = clock.monotonicMs() - run.startMs;
      events.emit('poll.settled', { target: id, fence: lease.fence, tookMs });
    } else {
      this.#inFlight--;
    }
    duty.run = null;
    if (duty.isOver) {
      if (this.#duties.get(duty.id) === duty) this.#duties.delete(duty.id);
    } else if (!this.#isOver) {
      this.#agenda.schedule(duty, this.#nextMs(duty));
    }
    this.#pump();
  }
}
