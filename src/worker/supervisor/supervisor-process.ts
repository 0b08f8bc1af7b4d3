import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../core/clock.ts';
import type { CommandDeadline } from './command-deadline.ts';
import type { GroupRecord, HostLock } from './host.ts';
import { NO_LOCK } from './host-lock.ts';
import {
  type About,
  decoder,
  type Ended,
  encode,
  type Failed,
  type Order,
  type Report,
  type Start,
} from './orders.ts';

const SCRIPT = fileURLToPath(new URL('./supervisor.js', import.meta.url));

export type Outcome =
  | Ended
  | Failed
  /** The supervisor itself is gone, and has not reported what became of the command. */
  | { readonly event: 'gone' };

export interface SupervisorOptions {
  /**
   * Commands have the input and outputs of this process. Default: they have no input, and their
   * last lines are kept.
   */
  readonly isInherited?: boolean;
  /** A lock that is not free before the supervisor is gone, too. */
  readonly lock?: HostLock | null;
}

/** The supervisor process as its owner sees it: see `supervision.ts`. */
export class SupervisorProcess {
  /** Resolves when the process is gone, and all its reports were read. */
  readonly gone: Promise<void>;
  readonly #clock: Clock;
  readonly #isInherited: boolean;
  readonly #child: ChildProcess | null;
  readonly #orders: Socket | null;
  readonly #reports: Socket | null;
  readonly #commands = new Map<number, OrderedCommand>();
  #lastId = 0;
  #isGone = false;

  /**
   * Starts the process, which then waits for orders. Meanwhile the caller can connect to its store.
   */
  constructor(clock: Clock, { isInherited = false, lock = null }: SupervisorOptions = {}) {
    this.#clock = clock;
    this.#isInherited = isInherited;
    this.#child = spawnSupervisor(isInherited, lock);
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
      if (this.#reports === null) gone();
      this.#child?.once('error', gone);
      this.#reports?.setEncoding('utf8').on('data', decode).on('close', gone).on('error', gone);
    });
    this.#refPipes();
  }

  /** How many bytes of orders the supervisor has not read yet. */
  get unreadBytes(): number {
    return this.#orders?.writableLength ?? 0;
  }

  start(what: Omit<Start, 'isInherited'>): OrderedCommand {
    const id = ++this.#lastId;
    const command = new OrderedCommand((order, then) => this.#send({ id, ...order }, then));
    if (this.#isGone) {
      command.end({ event: 'gone' });
      return command;
    }
    this.#commands.set(id, command);
    this.#refPipes();
    this.#send({ id, do: 'start', isInherited: this.#isInherited, ...what });
    return command;
  }

  /** Sends no more orders. The supervisor stops what it runs, and exits. */
  dismiss(): void {
    this.#orders?.destroy();
  }

  /** For a stalled supervisor, when its commands were ended from here. */
  kill(): void {
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
    this.#commands.get(id)?.receive(report);
    if (report.event !== 'ended' && report.event !== 'failed') return;
    this.#commands.delete(id);
    this.#refPipes();
  }

  #end(): void {
    this.#isGone = true;
    for (const command of this.#commands.values()) command.end({ event: 'gone' });
    this.#commands.clear();
  }

  /** The pipes keep this process alive only while it waits for a command. */
  #refPipes(): void {
    for (const pipe of [this.#orders, this.#reports]) {
      if (this.#commands.size > 0) pipe?.ref();
      else pipe?.unref();
    }
  }
}

function spawnSupervisor(isInherited: boolean, lock: HostLock | null): ChildProcess | null {
  const own = isInherited ? 'inherit' : 'ignore';
  const inherited = lock === null || lock === NO_LOCK ? [] : [lock.fd];
  try {
    return spawn(process.execPath, [SCRIPT], {
      // In its own session, so that a terminal or a shell does not signal it together with us.
      detached: true,
      stdio: [own, own, 'inherit', 'pipe', 'pipe', ...inherited],
    });
  } catch {
    return null;
  }
}

/** A command as the process that ordered it sees it. */
export class OrderedCommand {
  /** Resolves with its process group, before it begins; null: there never was one. */
  readonly started: Promise<GroupRecord | null>;
  readonly outcome: Promise<Outcome>;
  readonly #send: (order: Order, then?: () => void) => void;
  readonly #resolveStarted: (group: GroupRecord | null) => void;
  readonly #resolveOutcome: (outcome: Outcome) => void;
  #group: GroupRecord | null = null;
  #onProgress: (text: string) => void = () => {};
  #onDoubt: () => void = () => {};

  constructor(send: (order: Order, then?: () => void) => void) {
    this.#send = send;
    [this.started, this.#resolveStarted] = withResolver<GroupRecord | null>();
    [this.outcome, this.#resolveOutcome] = withResolver<Outcome>();
  }

  get group(): GroupRecord | null {
    return this.#group;
  }

  /** Its process group is on record: the command may begin. */
  begin(): void {
    this.#send({ do: 'begin' });
  }

  extend(deadline: CommandDeadline): void {
    this.#send({ do: 'extend', deadline });
  }

  /** Passes a signal on to the command's group. Calls `then` when the order was written. */
  signal(signal: NodeJS.Signals, then?: () => void): void {
    this.#send({ do: 'signal', signal }, then);
  }

  stop(): void {
    this.#send({ do: 'stop' });
  }

  onProgress(listener: (text: string) => void): void {
    this.#onProgress = listener;
  }

  onDoubt(listener: () => void): void {
    this.#onDoubt = listener;
  }

  /** Takes a report of the supervisor. */
  receive(report: Report): void {
    if (report.event === 'started') {
      const { group, startedTicks } = report;
      this.#group = { group, startedTicks };
      this.#resolveStarted(this.#group);
    } else if (report.event === 'progress') this.#onProgress(report.text);
    else if (report.event === 'doubt') this.#onDoubt();
    else this.end(report);
  }

  end(outcome: Outcome): void {
    this.#resolveStarted(null);
    this.#resolveOutcome(outcome);
  }
}

function withResolver<T>(): [Promise<T>, (value: T) => void] {
  let resolver: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    resolver = resolve;
  });
  return [promise, resolver];
}
