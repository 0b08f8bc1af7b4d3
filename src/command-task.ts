/**
 * Commands as the tasks of a runner: one process group for each target, under the supervisor that
 * also ends the commands of workers (`worker/supervisor/commands.ts`). It ends a command before the
 * store can grant the lease of its target to another instance, even if this process is killed or
 * suspended.
 */

import type { Clock } from './core/clock.ts';
import { DEFAULT_COMMAND } from './fleet/plan/plan.ts';
import type { RunContext } from './fleet/run/task-scheduler.ts';
import type { CommandTaskOptions, CommandTasks } from './fleet/runner.ts';
import type { Target } from './fleet/targets/target-source.ts';
import type { Runtime } from './store/runtime.ts';
import { whyEnded } from './worker/pipelines/command.ts';
import {
  type CommandRun,
  type Commands,
  supervisedCommands,
} from './worker/supervisor/commands.ts';

/** The runs whose deadlines move with every renewal. */
type Running = Map<CommandRun, RunContext>;

/** `start` starts the supervisor, for tests. */
export function commandTasks(
  rt: Runtime,
  options: CommandTaskOptions,
  start: (clock: Clock) => Commands = supervisedCommands,
): CommandTasks {
  const running: Running = new Map();
  let commands: Commands | null = null;
  const extend = ({ leaseClass }: { leaseClass: string }) => {
    if (leaseClass !== 'poll') return;
    for (const [run, context] of running) run.extend([context.deadline]);
  };
  const { events } = rt;
  const unlisten = [events.on('lease.renewed', extend), events.on('lease.reasserted', extend)];
  return {
    run: (target, context) => {
      // Not before the first task: a configuration that is only checked starts no process.
      commands ??= start(rt.clock);
      return runCommand(commands, running, options, { target, context });
    },
    close: async () => {
      for (const end of unlisten) end();
      await commands?.close();
    },
  };
}

async function runCommand(
  commands: Commands,
  running: Running,
  { commands: declared, cwd, env, graceMs }: CommandTaskOptions,
  { target, context }: { target: Target; context: RunContext },
): Promise<void> {
  const { command: name = DEFAULT_COMMAND } = target;
  const command = declared.get(name);
  // The target has just been changed: this instance is about to release it.
  if (command === undefined) throw new Error(`this instance has no command '${name}'`);
  const run = commands.run({
    command,
    env: { ...env, ...environmentOf(target, context) },
    cwd,
    deadline: [context.deadline],
    graceMs,
  });
  const stop = () => run.stop();
  running.set(run, context);
  run.onProgress(() => context.progress());
  // A renewal that is confirmed extends it; without one, the supervisor ends the command.
  run.onDoubt(() => context.isHeld());
  context.signal.addEventListener('abort', stop, { once: true });
  void run.started.then((group) => {
    if (group !== null && !context.signal.aborted) run.begin();
  });
  if (context.signal.aborted) stop();
  const outcome = await run.outcome;
  running.delete(run);
  context.signal.removeEventListener('abort', stop);
  // Some of its processes may still act: the target must not be handed over.
  if (outcome.event === 'ended' && outcome.survivors) await new Promise<never>(() => {});
  const why = whyEnded({ command, cwd }, outcome);
  if (why !== null) throw new Error(why);
}

/** The variables that tell a command about its target. */
function environmentOf(target: Target, { fence }: RunContext): Record<string, string> {
  return {
    HOLDFAST_TARGET: target.id,
    HOLDFAST_TARGET_JSON: JSON.stringify(target),
    HOLDFAST_FENCE: String(fence),
  };
}
