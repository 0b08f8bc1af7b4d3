/**
 * Polls the targets that this instance owns: all on one timer, each at its own interval, at most
 * `concurrency` at once.
 *
 * A target is **due** when its time has come, **ready** while it waits for other polls to finish,
 * and **polled** while its poll runs. Right before a poll begins, and in the same turn, the
 * scheduler asks the lease whether new work may begin. A poll that waited, or a process that was
 * frozen, finds out here.
 *
 * An owned target is always one of the three. A paused or removed one stays due, because its
 * release may fail: it is polled again if it is resumed first.
 *
 * A poll ends by itself or is told to stop: it timed out, its lease is lost, or the instance stops.
 * A poll that does not stop when told is **stuck**: it is reported, and its target is neither
 * polled again nor handed over until it has stopped.
 */

import { jittered } from '../../core/random.ts';
import { TimerHeap } from '../../core/timer-heap.ts';
import type { Lease } from '../../lease/lease.ts';
import type { Runtime } from '../../store/runtime.ts';
import type { Duties } from '../member/ownership.ts';
import { PollTimeoutError } from '../targets/errors.ts';
import type { Target, TargetSource } from '../targets/target-source.ts';
import { RecentPolls } from './recent-polls.ts';
import type { PollOutcome, Results } from './results.ts';

/** A poll that was told to stop gets this long before it is reported as stuck. */
const STUCK_AFTER_MS = 1_000;
/** An uncertain lease is asked again after this, unless it is lost before. */
const UNCERTAIN_RETRY_MS = 250;

export interface PollContext {
  /** Fires when the lease is lost, the poll times out, or the instance stops. Pass it on. */
  readonly signal: AbortSignal;
  /** Proof of ownership for everything that the poll writes. */
  readonly fence: number;
  isHeld(): boolean;
  assertHeld(): void;
}

export type Poll = (target: Target, context: PollContext) => unknown;

/** Polls targets: the user's function, or the built-in one. */
export interface PollHandler {
  readonly poll: Poll;
  /** The target is not polled here any more. */
  forget?(id: string): void;
  close?(): Promise<void>;
}

export interface PollSettings {
  readonly handler: PollHandler;
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly concurrency: number;
}

/** One owned target. */
class Duty {
  readonly id: string;
  readonly lease: Lease;
  readonly recent = new RecentPolls();
  dueAtMs = 0;
  index = -1;
  /** When its last poll began; null before the first. */
  startedAtMs: number | null = null;
  run: PollRun | null = null;
  isOver = false;

  constructor(id: string, lease: Lease) {
    this.id = id;
    this.lease = lease;
  }
}

/** One poll, as its handler sees it. */
class PollRun implements PollContext {
  readonly startMs: number;
  readonly #lease: Lease;
  /** Made on first use: many handlers never read the signal, and there are many polls. */
  #controller: AbortController | null = null;
  #stopped: { readonly reason: unknown } | null = null;
  isStuck = false;
  /**
   * Resolves when the poll has stopped. Made at the beginning: a handler may release its own target
   * before it first awaits.
   */
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

  // Not methods: handlers destructure the context.
  readonly isHeld = (): boolean => this.#stopped === null && this.#lease.isHeld();
  readonly assertHeld = (): void => this.#lease.assertHeld();

  /** Why the poll was told to stop; undefined while it may continue. */
  get stopReason(): unknown {
    return this.#stopped?.reason;
  }

  /** Tells the poll to stop. False if it was told before. */
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
  readonly #rt: Runtime;
  readonly #targets: TargetSource;
  readonly #results: Results | null;
  readonly #settings: PollSettings;
  readonly #duties = new Map<string, Duty>();
  readonly #due: TimerHeap<Duty>;
  #ready: Duty[] = [];
  #inFlight = 0;
  #isPumping = false;
  #isOver = false;

  constructor(rt: Runtime, targets: TargetSource, results: Results | null, settings: PollSettings) {
    this.#rt = rt;
    this.#targets = targets;
    this.#results = results;
    this.#settings = settings;
    this.#due = new TimerHeap(rt.clock, () => this.#onDue());
  }

  /** How many polls are under way. */
  get inFlight(): number {
    return this.#inFlight;
  }

  begin(id: string, lease: Lease): void {
    const duty = new Duty(id, lease);
    this.#duties.set(id, duty);
    if (!this.#isOver) this.#due.schedule(duty, this.#rt.clock.monotonicMs());
  }

  end(id: string, isLost: boolean): Promise<void> | null {
    const duty = this.#duties.get(id);
    if (duty === undefined) return null;
    duty.isOver = true;
    this.#due.remove(duty);
    this.#settings.handler.forget?.(id);
    const { run } = duty;
    if (run === null) {
      this.#duties.delete(id);
      return null;
    }
    if (isLost) this.#stop(duty, run, duty.lease.signal.reason);
    return run.settled;
  }

  /** The record of the target has changed: its next poll may be due earlier or later. */
  reschedule(id: string): void {
    const duty = this.#duties.get(id);
    if (duty !== undefined && this.#due.has(duty)) this.#due.schedule(duty, this.#nextMs(duty));
  }

  /** Begins no more polls; those under way may finish. No timer keeps the process alive. */
  close(): void {
    this.#isOver = true;
    this.#ready = [];
    this.#due.clear();
  }

  /** Tells every poll under way to stop. */
  stopAll(reason: Error): void {
    for (const duty of this.#duties.values())
      if (duty.run !== null) this.#stop(duty, duty.run, reason);
  }

  #onDue(): void {
    const nowMs = this.#rt.clock.monotonicMs();
    for (let duty = this.#due.takeFirst(nowMs); duty; duty = this.#due.takeFirst(nowMs))
      this.#ready.push(duty);
    this.#pump();
  }

  /** Begins polls while there is room, in the order in which they were due. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    let taken = 0;
    while (taken < this.#ready.length && this.#inFlight < this.#settings.concurrency)
      this.#try(this.#ready[taken++] as Duty);
    // One copy for all that were begun: many may wait.
    this.#ready = this.#ready.slice(taken);
    this.#isPumping = false;
  }

  #try(duty: Duty): void {
    if (duty.isOver || this.#isOver) return;
    const target = this.#find(duty.id);
    const nowMs = this.#rt.clock.monotonicMs();
    // Paused or removed: the manager releases it, or `reschedule` says that it is resumed.
    if (target === undefined) this.#due.schedule(duty, nowMs + this.#settings.everyMs);
    // Fail closed: without a certain lease nothing begins. A confirmed renewal brings it back.
    else if (duty.lease.isHeld()) this.#begin(duty, target);
    else if (!duty.isOver) this.#due.schedule(duty, nowMs + UNCERTAIN_RETRY_MS);
  }

  /** The target, if it is to be polled. */
  #find(id: string): Target | undefined {
    return this.#targets.has(id) ? this.#targets.get(id) : undefined;
  }

  /** When its next poll is due. */
  #nextMs({ id, startedAtMs }: Duty): number {
    const { clock, random } = this.#rt;
    const nowMs = clock.monotonicMs();
    if (startedAtMs === null) return nowMs;
    const everyMs = this.#find(id)?.everyMs ?? this.#settings.everyMs;
    return Math.max(nowMs, startedAtMs + jittered(everyMs, random));
  }

  #begin(duty: Duty, target: Target): void {
    const { clock } = this.#rt;
    const { timeoutMs } = this.#settings;
    const run = new PollRun(duty.lease, clock.monotonicMs());
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
  async #poll(duty: Duty, target: Target, run: PollRun): Promise<void> {
    const { clock, events } = this.#rt;
    const { startMs, fence } = run;
    const took = () => clock.monotonicMs() - startMs;
    try {
      const value = await this.#handle(target, run);
      this.#record(duty, fence, { ok: true, tookMs: took(), value });
      if (events.hasListener('poll.done'))
        events.emit('poll.done', { target: duty.id, fence, tookMs: took() });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      events.emit('poll.failed', { target: duty.id, fence, tookMs: took(), why });
      // A poll that was stopped because its lease is lost says nothing about its target.
      if (!duty.isOver || run.stopReason instanceof PollTimeoutError)
        this.#record(duty, fence, { ok: false, tookMs: took(), error: why });
    }
  }

  /** A target that was removed meanwhile leaves no result. */
  #record({ id, recent }: Duty, fence: number, outcome: PollOutcome): void {
    if (this.#targets.has(id)) this.#results?.record(id, fence, outcome, recent);
  }

  #handle(target: Target, run: PollRun): unknown {
    const attributes = { 'holdfast.target': target.id, 'holdfast.fence': run.fence };
    const { poll } = this.#settings.handler;
    return this.#rt.tracing.run({ name: 'holdfast.poll', attributes, isRoot: true }, (span) => {
      span.watch(run);
      return poll(target, run);
    });
  }

  #stop(duty: Duty, run: PollRun, reason: unknown): void {
    if (!run.stop(reason)) return;
    const { clock, events } = this.#rt;
    const timer = clock.after(STUCK_AFTER_MS, () => {
      run.isStuck = true;
      // Its place is free: one target that hangs must not delay the others.
      this.#inFlight--;
      const runsForMs = clock.monotonicMs() - run.startMs;
      events.emit('poll.stuck', { target: duty.id, fence: run.fence, runsForMs });
      this.#pump();
    });
    void run.settled.then(() => timer.cancel());
  }

  #settle(duty: Duty, run: PollRun): void {
    const { clock, events } = this.#rt;
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
      this.#due.schedule(duty, this.#nextMs(duty));
    }
    this.#pump();
  }
}
