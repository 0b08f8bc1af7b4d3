/**
 * Commands under a supervisor process, which ends each of them in time whatever becomes of this process: see `supervision.ts`. All of them have
 * the same one, and this process sees to it that they have one that does its work:
 *
 * - **It has died.** What it ran is ended from here, because nobody else would. The next command gets a new one.
 * - **It stands still**: it has not stopped what it was told to, or not started it. What was to be stopped is killed from here when its grace is
 *   over, as it would have been. Then everything it ran is ended, because nobody would do that in time if this process died now; and last
 *   the supervisor, so that one who wakes up meanwhile still finds out whether this process is no more.
 * - **It was told to end.** It ends what it runs, and says so. What it had not started yet the next one does.
 */
import type { Clock } from '../../core/clock.ts';
import type { HostLock } from './host.ts';
import { KILLED_WITHIN_MS } from './process-group.ts';
import { type CommandOrder, type CommandRun, SupervisedRun } from './supervised-run.ts';
import { SupervisorProcess } from './supervisor-process.ts';

export type { CommandOrder, CommandOutcome, CommandRun } from './supervised-run.ts';

export interface Commands {
  run(order: CommandOrder): CommandRun;
  /** Nothing is started any more. Resolves when what runs has ended, and the supervisor with it. */
  close(): Promise<void>;
}

interface CommandsParts {
  readonly clock: Clock;
  /** Commands have the input and the outputs of this process; else they have nothing to read, and their last lines are kept. */
  readonly isInherited?: boolean;
  /** Is not free before the supervisor is gone, too. */
  readonly lock?: HostLock;
}

/** Starts the supervisor, so that no command has to wait for that. */
export function supervisedCommands(parts: CommandsParts): Commands {
  return new SupervisedCommands(parts);
}

class SupervisedCommands implements Commands {
  readonly #parts: CommandsParts;
  readonly #crews = new Set<Crew>();
  /** For the next command; null: there has to be a new one. */
  #crew: Crew | null;
  #isClosed = false;

  constructor(parts: CommandsParts) {
    this.#parts = parts;
    this.#crew = this.#newCrew();
  }

  run(order: CommandOrder): CommandRun {
    const run = new SupervisedRun(this.#parts.clock, order);
    void this.#give(run);
    return run;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#crews].map((crew) => crew.close()));
  }

  #newCrew(): Crew {
    const crew = new Crew(this.#parts);
    this.#crews.add(crew);
    void crew.supervisor.gone.then(async () => {
      await this.#retire(crew);
      this.#crews.delete(crew);
    });
    return crew;
  }

  async #give(run: SupervisedRun): Promise<void> {
    if (this.#isClosed) {
      run.refuse('CLOSED');
      return;
    }
    this.#crew ??= this.#newCrew();
    const crew = this.#crew;
    const end = await crew.run(run, () => void this.#retire(crew));
    if (end !== 'ended') void this.#retire(crew);
    if (end === 'refused') await this.#give(run);
  }

  /** It gets no more orders, and is let go of when all that it runs has ended. */
  async #retire(crew: Crew): Promise<void> {
    if (this.#crew === crew) this.#crew = null;
    await crew.close();
  }
}

/** A supervisor, and what it runs. */
class Crew {
  readonly supervisor: SupervisorProcess;
  readonly #clock: Clock;
  readonly #runs = new Map<SupervisedRun, Promise<unknown>>();
  #isAbandoned = false;

  constructor({ clock, lock, isInherited = false }: CommandsParts) {
    this.#clock = clock;
    this.supervisor = new SupervisorProcess({ clock, isInherited, ...(lock && { lock }) });
  }

  async run(run: SupervisedRun, onStandstill: () => void): ReturnType<SupervisedRun['under']> {
    const end = run.under(this.supervisor, () => {
      onStandstill();
      void this.#abandon();
    });
    this.#runs.set(run, end);
    await end;
    this.#runs.delete(run);
    return end;
  }

  /** Waits until it runs nothing, and lets it go. */
  async close(): Promise<void> {
    await Promise.all(this.#runs.values());
    this.supervisor.dismiss();
    const timer = this.#clock.after(KILLED_WITHIN_MS, () => this.supervisor.kill());
    await this.supervisor.gone;
    timer.cancel();
  }

  /** It stands still. */
  async #abandon(): Promise<void> {
    if (this.#isAbandoned) return;
    this.#isAbandoned = true;
    const known = [...this.#runs.keys()].filter(({ isKnown }) => isKnown);
    await Promise.all(known.map((run) => run.endFromHere()));
    this.supervisor.kill();
    // What became of the others can be found out when it is dead: until then it may start them.
    const timer = this.#clock.after(KILLED_WITHIN_MS, () => {
      for (const run of this.#runs.keys()) run.giveUp();
    });
    await this.supervisor.gone;
    timer.cancel();
  }
}
