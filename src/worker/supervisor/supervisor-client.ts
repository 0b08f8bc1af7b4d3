import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import type { Clock } from '../../core/clock.ts';
import type { HostLock } from './host.ts';
import { NO_LOCK } from './host-lock.ts';
import { type About, decoder, encode, type Order, type Report, type Start } from './orders.ts';
import { KILLED_WITHIN_MS } from './process-group.ts';
import type { SupervisedRun } from './supervised-run.ts';
import { spawnSupervisor, takeEarly } from './supervisor-process.ts';

export type CommandReport =
  | Report
  /** The supervisor itself is gone, and has not reported how the command ended. */
  | { readonly event: 'gone' };

/** Sends an order about one command. Calls `then` when the order was written. */
export type SendOrder = (order: Order, then?: () => void) => void;

export interface SupervisorOptions {
  /**
   * Commands have the input and outputs of this process. Default: they have no input, and their
   * last lines are kept.
   */
  readonly isInherited?: boolean;
  /** A lock that is not free before the supervisor is gone, too. */
  readonly lock?: HostLock | null;
}

/**
 * One supervisor process as its owner sees it, and the commands that it runs: see `group-run.ts`.
 */
export class SupervisorClient {
  /** Resolves when the process is gone, and all its reports were read. */
  readonly gone: Promise<void>;
  readonly #clock: Clock;
  readonly #isInherited: boolean;
  readonly #child: ChildProcess | null;
  readonly #orders: Socket | null;
  readonly #reports: Socket | null;
  /** Take the reports about each command, by its number. */
  readonly #receivers = new Map<number, (report: CommandReport) => void>();
  readonly #runs = new Map<SupervisedRun, Promise<unknown>>();
  #lastId = 0;
  #isGone = false;
  #isAbandoned = false;

  /**
   * Starts the process, which then waits for orders. Meanwhile the caller can connect to its store.
   */
  constructor(clock: Clock, { isInherited = false, lock = null }: SupervisorOptions = {}) {
    this.#clock = clock;
    this.#isInherited = isInherited;
    this.#child = supervisorFor(isInherited, lock);
    this.#child?.unref();
    // A process that could not be started has no pipes.
    const [, , , orders = null, reports = null] = this.#child?.stdio ?? [];
    this.#orders = orders as Socket | null;
    this.#reports = reports as Socket | null;
    // A supervisor that reads no orders any more is gone, and the pipe for reports ends, too.
    this.#orders?.on('error', () => {});
    const decode = decoder<About<Report>>((report) => this.#receive(report));
    this.gone = new Promise((resolve) => {
      const gone = () => resolve(this.#end());
      // One that was started early may have died before.
      if (this.#reports === null || this.#reports.destroyed) gone();
      this.#child?.once('error', gone);
      this.#reports?.setEncoding('utf8').on('data', decode).on('close', gone).on('error', gone);
    });
    this.#refPipes();
  }

  /** How many bytes of orders the supervisor has not read yet. */
  get unreadBytes(): number {
    return this.#orders?.writableLength ?? 0;
  }

  /** Resolves when the run has ended: see `SupervisedRun.under`. */
  async run(run: SupervisedRun, onStalled: () => void): ReturnType<SupervisedRun['under']> {
    const end = run.under(this, () => {
      onStalled();
      void this.#abandon();
    });
    this.#runs.set(run, end);
    await end;
    this.#runs.delete(run);
    return end;
  }

  /** Orders a command, and returns the function that sends further orders about it. */
  start(what: Omit<Start, 'isInherited'>, receive: (report: CommandReport) => void): SendOrder {
    const id = ++this.#lastId;
    if (this.#isGone) receive({ event: 'gone' });
    else {
      this.#receivers.set(id, receive);
      this.#refPipes();
      this.#send({ id, do: 'start', isInherited: this.#isInherited, ...what });
    }
    return (order, then) => this.#send({ id, ...order }, then);
  }

  /** Waits until the supervisor runs nothing, and has it exit. */
  async close(): Promise<void> {
    await Promise.all(this.#runs.values());
    // The supervisor stops its commands, and exits.
    this.#orders?.destroy();
    const timer = this.#clock.after(KILLED_WITHIN_MS, () => this.#kill());
    await this.gone;
    timer.cancel();
  }

  /** The supervisor is stalled. */
  async #abandon(): Promise<void> {
    if (this.#isAbandoned) return;
    this.#isAbandoned = true;
    const known = [...this.#runs.keys()].filter(({ isKnown }) => isKnown);
    await Promise.all(known.map((run) => run.endFromHere()));
    this.#kill();
    // The other commands can be searched for when the supervisor is dead: it may still start them.
    const timer = this.#clock.after(KILLED_WITHIN_MS, () => {
      for (const run of this.#runs.keys()) run.giveUp();
    });
    await this.gone;
    timer.cancel();
  }

  #kill(): void {
    this.#child?.kill('SIGKILL');
  }

  /**
   * Orders of one turn of the event loop are one write: a renewal may concern hundreds of commands.
   */
  #send(order: About<Order>, then?: () => void): void {
    const orders = this.#orders;
    if (orders === null) return;
    if (orders.writableCorked === 0) {
      orders.cork();
      this.#clock.soon(() => orders.uncork());
    }
    orders.write(encode(order), () => then?.());
  }

  #receive({ id, ...report }: About<Report>): void {
    this.#receivers.get(id)?.(report);
    if (report.event !== 'ended' && report.event !== 'failed') return;
    this.#receivers.delete(id);
    this.#refPipes();
  }

  #end(): void {
    this.#isGone = true;
    for (const receive of this.#receivers.values()) receive({ event: 'gone' });
    this.#receivers.clear();
  }

  /** The pipes keep this process alive only while it waits for a command. */
  #refPipes(): void {
    for (const pipe of [this.#orders, this.#reports]) {
      if (this.#receivers.size > 0) pipe?.ref();
      else pipe?.unref();
    }
  }
}

function supervisorFor(isInherited: boolean, lock: HostLock | null): ChildProcess | null {
  const lockFd = lock === null || lock === NO_LOCK ? undefined : lock.fd;
  const early = isInherited && lockFd === undefined ? takeEarly() : null;
  return early ?? spawnSupervisor(isInherited, lockFd);
}
