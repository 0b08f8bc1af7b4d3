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
import type { FleetWork } from '../fleet-service.ts';
import { type WorkContext, WorkRun } from '../member/work-run.ts';
import { PollTimeoutError } from '../targets/errors.ts';
import type { Target, TargetSource } from '../targets/target-source.ts';
import { PollHistory } from './poll-history.ts';
import type { ResultWriter, WorkOutcome } from './result-writer.ts';

/** A poll that was told to stop gets this long before it is reported as stuck. */
const STUCK_AFTER_MS = 1_000;
/** An uncertain lease is asked again after this, unless it is lost before. */
const UNCERTAIN_RETRY_MS = 250;

export interface PollContext extends WorkContext {}

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
interface PolledTarget {
  readonly id: string;
  readonly lease: Lease;
  readonly recent: PollHistory;
  dueAtMs: number;
  index: number;
  /** When its last poll began; null before the first. */
  startedAtMs: number | null;
  run: WorkRun | null;
  isOver: boolean;
}

export class PollScheduler implements FleetWork {
  readonly #rt: Runtime;
  readonly #targets: TargetSource;
  readonly #results: ResultWriter | null;
  readonly #settings: PollSettings;
  readonly #polled = new Map<string, PolledTarget>();
  readonly #due: TimerHeap<PolledTarget>;
  #ready: PolledTarget[] = [];
  #inFlight = 0;
  #isPumping = false;
  #isOver = false;

  constructor(
    rt: Runtime,
    targets: TargetSource,
    results: ResultWriter | null,
    settings: PollSettings,
  ) {
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
    const polled: PolledTarget = {
      id,
      lease,
      recent: new PollHistory(),
      dueAtMs: 0,
      index: -1,
      startedAtMs: null,
      run: null,
      isOver: false,
    };
    this.#polled.set(id, polled);
    if (!this.#isOver) this.#due.schedule(polled, this.#rt.clock.monotonicMs());
  }

  end(id: string, isLost: boolean): Promise<void> | null {
    const polled = this.#polled.get(id);
    if (polled === undefined) return null;
    polled.isOver = true;
    this.#due.remove(polled);
    this.#settings.handler.forget?.(id);
    const { run } = polled;
    if (run === null) {
      this.#polled.delete(id);
      return null;
    }
    if (isLost) this.#stop(polled, run, polled.lease.signal.reason);
    return run.settled;
  }

  /** The record of the target has changed: its next poll may be due earlier or later. */
  reschedule(id: string): void {
    const polled = this.#polled.get(id);
    if (polled !== undefined && this.#due.has(polled))
      this.#due.schedule(polled, this.#nextMs(polled));
  }

  /** Begins no more polls; those under way may finish. No timer keeps the process alive. */
  close(): void {
    this.#isOver = true;
    this.#ready = [];
    this.#due.clear();
  }

  describe(_id: string): string | null {
    return null;
  }

  async dispose(): Promise<void> {
    await this.#settings.handler.close?.();
  }

  /** Tells every poll under way to stop. */
  stopAll(reason: Error): void {
    for (const polled of this.#polled.values())
      if (polled.run !== null) this.#stop(polled, polled.run, reason);
  }

  #onDue(): void {
    const nowMs = this.#rt.clock.monotonicMs();
    for (let polled = this.#due.takeFirst(nowMs); polled; polled = this.#due.takeFirst(nowMs))
      this.#ready.push(polled);
    this.#pump();
  }

  /** Begins polls while there is room, in the order in which they were due. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    let taken = 0;
    while (taken < this.#ready.length && this.#inFlight < this.#settings.concurrency)
      this.#try(this.#ready[taken++] as PolledTarget);
    // One copy for all that were begun: many may wait.
    this.#ready = this.#ready.slice(taken);
    this.#isPumping = false;
  }

  #try(polled: PolledTarget): void {
    if (polled.isOver || this.#isOver) return;
    const target = this.#find(polled.id);
    const nowMs = this.#rt.clock.monotonicMs();
    // Paused or removed: the manager releases it, or `reschedule` says that it is resumed.
    if (target === undefined) this.#due.schedule(polled, nowMs + this.#settings.everyMs);
    // Fail closed: without a certain lease nothing begins. A confirmed renewal brings it back.
    else if (polled.lease.isHeld()) this.#begin(polled, target);
    else if (!polled.isOver) this.#due.schedule(polled, nowMs + UNCERTAIN_RETRY_MS);
  }

  /** The target, if it is to be polled. */
  #find(id: string): Target | undefined {
    return this.#targets.has(id) ? this.#targets.get(id) : undefined;
  }

  /** When its next poll is due. */
  #nextMs({ id, startedAtMs }: PolledTarget): number {
    const { clock, random } = this.#rt;
    const nowMs = clock.monotonicMs();
    if (startedAtMs === null) return nowMs;
    const everyMs = this.#find(id)?.everyMs ?? this.#settings.everyMs;
    return Math.max(nowMs, startedAtMs + jittered(everyMs, random));
  }

  #begin(polled: PolledTarget, target: Target): void {
    const { clock } = this.#rt;
    const { timeoutMs } = this.#settings;
    const run = new WorkRun(polled.lease, clock.monotonicMs());
    polled.run = run;
    polled.startedAtMs = run.startMs;
    this.#inFlight++;
    const timer = clock.after(timeoutMs, () =>
      this.#stop(polled, run, new PollTimeoutError({ target: polled.id, timeoutMs })),
    );
    void this.#poll(polled, target, run).then(() => {
      timer.cancel();
      this.#settle(polled, run);
      run.settle();
    });
  }

  /** Never rejects. */
  async #poll(polled: PolledTarget, target: Target, run: WorkRun): Promise<void> {
    const { clock, events } = this.#rt;
    const { startMs, fence } = run;
    const took = () => clock.monotonicMs() - startMs;
    try {
      const value = await this.#handle(target, run);
      this.#record(polled, fence, { ok: true, tookMs: took(), value });
      if (events.hasListener('poll.done'))
        events.emit('poll.done', { target: polled.id, fence, tookMs: took() });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      events.emit('poll.failed', { target: polled.id, fence, tookMs: took(), why });
      // A poll that was stopped because its lease is lost says nothing about its target.
      if (!polled.isOver || run.stopReason instanceof PollTimeoutError)
        this.#record(polled, fence, { ok: false, tookMs: took(), error: why });
    }
  }

  /** A target that was removed meanwhile leaves no result. */
  #record({ id, recent }: PolledTarget, fence: number, outcome: WorkOutcome): void {
    if (this.#targets.has(id)) this.#results?.record(id, fence, outcome, recent);
  }

  #handle(target: Target, run: WorkRun): unknown {
    const attributes = { 'holdfast.target': target.id, 'holdfast.fence': run.fence };
    const { poll } = this.#settings.handler;
    return this.#rt.tracing.run({ name: 'holdfast.poll', attributes, isRoot: true }, (span) => {
      span.watch(run);
      return poll(target, run);
    });
  }

  #stop(polled: PolledTarget, run: WorkRun, reason: unknown): void {
    if (!run.stop(reason)) return;
    const { clock, events } = this.#rt;
    const timer = clock.after(STUCK_AFTER_MS, () => {
      run.isStuck = true;
      // Its place is free: one target that hangs must not delay the others.
      this.#inFlight--;
      const runsForMs = clock.monotonicMs() - run.startMs;
      events.emit('poll.stuck', { target: polled.id, fence: run.fence, runsForMs });
      this.#pump();
    });
    void run.settled.then(() => timer.cancel());
  }

  #settle(polled: PolledTarget, run: WorkRun): void {
    const { clock, events } = this.#rt;
    if (run.isStuck) {
      const { id, lease } = polled;
      const tookMs = clock.monotonicMs() - run.startMs;
      events.emit('poll.settled', { target: id, fence: lease.fence, tookMs });
    } else {
      this.#inFlight--;
    }
    polled.run = null;
    if (polled.isOver) {
      if (this.#polled.get(polled.id) === polled) this.#polled.delete(polled.id);
    } else if (!this.#isOver) {
      this.#due.schedule(polled, this.#nextMs(polled));
    }
    this.#pump();
  }
}
