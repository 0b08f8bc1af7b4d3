import type { Clock, Timer } from '../../core/clock.ts';
import { systemRandom } from '../../core/random.ts';
import { type Confirmation, confirmationNow } from '../../core/validity.ts';
import { type CommandDeadline, graceLeftMs } from './command-validity.ts';
import type { GroupRecord } from './host.ts';
import type { Ended, EndReason, Failed } from './orders.ts';
import { groupStartedWith } from './proc.ts';
import { endGroup, lookPauses, type ProcessGroup, recordedGroup } from './process-group.ts';
import type { OrderedCommand, Outcome, SupervisorProcess } from './supervisor-process.ts';

/** A supervisor that takes longer to start a command, its own start included, stands still. */
const START_WITHIN_MS = 10_000;
/** One that takes longer to say that what was killed is gone, as well. */
const REPORT_WITHIN_MS = 3_000;
/** What a supervisor that reads has not read yet is far less; one that lets so much lie does not read any more. */
const MOST_UNHEARD_BYTES = 1_024 * 1_024;
/** Whoever is killed between starting a command and saying so leaves a shell at its gate, which ends in a moment, or is found and ended. */
const FOUND_WITHIN_MS = 100;
/** Different for each command, in its environment: what has it belongs to the command. */
const MARK = 'HOLDFAST_COMMAND';

export interface CommandOrder {
  /** A program and its arguments. */
  readonly command: readonly string[];
  /** Beside the environment of this process. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  /** Until when it may run, unless that is extended. */
  readonly deadline: CommandDeadline;
  /** How long it may take to end, asked to, before it is killed. */
  readonly graceMs: number;
}

export type CommandOutcome =
  | Failed
  /** `unsupervised`: its supervisor had died or stood still, so it was ended from here. */
  | (Omit<Ended, 'why'> & { readonly why: EndReason | 'unsupervised' });

export interface CommandRun {
  /**
   * Resolves when it has processes, which wait to begin; null: it could not be started, or had ended before that was heard. Never
   * rejects.
   */
  readonly started: Promise<GroupRecord | null>;
  /** Resolves when nothing of it is left, or nothing more can be done about that. Never rejects. */
  readonly outcome: Promise<CommandOutcome>;
  /** Its process group is on record: from now on it can be ended by whoever ordered it, so it may begin. */
  begin(): void;
  /** Passes a signal on to its processes; `then` is called when it is on its way. */
  signal(signal: NodeJS.Signals, then?: () => void): void;
  /** The lease was renewed: it may run until then. */
  extend(deadline: CommandDeadline): void;
  /** It is to end: SIGTERM, and SIGKILL when its grace is over. */
  stop(): void;
  /** Called with what it says of how far it is: a line of its output that begins with `::progress `, without that. */
  onProgress(listener: (text: string) => void): void;
  /** Called when the clocks disagree: its leases have to be confirmed at once, and `extend` told of that, or it is stopped. */
  onDoubt(listener: () => void): void;
}

/** One command, from here to its end: see `commands.ts`. */
export class SupervisedRun implements CommandRun {
  readonly started: Promise<GroupRecord | null>;
  readonly outcome: Promise<CommandOutcome>;
  readonly #clock: Clock;
  readonly #order: CommandOrder;
  readonly #mark = systemRandom.hex(16);
  #command: OrderedCommand | null = null;
  #deadline: CommandDeadline;
  #stopped: Confirmation | null = null;
  #isSettled = false;
  #wasRefused = false;
  #timer: Timer | null = null;
  #onStandstill: () => void = () => {};
  #isBehind: () => boolean = () => false;
  #onProgress: (text: string) => void = () => {};
  #onDoubt: () => void = () => {};
  #onStarted: (group: GroupRecord | null) => void = () => {};
  #onOutcome: (outcome: CommandOutcome) => void = () => {};

  constructor(clock: Clock, order: CommandOrder) {
    this.#clock = clock;
    this.#order = order;
    this.#deadline = order.deadline;
    this.started = new Promise((resolve) => {
      this.#onStarted = resolve;
    });
    this.outcome = new Promise((resolve) => {
      this.#onOutcome = resolve;
    });
  }

  /** Whether its process group is known. */
  get isKnown(): boolean {
    return this.#command?.group != null;
  }

  /**
   * Has it run by this supervisor, and sees to it that it has ended then: `terminated` if that was because the supervisor
   * is about to end. Or else it was `refused` for that reason, and was never started.
   */
  async under(
    supervisor: Pick<SupervisorProcess, 'start' | 'unheardBytes'>,
    onStandstill: () => void,
  ): Promise<'ended' | 'terminated' | 'refused'> {
    const { command: words, env, cwd, graceMs } = this.#order;
    const command = supervisor.start({
      ...{ command: words, env: { ...env, [MARK]: this.#mark }, ...(cwd !== undefined && { cwd }) },
      ...{ deadline: this.#deadline, graceMs },
    });
    this.#command = command;
    this.#onStandstill = onStandstill;
    this.#isBehind = () => supervisor.unheardBytes > MOST_UNHEARD_BYTES;
    command.onProgress((text) => this.#onProgress(text));
    command.onDoubt(() => this.#onDoubt());
    if (this.#stopped !== null) command.stop();
    this.#timer ??= this.#clock.after(START_WITHIN_MS, () => this.#doubt(() => !this.isKnown));
    void command.started.then((group) => group !== null && this.#onStarted(group));
    const outcome = await command.outcome;
    if (this.#isRefusal(outcome)) return 'refused';
    if (outcome.event === 'gone') await this.endFromHere();
    else this.#settle(outcome);
    return outcome.event === 'ended' && outcome.why === 'terminated' ? 'terminated' : 'ended';
  }

  begin(): void {
    if (this.#stopped === null && !this.#isSettled) this.#command?.begin();
  }

  signal(signal: NodeJS.Signals, then?: () => void): void {
    this.#command?.signal(signal, then);
  }

  extend(deadline: CommandDeadline): void {
    this.#deadline = deadline;
    if (this.#isSettled) return;
    this.#command?.extend(deadline);
    if (this.#isBehind()) this.#onStandstill();
  }

  stop(): void {
    if (this.#stopped !== null || this.#isSettled) return;
    this.#stopped = confirmationNow(this.#clock);
    this.#command?.stop();
    this.#timer?.cancel();
    this.#timer = this.#clock.after(this.#order.graceMs, () => void this.#insist());
  }

  onProgress(listener: (text: string) => void): void {
    this.#onProgress = listener;
  }

  onDoubt(listener: () => void): void {
    this.#onDoubt = listener;
  }

  /** It is not started at all. */
  refuse(error: string): void {
    this.#settle({ event: 'failed', error });
  }

  /** Ends what there is of it, its supervisor can not: it has died or stands still. */
  async endFromHere(): Promise<void> {
    const group = this.#group ?? (await this.#find());
    const graceMs = this.#graceLeftMs();
    // What nobody knows of has not begun, and never will: its supervisor alone could open its gate.
    const isGone = group === null || (await endGroup(group, graceMs, this.#clock));
    this.#settle(endedFromHere(!isGone));
  }

  /** Nothing more can be done about it. */
  giveUp(): void {
    this.#settle(endedFromHere(true));
  }

  get #group(): ProcessGroup | null {
    const record = this.#command?.group ?? null;
    return record && recordedGroup(record);
  }

  /** The grace is over: its supervisor has killed it by now, and is about to say so. Or it stands still. */
  async #insist(): Promise<void> {
    const group = this.#group;
    if (group !== null) await endGroup(group, 0, this.#clock);
    if (this.#isSettled) return;
    this.#timer = this.#clock.after(REPORT_WITHIN_MS, () => this.#doubt(() => true));
  }

  /** Who stood still itself wakes to its timers first: what was waited for may have arrived and not be read yet. */
  #doubt(isMissing: () => boolean): void {
    this.#clock.afterInput(() => {
      if (!this.#isSettled && isMissing()) this.#onStandstill();
    });
  }

  /** What a supervisor has started that died before it could say so. It has not begun; this is the second line of defence. */
  async #find(): Promise<ProcessGroup | null> {
    const endMs = this.#clock.monotonicMs() + FOUND_WITHIN_MS;
    for (const pauseMs of lookPauses()) {
      const found = groupStartedWith(MARK, this.#mark);
      if (found !== null) return recordedGroup(found);
      if (this.#clock.monotonicMs() >= endMs) break;
      await this.#clock.sleep(pauseMs);
    }
    return null;
  }

  /** It is asked to end now, unless it was before; and killed when its supervisor would have killed it. */
  #graceLeftMs(): number {
    const stopped = this.#stopped ?? confirmationNow(this.#clock);
    const { graceMs } = this.#order;
    return graceLeftMs({ deadline: this.#deadline, graceMs }, stopped, this.#clock);
  }

  /** The supervisor was told to end before it could start it. Once: should they all be told to, it can not be run. */
  #isRefusal(outcome: Outcome): boolean {
    const isRefusal = outcome.event === 'ended' && outcome.why === 'terminated' && !this.isKnown;
    if (!isRefusal || this.#wasRefused || this.#stopped !== null) return false;
    this.#wasRefused = true;
    return true;
  }

  #settle(outcome: CommandOutcome): void {
    this.#isSettled = true;
    this.#timer?.cancel();
    this.#onStarted(null);
    this.#onOutcome(outcome);
  }
}

function endedFromHere(survivors: boolean): CommandOutcome {
  const [code, signal] = [null, null];
  return { event: 'ended', why: 'unsupervised', code, signal, survivors, output: [] };
}
