/**
 * Commands under a supervisor process, which ends each of them in time even if this process is
 * killed or suspended: see `group-run.ts`. All commands share one supervisor. This process makes
 * sure that they have one that works:
 *
 * - **The supervisor has died.** This process ends the commands that it ran, because no other
 *   process would. The next command gets a new supervisor.
 * - **The supervisor is stalled**: it has not stopped or started a command in time. This process
 *   kills the command that was to stop, when its grace is over. Then it ends everything that the
 *   supervisor ran, because no process would do that in time if this one died now. It kills the
 *   supervisor last, so that one that wakes up meanwhile still notices if this process dies.
 * - **The supervisor was told to end.** It ends its commands, and reports that. A new supervisor
 *   starts the commands that it had not started.
 */
import type { Clock } from '../../core/clock.ts';
import { type CommandOrder, type CommandRun, SupervisedRun } from './supervised-run.ts';
import { SupervisorClient, type SupervisorOptions } from './supervisor-client.ts';

export type { CommandOrder, CommandOutcome, CommandRun } from './supervised-run.ts';

export interface Commands {
  run(order: CommandOrder): CommandRun;
  /** Starts no more commands. Resolves when all commands have ended, and the supervisor, too. */
  close(): Promise<void>;
}

/** Starts the supervisor at once, so that no command has to wait for it. */
export function supervisedCommands(clock: Clock, options: SupervisorOptions = {}): Commands {
  return new SupervisorSet(clock, options);
}

class SupervisorSet implements Commands {
  readonly #clock: Clock;
  readonly #options: SupervisorOptions;
  readonly #supervisors = new Set<SupervisorClient>();
  /** Gets the next command; null: there has to be a new one. */
  #current: SupervisorClient | null;
  #isClosed = false;

  constructor(clock: Clock, options: SupervisorOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#current = this.#newSupervisor();
  }

  run(order: CommandOrder): CommandRun {
    const run = new SupervisedRun(this.#clock, order);
    void this.#assign(run);
    return run;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#supervisors].map((supervisor) => supervisor.close()));
  }

  #newSupervisor(): SupervisorClient {
    const supervisor = new SupervisorClient(this.#clock, this.#options);
    this.#supervisors.add(supervisor);
    void supervisor.gone.then(async () => {
      await this.#retire(supervisor);
      this.#supervisors.delete(supervisor);
    });
    return supervisor;
  }

  async #assign(run: SupervisedRun): Promise<void> {
    if (this.#isClosed) {
      run.refuse('CLOSED');
      return;
    }
    this.#current ??= this.#newSupervisor();
    const supervisor = this.#current;
    const end = await supervisor.run(run, () => void this.#retire(supervisor));
    if (end !== 'ended') void this.#retire(supervisor);
    if (end === 'refused') await this.#assign(run);
  }

  /** Gives the supervisor no more commands, and closes it when all that it runs have ended. */
  async #retire(supervisor: SupervisorClient): Promise<void> {
    if (this.#current === supervisor) this.#current = null;
    await supervisor.close();
  }
}
