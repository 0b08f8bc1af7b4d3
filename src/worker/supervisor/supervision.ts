/**
 * Keeps a command inside its lease. The property: **every process of the command's group is dead before the store can
 * grant the lease to another**, whatever becomes of the process that holds the lease.
 *
 * That process, A, tells a deadline: the moment its lease is no longer good for. The store's expiry lies behind it by
 * the guard, which is the grace and a margin. So a group that is asked to end at the deadline, and killed when the grace
 * is over, is dead in time.
 *
 * A may have many commands, each under leases of its own. They have one supervisor process, and in it a supervision
 * each, which knows nothing of the others.
 *
 * **Idle.** In: at the beginning. Nothing runs. Out: A orders the start → waiting, or ended if the deadline has passed
 * already or the command can not be started; A is no more, or we are told to end → ended.
 *
 * **Waiting.** In: the command has a process, the leader of a group of its own, which waits at a gate (`gate.ts`). A is told of the
 * group. Out: A orders it to begin, which A does when it knows the group, and the lease is good → running; as below → stopping or ended.
 * So a command that A does not know of never begins, even if this process is killed or frozen at any moment.
 *
 * **Running.** In: the command has begun. Signals are passed on to the group, and
 * renewals move the deadline. Out, to stopping: the command has ended but its group has not; the deadline has passed; A
 * orders the stop; A is no more; we are told to end. To ended: the command and its group are gone.
 *
 * **Stopping.** In: as above. The group got SIGTERM, and SIGCONT because who is stopped does not see the other. It gets
 * SIGKILL when the grace is over, counted from then or from the deadline, whichever comes first. Out: the group is gone,
 * or is still there a while after SIGKILL → ended.
 *
 * **Ended.** What came of it is reported once, when what it wrote has been read, and nothing happens any more.
 *
 * Both clocks are read, every tick, and `base/deadline.ts` says what they mean: after the host has slept, the monotonic one
 * says that the deadline is still to come, and timers believe it. If the clocks disagree, A is told, and asks the store for a
 * confirmation at once. If the wall clock was set back, nothing shows any more that the lease still lasts. The command then
 * may run on for as long as a confirmation takes, and never beyond the deadline on the monotonic clock.
 */
import type { Clock, Timer } from '../../core/clock.ts';
import { type Confirmation, confirmationNow } from '../../core/validity.ts';
import {
  type CommandDeadline,
  graceLeftMs,
  hasDoubt,
  leftMs,
  standingOf,
} from './command-validity.ts';
import type { Ended, EndReason, Order, Report, Start } from './orders.ts';
import { KILLED_WITHIN_MS, lookPauses, type ProcessGroup } from './process-group.ts';

/** How often the clocks are asked: how late a host that has slept may notice. */
const TICK_MS = 100;

/**
 * What the dead have written is read within a moment. Somebody who has left the group may keep the outputs open for ever, and
 * nobody waits for that.
 */
const READ_WITHIN_MS = 200;

/** How long a confirmation may take after the wall clock was set back: a renewal, and another if the first is lost. */
const CONFIRMED_WITHIN_MS = 2_000;

type Exit = Pick<Ended, 'code' | 'signal'>;

/** A command that was started. */
export interface Spawned {
  readonly group: number;
  readonly startedTicks: number | null;
  readonly processes: ProcessGroup;
  /** It waits until this is called. */
  begin(): void;
  /** Its last lines. Nothing is read any more. */
  endOutput(): readonly string[];
}

export interface SupervisionParts {
  readonly clock: Clock;
  /** Starts the command as the leader of a new group; null if it can not be started, which `onError` is told about. */
  spawn(start: Start, on: SpawnListener): Spawned | null;
  report(report: Report): void;
}

export interface SpawnListener {
  onExit(exit: Exit): void;
  /** All that it wrote has been read, and nobody can write more. */
  onRead(): void;
  onProgress(text: string): void;
  onError(error: string): void;
}

export class Supervision {
  readonly #parts: SupervisionParts;
  #state: 'idle' | 'waiting' | 'running' | 'stopping' | 'ended' = 'idle';
  #mayBegin = false;
  #group: ProcessGroup | null = null;
  #spawned: Spawned | null = null;
  #exit: Exit | null = null;
  #isRead = false;
  #graceMs = 0;
  #deadline: CommandDeadline = [];
  #stopped: Confirmation | null = null;
  /** Since when nothing shows that the lease still lasts, on the monotonic clock. */
  #unprovenSinceMs: number | null = null;
  #hasToldDoubt = false;
  #killedAtMs: number | null = null;
  #pauses = lookPauses();
  #why: EndReason = 'done';
  #survivors = false;
  #isTold = false;
  #timer: Timer | null = null;

  constructor(parts: SupervisionParts) {
    this.#parts = parts;
  }

  get state(): 'idle' | 'waiting' | 'running' | 'stopping' | 'ended' {
    return this.#state;
  }

  hear(order: Order): void {
    if (order.do === 'start') this.#start(order);
    else if (order.do === 'begin') this.#begin();
    else if (order.do === 'extend') this.#extend(order.deadline);
    else if (order.do === 'signal') this.#group?.signal(order.signal);
    else this.#stop('ordered');
  }

  /** Whoever gave the orders is no more. */
  orphan(): void {
    this.#stop('orphaned');
  }

  /** The supervisor itself is told to end. */
  terminate(): void {
    this.#stop('terminated');
  }

  #start(start: Start): void {
    if (this.#state !== 'idle') return;
    this.#deadline = start.deadline;
    this.#graceMs = start.graceMs;
    if (this.#isOver()) {
      this.#why = 'deadline';
      this.#end(false);
      return;
    }
    this.#state = 'waiting';
    const spawned = this.#parts.spawn(start, {
      onExit: (exit) => {
        this.#exit = exit;
        this.#look();
      },
      onRead: () => {
        this.#isRead = true;
        if (this.#state === 'ended') this.#tell();
      },
      onProgress: (text) => this.#parts.report({ event: 'progress', text }),
      onError: (error) => {
        this.#state = 'ended';
        this.#isTold = true;
        this.#parts.report({ event: 'failed', error });
      },
    });
    if (spawned === null) return;
    this.#spawned = spawned;
    this.#group = spawned.processes;
    const { group, startedTicks } = spawned;
    this.#parts.report({ event: 'started', group, startedTicks });
    this.#look();
  }

  #begin(): void {
    this.#mayBegin = true;
    this.#look();
  }

  /** Not while nothing shows that the lease still lasts: this process may have stood still since it was ordered. */
  #beginIfGood(leftMs: number): void {
    if (this.#state !== 'waiting' || !this.#mayBegin || leftMs === 0) return;
    this.#state = 'running';
    this.#spawned?.begin();
  }

  #stop(why: EndReason): void {
    if (this.#state === 'idle') {
      this.#why = why;
      this.#end(false);
    }
    // A command that could not be started says so by itself.
    const group = this.#group;
    const isUp = this.#state === 'waiting' || this.#state === 'running';
    if (!isUp || group === null) return;
    this.#state = 'stopping';
    this.#why = why;
    this.#stopped = confirmationNow(this.#parts.clock);
    group.signal('SIGTERM');
    group.signal('SIGCONT');
    this.#look();
  }

  /** Looks at the clocks and at the group, does what is due, and comes back in time for what is next. */
  #look(): void {
    if (this.#group === null || this.#state === 'ended') return;
    this.#timer?.cancel();
    if (this.#exit !== null && !this.#group.isAlive()) {
      this.#end(false);
    } else if (this.#state === 'stopping') {
      this.#lookAtStopping(this.#group);
    } else if (this.#exit !== null) {
      this.#stop('done');
    } else if (!this.#isOver()) {
      const restMs = leftMs(this.#deadline, this.#parts.clock);
      this.#tellDoubt();
      this.#beginIfGood(restMs);
      this.#lookIn(Math.min(restMs || TICK_MS, TICK_MS));
    } else {
      // Who stood still wakes to its timers first: a renewal may have arrived that is not read yet.
      this.#parts.clock.afterInput(() => {
        if (this.#isOver()) this.#stop('deadline');
        else this.#look();
      });
    }
  }

  #extend(deadline: CommandDeadline): void {
    this.#deadline = deadline;
    this.#hasToldDoubt = false;
  }

  #tellDoubt(): void {
    if (this.#hasToldDoubt || !hasDoubt(this.#deadline, this.#parts.clock)) return;
    this.#hasToldDoubt = true;
    this.#parts.report({ event: 'doubt' });
  }

  /** Whether the command may run no longer. */
  #isOver(): boolean {
    const { clock } = this.#parts;
    const standing = standingOf(this.#deadline, clock);
    if (standing !== 'unproven') {
      this.#unprovenSinceMs = null;
      return standing === 'over';
    }
    this.#unprovenSinceMs ??= clock.monotonicMs();
    return clock.monotonicMs() - this.#unprovenSinceMs >= CONFIRMED_WITHIN_MS;
  }

  #lookAtStopping(group: ProcessGroup): void {
    const nowMs = this.#parts.clock.monotonicMs();
    const graceMs = this.#graceLeftMs();
    if (this.#killedAtMs === null && graceMs === 0) {
      this.#killedAtMs = nowMs;
      this.#pauses = lookPauses();
      group.signal('SIGKILL');
    }
    const pauseMs = this.#pauses.next().value;
    if (this.#killedAtMs === null) {
      this.#lookIn(Math.min(pauseMs, graceMs));
    } else if (nowMs - this.#killedAtMs > KILLED_WITHIN_MS) {
      this.#end(true);
    } else {
      this.#lookIn(pauseMs);
    }
  }

  #lookIn(delayMs: number): void {
    this.#timer = this.#parts.clock.after(delayMs, () => this.#look());
  }

  #end(survivors: boolean): void {
    this.#state = 'ended';
    this.#survivors = survivors;
    // From here on its id may be another's.
    this.#group = null;
    if (this.#isRead || this.#spawned === null) this.#tell();
    else this.#timer = this.#parts.clock.after(READ_WITHIN_MS, () => this.#tell());
  }

  #tell(): void {
    this.#timer?.cancel();
    if (this.#isTold) return;
    const { code = null, signal = null } = this.#exit ?? {};
    const [why, survivors] = [this.#why, this.#survivors];
    // Before it is said that it has ended: there may be a last word in it on how far it came.
    const output = this.#spawned?.endOutput() ?? [];
    this.#isTold = true;
    this.#parts.report({ event: 'ended', why, code, signal, survivors, output });
  }

  #graceLeftMs(): number {
    const { clock } = this.#parts;
    const stopped = this.#stopped ?? confirmationNow(clock);
    return graceLeftMs({ deadline: this.#deadline, graceMs: this.#graceMs }, stopped, clock);
  }
}
