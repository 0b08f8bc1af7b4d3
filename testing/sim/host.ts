/**
 * A machine with clocks of its own, and the processes that run on it.
 *
 * Its monotonic clock runs a little fast or slow and stands still while the machine sleeps; its
 * wall clock continues, and may be set. A process that is frozen (SIGSTOP, a blocked event loop, a
 * long collection of garbage) gets nothing done: when it thaws, its overdue timers run first, and
 * only then it reads what has arrived meanwhile. It may freeze in the middle of a turn, between a
 * check and the write that follows: the rest of that turn then happens at the thaw.
 */
import type { Clock, Timer } from '../../src/core/clock.ts';
import type { Random } from '../../src/core/random.ts';
import { sleepOn } from '../../src/core/sleep.ts';
import { type Happening, PHASE, type Timeline } from './timeline.ts';

/** The wall clocks of all machines, where nobody has touched them. */
const WALL_START_MS = Date.UTC(2026, 0, 1);

/** As Node has it. */
const SHORTEST_TIMER_MS = 1;

export class SimHost {
  readonly timeline: Timeline;
  readonly processes = new Set<SimProcess>();
  /** Names that its processes have locked, and who has each. */
  readonly locks = new Map<string, SimProcess>();
  #rate: number;
  /** When the rate last changed, and by how much the clocks had gained on true time until then. */
  #ratedMs = 0;
  #gainedMs = 0;
  #wallOffsetMs: number;
  #sleptMs = 0;
  #asleepUntilMs = 0;
  /** By how much its wall clock has moved against the monotonic one, and when. */
  readonly #shifts: { readonly atMs: number; readonly ms: number; readonly isSleep: boolean }[] =
    [];

  constructor(timeline: Timeline, { rate = 1, wallOffsetMs = 0 } = {}) {
    this.timeline = timeline;
    this.#rate = rate;
    this.#wallOffsetMs = wallOffsetMs;
  }

  monotonicMs(trueMs: number): number {
    return this.#ownMs(trueMs) - this.#sleptMs;
  }

  wallMs(trueMs: number): number {
    return WALL_START_MS + this.#wallOffsetMs + this.#ownMs(trueMs);
  }

  /** When the monotonic clock will show this, if the machine does not sleep before. */
  trueMs(monotonicMs: number): number {
    const ownMs = monotonicMs + this.#sleptMs;
    return this.#ratedMs + (ownMs - this.#gainedMs - this.#ratedMs) / this.#rate;
  }

  /** How fast its clocks run: 1.001 gains a millisecond a second. */
  get rate(): number {
    return this.#rate;
  }

  /** Its clocks run faster or slower from now on; timers are due by them. */
  setRate(rate: number): void {
    const { nowMs } = this.timeline;
    this.#gainedMs = this.#ownMs(nowMs) - nowMs;
    this.#ratedMs = nowMs;
    this.#rate = rate;
    for (const process of this.processes) process.rearm();
  }

  /** How much time has passed by its clocks, asleep or not. */
  #ownMs(trueMs: number): number {
    return this.#ratedMs + this.#gainedMs + (trueMs - this.#ratedMs) * this.#rate;
  }

  /** An operator sets its wall clock. */
  stepWall(ms: number): void {
    this.#wallOffsetMs += ms;
    this.#shifts.push({ atMs: this.timeline.nowMs, ms, isSleep: false });
  }

  /**
   * Whether it slept lately, and its wall clock was set back meanwhile, by as much or less: then
   * the clocks show no sleep, or one that is shorter than it was. That is so for who last compared
   * them at any moment since then: what was set before does not count.
   */
  hidesSleep(sinceMs: number, toleranceMs: number): boolean {
    const lately = this.#shifts.filter(({ atMs }) => atMs >= sinceMs);
    const sumOf = (shifts: typeof lately) => shifts.reduce((sum, { ms }) => sum + ms, 0);
    return lately.some((_, from) => {
      const shifts = lately.slice(from);
      const sleptMs = sumOf(shifts.filter(({ isSleep }) => isSleep));
      const shownMs = sumOf(shifts);
      return sleptMs > 0 && shownMs < sleptMs && shownMs > -toleranceMs;
    });
  }

  /**
   * The whole machine sleeps: its monotonic clock stands still. A machine that sleeps already
   * sleeps on, if that is longer.
   */
  sleep(ms: number): void {
    const { nowMs } = this.timeline;
    const addedMs = nowMs + ms - Math.max(nowMs, this.#asleepUntilMs);
    if (addedMs <= 0) return;
    this.#asleepUntilMs = nowMs + ms;
    this.#sleptMs += addedMs * this.#rate;
    this.#shifts.push({ atMs: nowMs, ms: addedMs, isSleep: true });
    for (const process of this.processes) process.fallAsleep(ms, addedMs);
  }
}

interface LocalTimer {
  readonly dueMs: number;
  readonly order: number;
  readonly run: () => void;
}

/**
 * Something that happens to a process at a named point of its code: `clock` where it reads the
 * time, `act` where it is about to touch what it owns, or the name of the script that is about to
 * leave. So a fault can fall between a check and the write that relies on it.
 */
export interface Trap {
  readonly point: string;
  /** How often the point is passed before. */
  passes: number;
  spring(): void;
}

/** One process, and the clock that its code is given. */
export class SimProcess implements Clock {
  readonly host: SimHost;
  readonly name: string;
  readonly random: Random;
  readonly startedAtMs: number;
  trap: Trap | null = null;
  readonly #timeline: Timeline;
  /** By due time, the last one first. */
  readonly #timers: LocalTimer[] = [];
  #timerOrder = 0;
  #armed: Happening | null = null;
  #thawMs = 0;
  #isThawing = false;
  #diedMs: number | null = null;
  /** What has arrived while it could not read. */
  readonly #arrived: (() => void)[] = [];

  constructor(host: SimHost, name: string, random: Random) {
    this.host = host;
    this.name = name;
    this.random = random;
    this.#timeline = host.timeline;
    this.startedAtMs = host.wallMs(host.timeline.nowMs);
    host.processes.add(this);
  }

  get isDead(): boolean {
    return this.#diedMs !== null;
  }

  /** Since when, in true time; null while it lives. */
  get diedMs(): number | null {
    return this.#diedMs;
  }

  get isFrozen(): boolean {
    return this.#timeline.nowMs < this.#thawMs;
  }

  /** For how long yet. */
  get frozenForMs(): number {
    return Math.max(0, this.#thawMs - this.#timeline.nowMs);
  }

  /** When it last went on after it could not, or will, in true time; 0 if it never was frozen. */
  get thawedMs(): number {
    return this.#thawMs;
  }

  /** Timers that have not run and were not cancelled. */
  get pendingTimers(): number {
    return this.#timers.length;
  }

  /**
   * True time, as far as its code can be concerned: the rest of a turn in which it froze comes
   * after the thaw.
   */
  get trueMs(): number {
    return Math.max(this.#timeline.nowMs, this.#thawMs);
  }

  monotonicMs(): number {
    if (this.trap !== null) this.reach('clock');
    return this.host.monotonicMs(this.trueMs);
  }

  wallMs(): number {
    return this.host.wallMs(this.trueMs);
  }

  after(delayMs: number, run: () => void): Timer {
    if (this.isDead) return { cancel: () => {} };
    const dueMs = this.monotonicMs() + Math.max(SHORTEST_TIMER_MS, delayMs);
    const timer: LocalTimer = { dueMs, order: this.#timerOrder++, run };
    this.#timers.splice(this.#place(timer), 0, timer);
    this.#arm();
    return {
      cancel: () => {
        const at = this.#timers.indexOf(timer);
        if (at >= 0) this.#timers.splice(at, 1);
      },
    };
  }

  soon(run: () => void): void {
    this.#timeline.soon(() => {
      if (!this.isDead) run();
    });
  }

  afterInput(run: () => void): void {
    const whenFree = () => {
      if (this.isDead) return;
      // It froze meanwhile: then this comes after what arrives until the thaw.
      if (this.isFrozen) this.#timeline.at(this.#thawMs, whenFree, PHASE.afterInput);
      else run();
    };
    this.#timeline.at(this.trueMs, whenFree, PHASE.afterInput);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return sleepOn(this, ms, signal);
  }

  /** Its code has come to a point where something may be going to happen. */
  reach(point: string): void {
    const { trap } = this;
    if (trap === null || trap.point !== point || trap.passes-- > 0) return;
    this.trap = null;
    trap.spring();
  }

  /** Something from outside reaches the process: now, or when it can read it. */
  deliver(run: () => void): void {
    if (this.isDead) return;
    if (this.isFrozen || this.#isThawing) this.#arrived.push(run);
    else run();
  }

  /** It gets nothing done for so long; more if it is frozen again meanwhile. */
  freeze(ms: number): void {
    if (this.isDead) return;
    const wasFrozen = this.isFrozen || this.#isThawing;
    this.#thawMs = Math.max(this.#thawMs, this.#timeline.nowMs + ms);
    this.#arm();
    if (wasFrozen) return;
    this.#isThawing = true;
    this.#timeline.at(this.#thawMs, () => this.#thaw());
  }

  /**
   * Its machine sleeps for `ms`, which is `addedMs` more than before. A frozen process thaws that
   * much later: it may have read the clock of its thaw already, and a monotonic clock never goes
   * back.
   */
  fallAsleep(ms: number, addedMs: number): void {
    this.freeze(this.isFrozen ? this.frozenForMs + addedMs : ms);
  }

  /** It is gone, and all it was going to do. */
  kill(): void {
    this.#diedMs ??= this.#timeline.nowMs;
    this.#timers.length = 0;
    this.#arrived.length = 0;
    if (this.#armed !== null) this.#timeline.takeBack(this.#armed);
    this.#armed = null;
    this.host.processes.delete(this);
  }

  #thaw(): void {
    if (this.isDead) return;
    if (this.isFrozen) {
      this.#timeline.at(this.#thawMs, () => this.#thaw());
      return;
    }
    this.#isThawing = false;
    for (const run of this.#arrived.splice(0))
      this.#timeline.at(this.#timeline.nowMs, () => this.deliver(run));
  }

  /** The clock of its machine runs at another rate: its timers are due sooner or later. */
  rearm(): void {
    this.#arm();
  }

  /** Sees to it that the earliest timer is run, not before the thaw. */
  #arm(): void {
    const first = this.#timers.at(-1);
    if (first === undefined) return;
    const atMs = Math.max(this.host.trueMs(first.dueMs), this.#thawMs, this.#timeline.nowMs);
    if (this.#armed !== null) {
      if (this.#armed.slot >= 0 && this.#armed.atMs === atMs) return;
      this.#timeline.takeBack(this.#armed);
    }
    this.#armed = this.#timeline.at(atMs, () => this.#runTimer(), PHASE.timers);
  }

  /** One at a time: between two, what the first has led to is done. */
  #runTimer(): void {
    this.#armed = null;
    const first = this.#timers.at(-1);
    if (first === undefined) return;
    // A clock that was taken for another rate, or a machine that slept: not yet.
    if (this.isFrozen || this.host.trueMs(first.dueMs) > this.#timeline.nowMs) {
      this.#arm();
      return;
    }
    this.#timers.pop();
    this.#arm();
    first.run();
  }

  #place({ dueMs, order }: LocalTimer): number {
    let low = 0;
    let high = this.#timers.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const other = this.#timers[middle] as LocalTimer;
      if (other.dueMs > dueMs || (other.dueMs === dueMs && other.order > order)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
