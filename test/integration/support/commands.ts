import { systemClock as clock } from '../../../src/core/clock.ts';
import type { CommandDeadline } from '../../../src/worker/supervisor/command-deadline.ts';
import type * as CommandsModule from '../../../src/worker/supervisor/commands.ts';
import type { HostLock } from '../../../src/worker/supervisor/host.ts';
import { deadlineIn } from '../../support/deadline-in.ts';
import { atExit } from '../../support/process.ts';
import { childrenOf } from './cli.ts';

/** As it is published: the supervisor is a script of its own. */
const PATH: string = '../../../dist/worker/supervisor/commands.js';
const { supervisedCommands } = (await import(PATH)) as typeof CommandsModule;

export function inMs(ms: number): CommandDeadline {
  return deadlineIn(clock, ms);
}

/** Those of this process. */
export function supervisors(): number[] {
  const isSupervisor = ({ command }: { command: string }) => command.includes('supervisor.js');
  return childrenOf(process.pid)
    .filter(isSupervisor)
    .map(({ pid }) => pid);
}

interface RunOptions {
  env?: Record<string, string>;
  cwd?: string;
  validMs?: number;
  graceMs?: number;
}

/** Commands as a worker runs them, and their supervisor. */
export class Crew {
  readonly supervisor: number;
  readonly commands: CommandsModule.Commands;

  constructor(lock?: HostLock) {
    const before = supervisors();
    this.commands = supervisedCommands(clock, { lock: lock ?? null });
    this.supervisor = supervisors().find((pid) => !before.includes(pid)) ?? 0;
    // One that was frozen would stay for ever.
    atExit(() => {
      if (supervisors().includes(this.supervisor)) process.kill(this.supervisor, 'SIGKILL');
    });
  }

  run(
    command: readonly string[],
    { env = {}, cwd, validMs = 60_000, graceMs = 500 }: RunOptions = {},
  ): CommandsModule.CommandRun {
    const deadline = inMs(validMs);
    const run = this.commands.run({ command, env, ...(cwd && { cwd }), deadline, graceMs });
    void run.started.then(() => run.begin());
    return run;
  }

  sh(script: string, options?: RunOptions): CommandsModule.CommandRun {
    return this.run(['sh', '-c', script], options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.commands.close();
  }
}
