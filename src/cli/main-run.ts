/**
 * `holdfast run` alone, which cron starts every minute on many machines. It has a bundle of its own
 * that loads no other command: see `scripts/bundle.mjs`.
 */
import { addRun } from './commands/run/commands.ts';
import { execute } from './execute.ts';
import { rootCommand } from './root-command.ts';

/** Runs `holdfast run`, without its help. */
export function main(args: readonly string[]): Promise<void> {
  return execute(args, (onExit) => {
    const { program, perform } = rootCommand(onExit);
    addRun(program, perform);
    return program;
  });
}
