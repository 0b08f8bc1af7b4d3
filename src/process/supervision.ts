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
 * **Idle.** In: at the beginning. Nothing runs. Out: A orders the start → running, or ended if the deadline has passed
 * already or the command can not be started; A is no more, or we are told to end → ended.
 *
 * **Running.** In: the command was started, as the leader of a group of its own. Signals are passed on to the group, and
 * renewals move the deadline. Out, to stopping: the command has ended but its group has not; the deadline has passed; A
 * orders the stop; A is no more; we are told to end. To ended: the command and its group are gone.
 *
 * **Stopping.** In: as above. The group got SIGTERM, and SIGCONT because who is stopped does not see the other. It gets
 * SIGKILL when the grace is over, counted from then or from the deadline, whichever comes first. Out: the group is gone,
 * or is still there a while after SIGKILL → ended.
 *
 * **Ended.** What came of it is reported once, when what it wrote has been read, and nothing happens any more.
 *
 * Both clocks are asked, every tick, and the one that is further on decides: after the host has slept, the monotonic one
 * says that the deadline is still to come, and timers believe it.
 */
import type { Clock, Timer } from '../base/clock.ts';
import type { Moment } from './host.ts';
import type { Ended, EndReason, Order, Report, Start } from './orders.ts';
import { KILLED_WITHIN_MS, lookPauses, type ProcessGroup } from './process-group.ts';

/** How often the clocks are asked: how late a host that has slept may notice. */
const TICK_MS = 100;

/**
 * What the dead have written is read within a moment. Somebody who has left the group may keep the outputs open for ever, and
 * nobody waits for that.
 */
const READ_WITHIN_MS = 200;

type Exit = Pick<Ended, 'code' | 'signal'>;

/** A command that was started. */
export interface Spawned {
  readonly group: number;
  readonly startedTicks: number | null;
  readonly processes: ProcessGroup;
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
  #state: 'idle' | 'running' | 'stopping' | 'ended' = 'idle';
  #group: ProcessGroup | null = null;
  #spawned: Spawned | null = null;
  #exit: Exit | null = null;
  #isRead = false;
  #graceMs = 0;
  #deadline: Moment = NEVER;
  #stoppedAt: Moment = NEVER;
  #killedAtMs: number | null = null;
  #pauses = lookPauses();
  #why: EndReason = 'done';
  #survivors = false;
  #isTold = false;
  #timer: Timer | null = null;

  constructor(parts: SupervisionParts) {
    this.#parts = parts;
  }

  get state(): 'idle' | 'running' | 'stopping' | 'ended' {
    return this.#state;
  }

  hear(order: Order): void {
    if (order.do === 'start') this.#start(order);
    else if (order.do === 'extend') this.#deadline = order.deadline;
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
    if (this.#isPast(start.deadline)) {
      this.#why = 'deadline';
      this.#end(false);
      return;
    }
    this.#state = 'running';
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

  #stop(why: EndReason): void {
    if (this.#state === 'idle') {
      this.#why = why;
      this.#end(false);
    }
    // A command that could not be started says so by itself.
    const group = this.#group;
    if (this.#state !== 'running' || group === null) return;
    const { clock } = this.#parts;
    this.#state = 'stopping';
    this.#why = why;
    this.#stoppedAt = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
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
    } else if (!this.#isPast(this.#deadline)) {
      const leftMs = this.#deadline.monotonicMs - this.#parts.clock.monotonicMs();
      this.#lookIn(Math.min(leftMs, TICK_MS));
    } else {
      // Who stood still wakes to its timers first: a renewal may have arrived that is not read yet.
      this.#parts.clock.afterInput(() => {
        if (this.#isPast(this.#deadline)) this.#stop('deadline');
        else this.#look();
      });
    }
  }

  #lookAtStopping(group: ProcessGroup): void {
    const nowMs = this.#parts.clock.monotonicMs();
    const froms = [this.#stoppedAt, this.#deadline];
    if (this.#killedAtMs === null && froms.some((from) => this.#isPast(from, this.#graceMs))) {
      this.#killedAtMs = nowMs;
      this.#pauses = lookPauses();
      group.signal('SIGKILL');
    }
    const pauseMs = this.#pauses.next().value;
    if (this.#killedAtMs === null) {
      const killAtMs = Math.min(...froms.map((from) => from.monotonicMs)) + this.#graceMs;
      this.#lookIn(Math.min(pauseMs, killAtMs - nowMs));
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

  #isPast({ monotonicMs, wallMs }: Moment, plusMs = 0): boolean {
    const { clock } = this.#parts;
    return clock.monotonicMs() >= monotonicMs + plusMs || clock.wallMs() >= wallMs + plusMs;
  }
}

const NEVER: Moment = { monotonicMs: Number.POSITIVE_INFINITY, wallMs: Number.POSITIVE_INFINITY };
