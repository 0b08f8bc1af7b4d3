/**
 * Keeps one command inside its leases. The property: **every process of the command's group is dead
 * before the store can grant a lease to another holder**, even if the process that holds the leases
 * is killed or suspended.
 *
 * That process, the owner, sends a deadline: the moment until which its leases are good. The
 * store's expiry is later by the guard, which is the grace and a margin. So a group that is asked
 * to end at the deadline, and killed when the grace is over, is dead in time.
 *
 * An owner may have many commands, each under its own leases. They share one supervisor process,
 * which has one `GroupRun` for each.
 *
 * **Idle.** In: at the beginning. Nothing runs. Out: the owner orders the start → waiting, or ended
 * if the deadline has passed or the command cannot be started; the owner is gone, or the supervisor
 * is told to end → ended.
 *
 * **Waiting.** In: the command has a process, the leader of its own group, which waits at a gate
 * (`gate.ts`). The group is reported to the owner. Out: the owner orders the command to begin,
 * which it does when it knows the group, and the leases are good → running; as below → stopping or
 * ended. So a command that its owner does not know never begins, even if the supervisor is killed
 * or suspended at any moment.
 *
 * **Running.** In: the command has begun. Signals are passed on to the group, and renewals move the
 * deadline. Out: the command has ended but its group has not, the deadline has passed, the owner
 * orders the stop, the owner is gone, or the supervisor is told to end → stopping; the command and
 * its group are gone → ended.
 *
 * **Stopping.** In: as above. The group got SIGTERM, and SIGCONT because a stopped process does not
 * handle SIGTERM. It gets SIGKILL when the grace is over, counted from the stop or from the
 * deadline, whichever comes first. Out: the group is gone, or still there a while after SIGKILL →
 * ended.
 *
 * **Ended.** In: as above. Out: the command's output has been read, or that took too long →
 * reported.
 *
 * **Reported.** The owner was told how the command ended. Nothing happens any more.
 *
 * Every tick reads both clocks, and `core/validity.ts` says how to read them: after the host has
 * slept, the monotonic clock and its timers still have the deadline ahead. If the clocks disagree,
 * the owner is told, and asks the store for a confirmation at once. If the wall clock was set back,
 * the clocks no longer prove that the leases last. The command may then run for as long as a
 * confirmation takes, and never beyond the deadline on the monotonic clock.
 */
import type { Clock, Timer } from '../../core/clock.ts';
import { type Confirmation, confirmationNow } from '../../core/validity.ts';
import {
  type CommandDeadline,
  graceLeftMs,
  hasDoubt,
  leftMs,
  standingOf,
} from './command-deadline.ts';
import type { Ended, EndReason, Order, Report, Start } from './orders.ts';
import { KILLED_WITHIN_MS, type ProcessGroup, pollPauses } from './process-group.ts';

/** How often the clocks are read, and so how late a sleep of the host may be noticed. */
const TICK_MS = 100;

/**
 * How long reading the output of a dead command may take. A process that has left its group may
 * keep the outputs open for ever.
 */
const READ_WITHIN_MS = 200;

/** How long a confirmation may take after the wall clock was set back: two renewals. */
const CONFIRMED_WITHIN_MS = 2_000;

type Exit = Pick<Ended, 'code' | 'signal'>;

type State = 'idle' | 'waiting' | 'running' | 'stopping' | 'ended' | 'reported';

const FROM: Readonly<Record<State, readonly State[]>> = {
  idle: [],
  waiting: ['idle'],
  running: ['waiting'],
  stopping: ['waiting', 'running'],
  ended: ['idle', 'waiting', 'running', 'stopping'],
  reported: ['waiting', 'ended'],
};

/** A command that was started. */
export interface Spawned {
  readonly group: number;
  readonly startedTicks: number | null;
  readonly processes: ProcessGroup;
  /** The command waits until this is called. */
  begin(): void;
  /** Stops reading its outputs, and returns its last lines. */
  endOutput(): readonly string[];
}

export interface SpawnListener {
  onExit(exit: Exit): void;
  /** The whole output was read, and no process can write more. */
  onRead(): void;
  onProgress(text: string): void;
  onError(error: string): void;
}

/** Starts the command as the leader of a new group. Null: it cannot be started, see `onError`. */
export type Spawn = (start: Start, on: SpawnListener) => Spawned | null;

export class GroupRun {
  readonly #clock: Clock;
  readonly #spawn: Spawn;
  readonly #report: (report: Report) => void;
  #state: State = 'idle';
  /** The owner has ordered the command to begin. */
  #mayBegin = false;
  /** Null: there is none, or it is gone and its id may be another group's. */
  #group: ProcessGroup | null = null;
  #spawned: Spawned | null = null;
  #exit: Exit | null = null;
  #isRead = false;
  #graceMs = 0;
  #deadline: CommandDeadline = [];
  #stopped: Confirmation | null = null;
  /** Since when the clocks do not prove that the leases last, on the monotonic clock. */
  #unprovenSinceMs: number | null = null;
  /** The owner was told that the clocks disagree, and has not renewed since. */
  #isDoubtReported = false;
  #killedAtMs: number | null = null;
  #pauses = pollPauses();
  #why: EndReason = 'done';
  #survivors = false;
  #timer: Timer | null = null;

  constructor(clock: Clock, spawn: Spawn, report: (report: Report) => void) {
    this.#clock = clock;
    this.#spawn = spawn;
    this.#report = report;
  }

  get state(): State {
    return this.#state;
  }

  receive(order: Order): void {
    if (order.do === 'start') this.#start(order);
    else if (order.do === 'begin') this.#begin();
    else if (order.do === 'extend') this.#extend(order.deadline);
    else if (order.do === 'signal') this.#group?.signal(order.signal);
    else this.#stop('ordered');
  }

  /** The owner is gone. */
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
    this.#enter('waiting');
    const spawned = this.#spawn(start, {
      onExit: (exit) => {
        this.#exit = exit;
        this.#check();
      },
      onRead: () => {
        this.#isRead = true;
        if (this.#state === 'ended') this.#reportEnd();
      },
      onProgress: (text) => this.#report({ event: 'progress', text }),
      onError: (error) => {
        if (this.#state !== 'waiting') return;
        this.#enter('reported');
        this.#report({ event: 'failed', error });
      },
    });
    if (spawned === null) return;
    this.#spawned = spawned;
    this.#group = spawned.processes;
    const { group, startedTicks } = spawned;
    this.#report({ event: 'started', group, startedTicks });
    this.#check();
  }

  #begin(): void {
    this.#mayBegin = true;
    this.#check();
  }

  /** Not while the leases are unproven: this process may have been suspended since the order. */
  #beginIfGood(restMs: number): void {
    if (this.#state !== 'waiting' || !this.#mayBegin || restMs === 0) return;
    this.#enter('running');
    this.#spawned?.begin();
  }

  #extend(deadline: CommandDeadline): void {
    this.#deadline = deadline;
    this.#isDoubtReported = false;
  }

  #stop(why: EndReason): void {
    if (this.#state === 'idle') {
      this.#why = why;
      this.#end(false);
      return;
    }
    // A command that could not be started reports that through `onError`.
    const group = this.#group;
    const isUp = this.#state === 'waiting' || this.#state === 'running';
    if (!isUp || group === null) return;
    this.#enter('stopping');
    this.#why = why;
    this.#stopped = confirmationNow(this.#clock);
    group.signal('SIGTERM');
    group.signal('SIGCONT');
    this.#check();
  }

  /** Checks the clocks and the group, acts if it is time, and schedules the next check. */
  #check(): void {
    if (this.#group === null || this.#state === 'ended' || this.#state === 'reported') return;
    this.#timer?.cancel();
    if (this.#exit !== null && !this.#group.isAlive()) {
      this.#end(false);
    } else if (this.#state === 'stopping') {
      this.#checkStopping(this.#group);
    } else if (this.#exit !== null) {
      this.#stop('done');
    } else if (!this.#isOver()) {
      const restMs = leftMs(this.#deadline, this.#clock);
      this.#reportDoubt();
      this.#beginIfGood(restMs);
      this.#checkIn(Math.min(restMs || TICK_MS, TICK_MS));
    } else {
      // A process that was suspended wakes to its timers first: a renewal may have arrived that is
      // not read yet.
      this.#clock.afterInput(() => {
        if (this.#isOver()) this.#stop('deadline');
        else this.#check();
      });
    }
  }

  #checkStopping(group: ProcessGroup): void {
    const nowMs = this.#clock.monotonicMs();
    const graceMs = this.#graceLeftMs();
    if (this.#killedAtMs === null && graceMs === 0) {
      this.#killedAtMs = nowMs;
      this.#pauses = pollPauses();
      group.signal('SIGKILL');
    }
    const pauseMs = this.#pauses.next().value;
    if (this.#killedAtMs === null) {
      this.#checkIn(Math.min(pauseMs, graceMs));
    } else if (nowMs - this.#killedAtMs > KILLED_WITHIN_MS) {
      this.#end(true);
    } else {
      this.#checkIn(pauseMs);
    }
  }

  #checkIn(delayMs: number): void {
    this.#timer = this.#clock.after(delayMs, () => this.#check());
  }

  #reportDoubt(): void {
    if (this.#isDoubtReported || !hasDoubt(this.#deadline, this.#clock)) return;
    this.#isDoubtReported = true;
    this.#report({ event: 'doubt' });
  }

  /** Whether the command may run no longer. */
  #isOver(): boolean {
    const standing = standingOf(this.#deadline, this.#clock);
    if (standing !== 'unproven') {
      this.#unprovenSinceMs = null;
      return standing === 'over';
    }
    const nowMs = this.#clock.monotonicMs();
    this.#unprovenSinceMs ??= nowMs;
    return nowMs - this.#unprovenSinceMs >= CONFIRMED_WITHIN_MS;
  }

  #graceLeftMs(): number {
    const stopped = this.#stopped ?? confirmationNow(this.#clock);
    return graceLeftMs(this.#deadline, this.#graceMs, stopped, this.#clock);
  }

  #end(survivors: boolean): void {
    this.#enter('ended');
    this.#survivors = survivors;
    this.#group = null;
    if (this.#isRead || this.#spawned === null) this.#reportEnd();
    else this.#timer = this.#clock.after(READ_WITHIN_MS, () => this.#reportEnd());
  }

  #reportEnd(): void {
    this.#timer?.cancel();
    const { code = null, signal = null } = this.#exit ?? {};
    const [why, survivors] = [this.#why, this.#survivors];
    // Before the end is reported, because the last lines may still report progress.
    const output = this.#spawned?.endOutput() ?? [];
    this.#enter('reported');
    this.#report({ event: 'ended', why, code, signal, survivors, output });
  }

  /** Throws a plain error: this process loads next to nothing, and the owner sees it exit. */
  #enter(state: State): void {
    if (!FROM[state].includes(this.#state))
      throw new Error(`a supervision that is ${this.#state} does not become ${state}`);
    this.#state = state;
  }
}
