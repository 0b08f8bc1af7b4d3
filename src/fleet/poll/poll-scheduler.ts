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
 * The interval doubles with every failure in a row after the first, up to `maxBackoffMs` (or the
 * interval itself, if that is longer). A success, or a change of the target, ends the row.
 *
 * A new owner continues where the last one stopped: it reads the last result of the target, and
 * polls when the last owner would have. If there is none, or it cannot be read, it polls at once.
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
import { RESULT_COLLECTION } from '../targets/target-record.ts';
import type { Target, TargetSource } from '../targets/target-source.ts';
import { PollHistory } from './poll-history.ts';
import type { ResultWriter, WorkOutcome } from './result-writer.ts';

/** A poll that was told to stop gets this long before it is reported as stuck. */
const STUCK_AFTER_MS = 1_000;
/** An uncertain lease is asked again after this, unless it is lost before. */
const UNCERTAIN_RETRY_MS = 250;
/** The new owner of a target with a shorter interval polls it at once. */
const MIN_CONTINUED_MS = 1_000;
/** How many last results one request reads, and how long it may take. */
const READ_CHUNK = 200;
const READ_TIMEOUT_MS = 2_000;

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
  /** No failing target waits longer, unless its interval is longer; 0: failures change nothing. */
  readonly maxBackoffMs: number;
}

/** One owned target. */
interface PolledTarget {
  readonly id: string;
  readonly lease: Lease;
  readonly recent: PollHistory;
  dueAtMs: number;
  index: number;
  /** When its last poll began, by any owner; null where that is unknown. */
  startedAtMs: number | null;
  /** Failed polls in a row. */
  failures: number;
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
  /** New here: their last results have to be read. */
  #unread: PolledTarget[] = [];
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
      failures: 0,
      run: null,
      isOver: false,
    };
    this.#polled.set(id, polled);
    if (this.#isOver) return;
    // A target that is polled all the time need not wait for its last result.
    if (this.#results !== null && this.#everyMs(id) >= MIN_CONTINUED_MS) this.#continue(polled);
    else this.#due.schedule(polled, this.#rt.clock.monotonicMs());
  }

  end(id: string, isLost: boolean): Promise<void> | null {
    const polled = this.#polled.get(id);
    if (polled === undefined) return null;
    polled.isOver = true;
    this.#due.remove(polled);
    this.#settings.handler.forget?.(id);
    const { run } = polled;
    // The next owner reads it.
    this.#results?.hurry();
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
    if (polled === undefined) return;
    // What made its polls fail may be put right.
    polled.failures = 0;
    if (this.#due.has(polled)) this.#due.schedule(polled, this.#nextMs(polled));
  }

  /** Begins no more polls; those under way may finish. No timer keeps the process alive. */
  close(): void {
    this.#isOver = true;
    this.#ready = [];
    this.#due.clear();
  }

  describe(id: string): string | null {
    const polled = this.#polled.get(id);
    if (polled === undefined || polled.failures === 0 || polled.run !== null) return null;
    const inMs = Math.max(0, polled.dueAtMs - this.#rt.clock.monotonicMs());
    const times = polled.failures === 1 ? 'once' : `${polled.failures} times in a row`;
    return `Its poll has failed ${times}; the next one begins in ${Math.ceil(inMs / 1_000)} s.`;
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
  #nextMs({ id, startedAtMs, failures }: PolledTarget): number {
    const { clock, random } = this.#rt;
    const nowMs = clock.monotonicMs();
    if (startedAtMs === null) return nowMs;
    return Math.max(nowMs, startedAtMs + jittered(this.#intervalMs(id, failures), random));
  }

  #everyMs(id: string): number {
    return this.#find(id)?.everyMs ?? this.#settings.everyMs;
  }

  /** From the beginning of one poll to that of the next. */
  #intervalMs(id: string, failures: number): number {
    const everyMs = this.#everyMs(id);
    const longestMs = Math.max(everyMs, this.#settings.maxBackoffMs);
    return Math.min(everyMs * 2 ** Math.max(0, failures - 1), longestMs);
  }

  /** Polls the target when its last owner would have. */
  #continue(polled: PolledTarget): void {
    if (this.#unread.length === 0) this.#rt.clock.soon(() => void this.#readResults());
    this.#unread.push(polled);
  }

  /** Never rejects. */
  async #readResults(): Promise<void> {
    const { store } = this.#rt;
    const unread = this.#unread;
    this.#unread = [];
    for (let at = 0; at < unread.length; at += READ_CHUNK) {
      const chunk = unread.slice(at, at + READ_CHUNK);
      const ids = chunk.map(({ id }) => id);
      // A result that cannot be read costs an early poll, which does no harm.
      const replies = await store.records
        .get(RESULT_COLLECTION, ids, { timeoutMs: READ_TIMEOUT_MS })
        .catch(() => []);
      for (const [i, polled] of chunk.entries()) {
        if (polled.isOver || this.#isOver) continue;
        const reply = replies[i];
        if (reply?.kind === 'found') this.#adopt(polled, reply.value);
        this.#due.schedule(polled, this.#nextMs(polled));
      }
    }
  }

  /** Other programs may write results, too, and clocks differ: at most one interval is waited. */
  #adopt(polled: PolledTarget, value: unknown): void {
    const { clock } = this.#rt;
    const { at, tookMs, failures, state } = (value ?? {}) as { [field: string]: unknown };
    if (typeof at !== 'number' || typeof tookMs !== 'number' || state !== undefined) return;
    if (Number.isSafeInteger(failures) && (failures as number) > 0)
      polled.failures = failures as number;
    const agoMs = Math.max(0, clock.wallMs() - (at - tookMs));
    polled.startedAtMs = clock.monotonicMs() - agoMs;
  }

  #begin(polled: PolledTarget, target: Target): void {
    const { clock } = this.#rt;
    const timeoutMs = target.timeoutMs ?? this.#settings.timeoutMs;
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
      polled.failures = 0;
      this.#record(polled, fence, { ok: true, tookMs: took(), value });
      if (events.hasListener('poll.done'))
        events.emit('poll.done', { target: polled.id, fence, tookMs: took() });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      events.emit('poll.failed', { target: polled.id, fence, tookMs: took(), why });
      // A poll that was stopped because its lease is lost says nothing about its target.
      if (polled.isOver && !(run.stopReason instanceof PollTimeoutError)) return;
      const failures = ++polled.failures;
      const nextInMs = Math.max(0, this.#intervalMs(polled.id, failures) - took());
      this.#record(polled, fence, { ok: false, tookMs: took(), error: why, failures, nextInMs });
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
