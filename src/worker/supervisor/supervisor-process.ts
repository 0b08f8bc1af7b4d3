import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type Clock, systemClock } from '../../core/clock.ts';
import type { CommandDeadline } from './command-validity.ts';
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
  /** The supervisor itself is no more, and has not said what became of the command. */
  | { readonly event: 'gone' };

export interface SupervisorOptions {
  /** Commands have the input and the outputs of this process; else they have nothing to read, and their last lines are kept. */
  readonly isInherited: boolean;
  /** Is not free before the supervisor is gone. */
  readonly lock?: HostLock;
  readonly clock?: Clock;
}

/** The supervisor as those see it who give it orders: see `supervision.ts`. */
export class SupervisorProcess {
  /** Resolves when it is no more, and all that it said has been heard. */
  readonly gone: Promise<void>;
  readonly #isInherited: boolean;
  readonly #clock: Clock;
  readonly #child: ChildProcess | null;
  readonly #orders: Socket | null;
  readonly #reports: Socket | null;
  readonly #commands = new Map<number, OrderedCommand>();
  #ordered = 0;
  #isGone = false;

  /** Starts the process, which then waits for orders: it takes as long to start as the store takes to connect to. */
  constructor({ isInherited, lock, clock = systemClock }: SupervisorOptions) {
    this.#isInherited = isInherited;
    this.#clock = clock;
    this.#child = spawnSupervisor(isInherited, lock);
    this.#child?.unref();
    // Where it can not be started, there are no pipes to it either.
    const [, , , orders = null, reports = null] = this.#child?.stdio ?? [];
    this.#orders = orders as Socket | null;
    this.#reports = reports as Socket | null;
    // Whoever does not read orders any more has said what there is to say on the other pipe, which shows its end too.
    this.#orders?.on('error', () => {});
    const decode = decoder<About<Report>>((report) => this.#hear(report));
    this.gone = new Promise((resolve) => {
      const gone = () => resolve(this.#end());
      if (this.#reports === null) gone();
      this.#child?.once('error', gone);
      this.#reports?.setEncoding('utf8').on('data', decode).on('close', gone).on('error', gone);
    });
    this.#keepUp();
  }

  /** How much of what it was told it has not heard yet. */
  get unheardBytes(): number {
    return this.#orders?.writableLength ?? 0;
  }

  start(what: Omit<Start, 'isInherited'>): OrderedCommand {
    const id = ++this.#ordered;
    const command = new OrderedCommand((order, then) => this.#tell({ id, ...order }, then));
    if (this.#isGone) {
      command.settle({ event: 'gone' });
      return command;
    }
    this.#commands.set(id, command);
    this.#keepUp();
    this.#tell({ id, do: 'start', isInherited: this.#isInherited, ...what });
    return command;
  }

  /** No more orders. What runs is stopped, and then it ends. */
  dismiss(): void {
    this.#orders?.destroy();
  }

  /** For one that does not do its work, when somebody else has. */
  kill(): void {
    this.#child?.kill('SIGKILL');
  }

  /** What is said in one turn of the event loop is written at once: a renewal may concern hundreds of commands. */
  #tell(order: About<Order>, then?: () => void): void {
    const orders = this.#orders;
    if (orders === null) return;
    if (orders.writableCorked === 0) {
      orders.cork();
      this.#clock.soon(() => orders.uncork());
    }
    orders.write(encode(order), () => then?.());
  }

  #hear({ id, ...report }: About<Report>): void {
    const command = this.#commands.get(id);
    if (report.event === 'started') command?.start(report);
    else if (report.event === 'progress') command?.progress(report.text);
    else if (report.event === 'doubt') command?.doubt();
    else {
      this.#commands.delete(id);
      command?.settle(report);
      this.#keepUp();
    }
  }

  #end(): void {
    this.#isGone = true;
    for (const command of this.#commands.values()) command.settle({ event: 'gone' });
    this.#commands.clear();
  }

  /** Who has nothing to wait for is not kept from ending. */
  #keepUp(): void {
    for (const pipe of [this.#orders, this.#reports]) {
      if (this.#commands.size > 0) pipe?.ref();
      else pipe?.unref();
    }
  }
}

function spawnSupervisor(isInherited: boolean, lock: HostLock | undefined): ChildProcess | null {
  try {
    return spawn(process.execPath, [SCRIPT], {
      // A session of its own, so that what a terminal or a shell does to us is not done to it.
      detached: true,
      stdio: [
        ...(isInherited ? (['inherit', 'inherit'] as const) : (['ignore', 'ignore'] as const)),
        ...(['inherit', 'pipe', 'pipe'] as const),
        ...(lock === undefined || lock === NO_LOCK ? [] : [lock.fd]),
      ],
    });
  } catch {
    return null;
  }
}

/** A command as whoever has ordered it sees it. */
export class OrderedCommand {
  /** Its process group, once there is one, before it begins; null if there never was. */
  readonly started: Promise<GroupRecord | null>;
  /** What became of it. */
  readonly outcome: Promise<Outcome>;
  readonly #tell: (order: Order, then?: () => void) => void;
  readonly #onStarted: (group: GroupRecord | null) => void;
  readonly #onOutcome: (outcome: Outcome) => void;
  #group: GroupRecord | null = null;
  #onProgress: (text: string) => void = () => {};
  #onDoubt: () => void = () => {};

  constructor(tell: (order: Order, then?: () => void) => void) {
    this.#tell = tell;
    const [started, outcome] = [withResolver<GroupRecord | null>(), withResolver<Outcome>()];
    [this.started, this.#onStarted] = started;
    [this.outcome, this.#onOutcome] = outcome;
  }

  get group(): GroupRecord | null {
    return this.#group;
  }

  /** Its group is on record: it may begin. */
  begin(): void {
    this.#tell({ do: 'begin' });
  }

  extend(deadline: CommandDeadline): void {
    this.#tell({ do: 'extend', deadline });
  }

  /** Passes a signal on to the command's group; `then` is called when it is on its way. */
  signal(signal: NodeJS.Signals, then?: () => void): void {
    this.#tell({ do: 'signal', signal }, then);
  }

  stop(): void {
    this.#tell({ do: 'stop' });
  }

  onProgress(listener: (text: string) => void): void {
    this.#onProgress = listener;
  }

  onDoubt(listener: () => void): void {
    this.#onDoubt = listener;
  }

  /** For the supervisor: it has said so. */
  start({ group, startedTicks }: GroupRecord): void {
    this.#group = { group, startedTicks };
    this.#onStarted(this.#group);
  }

  progress(text: string): void {
    this.#onProgress(text);
  }

  doubt(): void {
    this.#onDoubt();
  }

  settle(outcome: Outcome): void {
    this.#onStarted(null);
    this.#onOutcome(outcome);
  }
}

function withResolver<T>(): [Promise<T>, (value: T) => void] {
  let resolver: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    resolver = resolve;
  });
  return [promise, resolver];
}
