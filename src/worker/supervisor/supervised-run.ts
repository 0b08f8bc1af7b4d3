import type { Clock, Timer } from '../../core/clock.ts';
import { systemRandom } from '../../core/random.ts';
import { type Confirmation, confirmationNow } from '../../core/validity.ts';
import { type CommandDeadline, graceLeftMs } from './command-deadline.ts';
import type { GroupRecord } from './host.ts';
import type { Ended, EndReason, Failed } from './orders.ts';
import { groupStartedWith } from './proc.ts';
import { endGroup, type ProcessGroup, pollPauses, recordedGroup } from './process-group.ts';
import type { CommandReport, SendOrder, SupervisorClient } from './supervisor-client.ts';

/** A supervisor that takes longer to start a command, its own start included, is stalled. */
const START_WITHIN_MS = 10_000;
/** A supervisor that takes longer to report that a killed command is gone is stalled. */
const REPORT_WITHIN_MS = 3_000;
/** A supervisor that has left more orders unread is stalled: many starts at once, with params. */
const MAX_UNREAD_BYTES = 16 * 1_024 * 1_024;
/** How long a command is searched for whose supervisor died before it reported the start. */
const FOUND_WITHIN_MS = 100;
/** A variable with another value for each command: a process that has it belongs to the command. */
const MARK = 'HOLDFAST_COMMAND';

export interface CommandOrder {
  /** A program and its arguments. */
  readonly command: readonly string[];
  /** Added to the environment of this process. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  /** The text that the command reads from file descriptor 3; absent: it has no such descriptor. */
  readonly params?: string | undefined;
  /** Until when the command may run, unless that is extended. */
  readonly deadline: CommandDeadline;
  /** How long the command may take to end, once it was asked to, before it is killed. */
  readonly graceMs: number;
}

export type CommandOutcome =
  | Failed
  /** `unsupervised`: its supervisor had died or was stalled, so this process ended the command. */
  | (Omit<Ended, 'why'> & { readonly why: EndReason | 'unsupervised' });

type FinalReport = Extract<CommandReport, { event: 'ended' | 'failed' | 'gone' }>;

export interface CommandRun {
  /**
   * Resolves when the command has processes, which wait to begin. Null: it could not be started, or
   * had ended before its start was reported. Never rejects.
   */
  readonly started: Promise<GroupRecord | null>;
  /** Resolves when nothing of the command is left, or the rest cannot be ended. Never rejects. */
  readonly outcome: Promise<CommandOutcome>;
  /** The caller has its process group on record, and could end it: the command may begin. */
  begin(): void;
  /** Passes a signal on to its processes. Calls `then` when the order was written. */
  signal(signal: NodeJS.Signals, then?: () => void): void;
  /** The leases were renewed: the command may run until then. */
  extend(deadline: CommandDeadline): void;
  /** Ends the command: SIGTERM, and SIGKILL when its grace is over. */
  stop(): void;
  /** Called with each line of output that starts with `::progress `, without that. */
  onProgress(listener: (text: string) => void): void;
  /**
   * Called when the two clocks disagree: the caller has to have the leases confirmed at once, and
   * call `extend`, or the command is stopped.
   */
  onDoubt(listener: () => void): void;
}

/** One command as its owner sees it, from its order to its end: see `commands.ts`. */
export class SupervisedRun implements CommandRun {
  readonly started: Promise<GroupRecord | null>;
  readonly outcome: Promise<CommandOutcome>;
  readonly #clock: Clock;
  readonly #order: CommandOrder;
  readonly #mark = systemRandom.hex(16);
  /** Null: its supervisor has not reported its process group. */
  #record: GroupRecord | null = null;
  #send: SendOrder = () => {};
  #deadline: CommandDeadline;
  #stopped: Confirmation | null = null;
  #isOver = false;
  #wasRefused = false;
  #timer: Timer | null = null;
  #onStalled: () => void = () => {};
  #isBehind: () => boolean = () => false;
  #onProgress: (text: string) => void = () => {};
  #onDoubt: () => void = () => {};
  #resolveStarted: (group: GroupRecord | null) => void = () => {};
  #resolveOutcome: (outcome: CommandOutcome) => void = () => {};

  constructor(clock: Clock, order: CommandOrder) {
    this.#clock = clock;
    this.#order = order;
    this.#deadline = order.deadline;
    this.started = new Promise((resolve) => {
      this.#resolveStarted = resolve;
    });
    this.outcome = new Promise((resolve) => {
      this.#resolveOutcome = resolve;
    });
  }

  /** Whether its process group is known. */
  get isKnown(): boolean {
    return this.#record !== null;
  }

  /**
   * Runs the command under this supervisor, and resolves when it has ended. `terminated`: it has
   * ended because the supervisor was told to end. `refused`: the supervisor was told to end before
   * it had started the command, so that another supervisor can run it.
   */
  async under(
    supervisor: Pick<SupervisorClient, 'start' | 'unreadBytes'>,
    onStalled: () => void,
  ): Promise<'ended' | 'terminated' | 'refused'> {
    const { command, env, cwd, params, graceMs } = this.#order;
    const what = {
      command,
      env: { ...env, [MARK]: this.#mark },
      cwd,
      params,
      deadline: this.#deadline,
      graceMs,
    };
    const reported = new Promise<FinalReport>((resolve) => {
      this.#send = supervisor.start(what, (report) => this.#receive(report, resolve));
    });
    this.#onStalled = onStalled;
    this.#isBehind = () => supervisor.unreadBytes > MAX_UNREAD_BYTES;
    if (this.#stopped !== null) this.#send({ do: 'stop' });
    this.#timer ??= this.#clock.after(START_WITHIN_MS, () => this.#stalledIf(() => !this.isKnown));
    const report = await reported;
    if (this.#isRefusal(report)) return 'refused';
    if (report.event === 'gone') await this.endFromHere();
    else this.#end(report);
    return report.event === 'ended' && report.why === 'terminated' ? 'terminated' : 'ended';
  }

  begin(): void {
    if (this.#stopped === null && !this.#isOver) this.#send({ do: 'begin' });
  }

  signal(signal: NodeJS.Signals, then?: () => void): void {
    this.#send({ do: 'signal', signal }, then);
  }

  extend(deadline: CommandDeadline): void {
    this.#deadline = deadline;
    if (this.#isOver) return;
    this.#send({ do: 'extend', deadline });
    if (this.#isBehind()) this.#onStalled();
  }

  stop(): void {
    if (this.#stopped !== null || this.#isOver) return;
    this.#stopped = confirmationNow(this.#clock);
    this.#send({ do: 'stop' });
    this.#timer?.cancel();
    this.#timer = this.#clock.after(this.#order.graceMs, () => void this.#killAfterGrace());
  }

  onProgress(listener: (text: string) => void): void {
    this.#onProgress = listener;
  }

  onDoubt(listener: () => void): void {
    this.#onDoubt = listener;
  }

  /** The command is not started at all. */
  refuse(error: string): void {
    this.#end({ event: 'failed', error });
  }

  /** Ends what there is of the command, because its supervisor has died or is stalled. */
  async endFromHere(): Promise<void> {
    const group = this.#group ?? (await this.#find());
    const graceMs = this.#graceLeftMs();
    // A command that cannot be found has not begun, and never will: only its supervisor could have
    // opened its gate.
    const isGone = group === null || (await endGroup(group, graceMs, this.#clock));
    this.#end(endedFromHere(!isGone));
  }

  /** Some of the command may be left, and cannot be ended. */
  giveUp(): void {
    this.#end(endedFromHere(true));
  }

  /** Takes a report of the supervisor. The last one goes to `end`. */
  #receive(report: CommandReport, end: (report: FinalReport) => void): void {
    if (report.event === 'started') {
      const { group, startedTicks } = report;
      this.#record = { group, startedTicks };
      this.#resolveStarted(this.#record);
    } else if (report.event === 'progress') this.#onProgress(report.text);
    else if (report.event === 'doubt') this.#onDoubt();
    else end(report);
  }

  get #group(): ProcessGroup | null {
    return this.#record && recordedGroup(this.#record);
  }

  /** A working supervisor has killed the group by now, and is about to report that. */
  async #killAfterGrace(): Promise<void> {
    const group = this.#group;
    if (group !== null) await endGroup(group, 0, this.#clock);
    if (this.#isOver) return;
    this.#timer = this.#clock.after(REPORT_WITHIN_MS, () => this.#stalledIf(() => true));
  }

  /**
   * If this process itself was suspended, it wakes to its timers first: the missing report may have
   * arrived and not be read yet.
   */
  #stalledIf(isMissing: () => boolean): void {
    this.#clock.afterInput(() => {
      if (!this.#isOver && isMissing()) this.#onStalled();
    });
  }

  /**
   * Finds a command whose supervisor died before it reported the start. Its shell waits at the gate
   * and ends soon by itself; this is the second line of defence.
   */
  async #find(): Promise<ProcessGroup | null> {
    const endMs = this.#clock.monotonicMs() + FOUND_WITHIN_MS;
    for (const pauseMs of pollPauses()) {
      const found = groupStartedWith(MARK, this.#mark);
      if (found !== null) return recordedGroup(found);
      if (this.#clock.monotonicMs() >= endMs) break;
      await this.#clock.sleep(pauseMs);
    }
    return null;
  }

  /** Counts from now if the command was not asked to end before. */
  #graceLeftMs(): number {
    const stopped = this.#stopped ?? confirmationNow(this.#clock);
    return graceLeftMs(this.#deadline, this.#order.graceMs, stopped, this.#clock);
  }

  /** Once: if all supervisors are told to end, the command cannot be run. */
  #isRefusal(report: FinalReport): boolean {
    const isRefusal = report.event === 'ended' && report.why === 'terminated' && !this.isKnown;
    if (!isRefusal || this.#wasRefused || this.#stopped !== null) return false;
    this.#wasRefused = true;
    return true;
  }

  #end(outcome: CommandOutcome): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#resolveStarted(null);
    this.#resolveOutcome(outcome);
  }
}

function endedFromHere(survivors: boolean): CommandOutcome {
  return {
    event: 'ended',
    why: 'unsupervised',
    code: null,
    signal: null,
    survivors,
    output: [],
  };
}
