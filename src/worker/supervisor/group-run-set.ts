import type { Clock } from '../../core/clock.ts';
import { GroupRun, type Spawn } from './group-run.ts';
import type { About, Order, Report } from './orders.ts';

/**
 * All commands of one supervisor process: a `GroupRun` for each that it is ordered to run. The
 * process leaves when its owner is gone and nothing runs. A process that is told to end starts
 * nothing more, but stays while its owner is there, and reports that.
 */
export class GroupRunSet {
  readonly #clock: Clock;
  readonly #spawn: Spawn;
  readonly #send: (report: About<Report>) => void;
  readonly #leave: () => void;
  readonly #byId = new Map<number, GroupRun>();
  #isOrphaned = false;
  #isTerminated = false;

  /** `leave` is called when the owner is gone and nothing runs. */
  constructor(
    clock: Clock,
    spawn: Spawn,
    send: (report: About<Report>) => void,
    leave: () => void,
  ) {
    this.#clock = clock;
    this.#spawn = spawn;
    this.#send = send;
    this.#leave = leave;
  }

  receive({ id, ...order }: About<Order>): void {
    if (order.do === 'start' && !this.#byId.has(id)) this.#add(id);
    // Orders for a command that has ended are ignored.
    this.#byId.get(id)?.receive(order);
  }

  /** The owner is gone. */
  orphan(): void {
    this.#isOrphaned = true;
    for (const run of this.#byId.values()) run.orphan();
    this.#leaveIfDone();
  }

  /** The supervisor itself is told to end. */
  terminate(): void {
    this.#isTerminated = true;
    for (const run of this.#byId.values()) run.terminate();
  }

  #add(id: number): void {
    const report = (message: Report) => this.#report(id, message);
    const run = new GroupRun(this.#clock, this.#spawn, report);
    this.#byId.set(id, run);
    if (this.#isTerminated) run.terminate();
  }

  #report(id: number, report: Report): void {
    this.#send({ id, ...report });
    if (report.event !== 'ended' && report.event !== 'failed') return;
    this.#byId.delete(id);
    this.#leaveIfDone();
  }

  #leaveIfDone(): void {
    if (this.#isOrphaned && this.#byId.size === 0) this.#leave();
  }
}
