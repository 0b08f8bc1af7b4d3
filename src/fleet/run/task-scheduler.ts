/**
 * Runs one long-lived task for each target that this instance owns: a connection, a subscription,
 * an agent. `LeaseManager` says which targets those are, as it does for polls.
 *
 * **waiting.** In: this instance owns the target, or its task has ended. Out: its time has come,
 * the
 * target is listed, and the lease says in the same turn that new work may begin → running.
 *
 * **running.** In: as above. Out: the task returns or throws → waiting, after a pause that doubles
 * with each exit in a row, from `backoff.minMs` to `backoff.maxMs`. A task that ran for `maxMs` or
 * longer begins a new row. The task is told to stop → stopping.
 *
 * **stopping.** In: the lease is lost; the target is handed over, paused or removed; the record of
 * the target has changed; or the task was silent and `onStuck` is `restart`. Its `signal` has
 * fired. Out: the task has settled → waiting, or over if this instance gives the target up. A task
 * that has not settled after `graceMs` is **stuck**: it is reported, and its target is neither
 * started again here nor handed over until it has settled.
 *
 * A task is **silent** when it has not called `progress` for `stuckAfterMs`. It is reported. With
 * `onStuck: 'restart'` it is told to stop, too. If it is stuck then, its lease is given up: no
 * renewal follows, another instance gets the target when the lease has expired, and the fence stops
 * the writes of the stuck task. So work that makes no progress does not keep a lease for ever.
 */
import type { BackoffLimits } from '../../core/backoff.ts';
import type { Clock } from '../../core/clock.ts';
import { jittered } from '../../core/random.ts';
import { TimerHeap } from '../../core/timer-heap.ts';
import type { Deadline } from '../../core/validity.ts';
import type { Lease } from '../../lease/lease.ts';
import type { Runtime } from '../../store/runtime.ts';
import type { FleetWork } from '../fleet-service.ts';
import { type WorkContext, WorkRun } from '../member/work-run.ts';
import type { ResultWriter, WorkOutcome } from '../poll/result-writer.ts';
import { TaskStoppedError } from '../targets/errors.ts';
import type { Target, TargetSource } from '../targets/target-source.ts';

/** An uncertain lease is asked again after this, unless it is lost before. */
const UNCERTAIN_RETRY_MS = 250;
/** A target that is not listed is looked for again after this: its release may fail. */
const UNLISTED_RETRY_MS = 10_000;
/** Tasks started in one turn of the event loop; the others follow in the next turns. */
const MAX_STARTS = 200;
/** A timer this late means that the process stood still, and its tasks with it. */
const LATE_MS = 1_000;
/** Of `stuckAfterMs`: how soon a silent task is looked at again. */
const SILENT_CHECK_SHARE = 1 / 4;

export interface RunContext extends WorkContext {
  /** The task makes progress. Cheap: call it with every message. See `stuckAfter`. */
  progress(): void;
  /** Until when the lease is valid without another renewal, for a supervisor on this host. */
  readonly deadline: Deadline;
}

/** Works on one target until it ends by itself or `signal` fires. */
export type Run = (target: Target, context: RunContext) => unknown;

export interface TaskSettings {
  readonly run: Run;
  readonly backoff: BackoffLimits;
  /** How long a task may take to settle after it was told to, before it is reported as stuck. */
  readonly graceMs: number;
  /** Infinity: silence is not reported. */
  readonly stuckAfterMs: number;
  readonly onStuck: 'report' | 'restart';
  /** Leaves the lease of a target to expire, although its task still runs. */
  giveUp(id: string): void;
  close?(): Promise<void>;
}

/** One owned target. */
interface OwnedTask {
  readonly id: string;
  readonly lease: Lease;
  /** When to start the task, or to look whether it is silent. */
  dueAtMs: number;
  index: number;
  run: TaskRun | null;
  /** Exits in a row. */
  exits: number;
  /** Why the last run ended; null if it returned. */
  why: string | null;
  isOver: boolean;
}

class TaskRun extends WorkRun implements RunContext {
  readonly target: Target;
  progressAtMs: number;
  isSilent = false;
  readonly #clock: Clock;

  constructor(clock: Clock, lease: Lease, target: Target) {
    const nowMs = clock.monotonicMs();
    super(lease, nowMs);
    this.#clock = clock;
    this.target = target;
    this.progressAtMs = nowMs;
  }

  get progress(): () => void {
    return () => {
      this.progressAtMs = this.#clock.monotonicMs();
    };
  }
}

export class TaskScheduler implements FleetWork {
  readonly #rt: Runtime;
  readonly #targets: TargetSource;
  readonly #results: ResultWriter | null;
  readonly #settings: TaskSettings;
  readonly #tasks = new Map<string, OwnedTask>();
  readonly #timers: TimerHeap<OwnedTask>;
  #inFlight = 0;
  #isClosed = false;

  constructor(
    rt: Runtime,
    targets: TargetSource,
    results: ResultWriter | null,
    settings: TaskSettings,
  ) {
    this.#rt = rt;
    this.#targets = targets;
    this.#results = results;
    this.#settings = settings;
    this.#timers = new TimerHeap(rt.clock, (lateMs) => this.#onDue(lateMs));
  }

  /** How many tasks run. */
  get inFlight(): number {
    return this.#inFlight;
  }

  begin(id: string, lease: Lease): void {
    const task: OwnedTask = {
      id,
      lease,
      dueAtMs: 0,
      index: -1,
      run: null,
      exits: 0,
      why: null,
      isOver: false,
    };
    this.#tasks.set(id, task);
    if (!this.#isClosed) this.#timers.schedule(task, this.#rt.clock.monotonicMs());
  }

  /** A task does not end by itself, so it is told to stop even if its lease is not lost. */
  end(id: string, isLost: boolean): Promise<void> | null {
    const task = this.#tasks.get(id);
    if (task === undefined) return null;
    task.isOver = true;
    const { run } = task;
    if (run === null) {
      this.#timers.remove(task);
      this.#tasks.delete(id);
      return null;
    }
    const released = new TaskStoppedError({ target: id, why: 'released' });
    this.#stop(task, run, isLost ? task.lease.signal.reason : released);
    return run.settled;
  }

  /** A task whose target has changed is told to stop, and starts again with the new one. */
  reschedule(id: string): void {
    const task = this.#tasks.get(id);
    const target = this.#find(id);
    if (task === undefined || target === undefined) return;
    const { run } = task;
    if (run === null) {
      // What made the task fail may be put right.
      task.exits = 0;
      if (this.#timers.has(task)) this.#timers.schedule(task, this.#rt.clock.monotonicMs());
    } else if (JSON.stringify(target) !== JSON.stringify(run.target))
      this.#stop(task, run, new TaskStoppedError({ target: id, why: 'changed' }));
  }

  /** Starts no more tasks. */
  close(): void {
    this.#isClosed = true;
    this.#timers.clear();
  }

  stopAll(reason: Error): void {
    for (const task of this.#tasks.values())
      if (task.run !== null) this.#stop(task, task.run, reason);
  }

  async dispose(): Promise<void> {
    await this.#settings.close?.();
  }

  /** The state of the task in words; null where this instance has none. */
  describe(id: string): string | null {
    const task = this.#tasks.get(id);
    if (task === undefined) return null;
    const { run, exits, dueAtMs, why } = task;
    const nowMs = this.#rt.clock.monotonicMs();
    if (run !== null) {
      const ran = `Its task runs for ${seconds(nowMs - run.startMs)}`;
      if (run.isStuck) return `${ran}, although it was told to stop.`;
      const silent = `${ran}, and has made no progress for ${seconds(nowMs - run.progressAtMs)}.`;
      return run.isSilent ? silent : `${ran}.`;
    }
    if (exits === 0) return 'Its task starts now.';
    const last = why === null ? 'it returned' : why;
    const times = exits === 1 ? 'once' : `${exits} times in a row`;
    return `Its task has ended ${times} (${last}), and starts again in ${seconds(dueAtMs - nowMs)}.`;
  }

  #onDue(lateMs: number): void {
    const nowMs = this.#rt.clock.monotonicMs();
    let started = 0;
    while (started < MAX_STARTS) {
      const task = this.#timers.takeFirst(nowMs);
      if (task === undefined) return;
      if (task.run === null) started += this.#try(task) ? 1 : 0;
      else this.#checkProgress(task, task.run, lateMs);
    }
  }

  /** Starts the task if it may. */
  #try(task: OwnedTask): boolean {
    if (task.isOver || this.#isClosed) return false;
    const target = this.#find(task.id);
    const nowMs = this.#rt.clock.monotonicMs();
    // Paused or removed: the manager releases it, or `reschedule` says that it is resumed.
    if (target === undefined) this.#timers.schedule(task, nowMs + UNLISTED_RETRY_MS);
    else if (task.lease.isHeld()) {
      this.#start(task, target);
      return true;
    }
    // Fail closed: without a certain lease nothing begins. A confirmed renewal brings it back.
    else if (!task.isOver) this.#timers.schedule(task, nowMs + UNCERTAIN_RETRY_MS);
    return false;
  }

  /** The target, if its task is to run. */
  #find(id: string): Target | undefined {
    return this.#targets.has(id) ? this.#targets.get(id) : undefined;
  }

  #start(task: OwnedTask, target: Target): void {
    const { clock, events } = this.#rt;
    const run = new TaskRun(clock, task.lease, target);
    const { stuckAfterMs } = this.#settings;
    task.run = run;
    this.#inFlight++;
    if (events.hasListener('run.started'))
      events.emit('run.started', { target: task.id, fence: run.fence });
    this.#record(task, { ok: true, tookMs: 0, state: 'running', failures: task.exits });
    if (Number.isFinite(stuckAfterMs)) this.#timers.schedule(task, run.startMs + stuckAfterMs);
    void this.#run(task, run);
  }

  /** Never rejects. */
  async #run(task: OwnedTask, run: TaskRun): Promise<void> {
    /** Why the task threw; null if it returned. */
    let why: string | null = null;
    try {
      await this.#settings.run(run.target, run);
    } catch (error) {
      why = error instanceof Error ? error.message : String(error);
    }
    this.#onSettled(task, run, why);
    run.settle();
  }

  #onSettled(task: OwnedTask, run: TaskRun, why: string | null): void {
    const { clock, events } = this.#rt;
    const { id: target } = task;
    const { fence, stopReason } = run;
    const ranForMs = clock.monotonicMs() - run.startMs;
    this.#inFlight--;
    this.#timers.remove(task);
    task.run = null;
    if (run.isStuck) events.emit('run.settled', { target, fence, ranForMs });
    if (task.isOver || stopReason !== undefined)
      events.emit('run.ended', { target, fence, ranForMs });
    if (task.isOver) {
      if (this.#tasks.get(target) === task) this.#tasks.delete(target);
      return;
    }
    const isSilent = stopReason instanceof TaskStoppedError && stopReason.why === 'silent';
    if (stopReason === undefined) this.#pause(task, ranForMs, why);
    else if (isSilent) this.#pause(task, ranForMs, stopReason.message);
    else if (!this.#isClosed) this.#timers.schedule(task, clock.monotonicMs());
  }

  /** The task has ended by itself, or was silent: it starts again after a pause. */
  #pause(task: OwnedTask, ranForMs: number, why: string | null): void {
    const { clock, random, events } = this.#rt;
    const { minMs, maxMs } = this.#settings.backoff;
    task.exits = ranForMs >= maxMs ? 1 : task.exits + 1;
    task.why = why;
    const restartInMs = jittered(Math.min(minMs * 2 ** (task.exits - 1), maxMs), random);
    const { id: target, exits } = task;
    const { fence } = task.lease;
    events.emit('run.exited', { target, fence, ranForMs, why, restartInMs, exits });
    this.#record(task, {
      ok: why === null,
      tookMs: ranForMs,
      state: 'waiting',
      failures: exits,
      nextInMs: restartInMs,
      ...(why !== null && { error: why }),
    });
    if (!this.#isClosed) this.#timers.schedule(task, clock.monotonicMs() + restartInMs);
  }

  #checkProgress(task: OwnedTask, run: TaskRun, lateMs: number): void {
    const { clock, events } = this.#rt;
    const { stuckAfterMs, onStuck } = this.#settings;
    const { id: target } = task;
    const { fence } = run;
    const nowMs = clock.monotonicMs();
    const silentForMs = nowMs - run.progressAtMs;
    const silentAtMs = run.progressAtMs + stuckAfterMs;
    // By the moment that is scheduled: rounding must not make the task due again at once.
    if (silentAtMs > nowMs) {
      if (run.isSilent) {
        run.isSilent = false;
        events.emit('run.resumed', { target, fence });
        this.#record(task, {
          ok: true,
          tookMs: nowMs - run.startMs,
          state: 'running',
          failures: 0,
        });
      }
      this.#timers.schedule(task, silentAtMs);
      return;
    }
    if (lateMs > LATE_MS) {
      // The whole process stood still: the task gets its time again.
      this.#timers.schedule(task, nowMs + stuckAfterMs);
      return;
    }
    if (run.stopReason !== undefined) {
      this.#giveUp(task, run);
      return;
    }
    if (!run.isSilent) {
      run.isSilent = true;
      events.emit('run.silent', { target, fence, silentForMs, isStopped: onStuck === 'restart' });
      this.#record(task, this.#trouble(run, 'silent', `no progress for ${seconds(silentForMs)}`));
    }
    if (onStuck === 'restart')
      this.#stop(task, run, new TaskStoppedError({ target, why: 'silent', silentForMs }));
    else this.#timers.schedule(task, nowMs + stuckAfterMs * SILENT_CHECK_SHARE);
  }

  #stop(task: OwnedTask, run: TaskRun, reason: unknown): void {
    if (!run.stop(reason)) return;
    const { clock } = this.#rt;
    const timer = clock.after(this.#settings.graceMs, () => this.#onStuck(task, run));
    void run.settled.then(() => timer.cancel());
  }

  #onStuck(task: OwnedTask, run: TaskRun): void {
    const { clock, events } = this.#rt;
    run.isStuck = true;
    const runsForMs = clock.monotonicMs() - run.startMs;
    events.emit('run.stuck', { target: task.id, fence: run.fence, runsForMs });
    if (task.lease.lossReason === null)
      this.#record(task, this.#trouble(run, 'stuck', 'told to stop, and still runs'));
    this.#giveUp(task, run);
  }

  /** Gives up the lease of a stuck task that makes no progress, if that is asked for. */
  #giveUp(task: OwnedTask, run: TaskRun): void {
    const { stuckAfterMs, onStuck, giveUp } = this.#settings;
    if (onStuck !== 'restart' || !Number.isFinite(stuckAfterMs) || run !== task.run) return;
    const silentAtMs = run.progressAtMs + stuckAfterMs;
    if (run.isStuck && silentAtMs <= this.#rt.clock.monotonicMs()) giveUp(task.id);
    else if (run.isStuck && !this.#isClosed) this.#timers.schedule(task, silentAtMs);
  }

  #trouble(run: TaskRun, state: 'silent' | 'stuck', error: string): WorkOutcome {
    const tookMs = this.#rt.clock.monotonicMs() - run.startMs;
    return { ok: false, tookMs, state, error };
  }

  /** A target that was removed meanwhile leaves no result. */
  #record({ id, lease }: OwnedTask, outcome: WorkOutcome): void {
    if (this.#targets.has(id)) this.#results?.record(id, lease.fence, outcome);
  }
}

function seconds(ms: number): string {
  const whole = Math.max(0, ms);
  return whole < 10_000 ? `${Math.round(whole / 100) / 10} s` : `${Math.round(whole / 1_000)} s`;
}
