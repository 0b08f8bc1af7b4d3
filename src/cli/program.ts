/**
 * The program: its commands in groups. A command loads its code when it runs, so help is fast.
 */
import { Argument, type Command } from 'commander';
import { examples, GROUP } from './command.ts';
import { addAdmin } from './commands/admin/commands.ts';
import { SHELLS, type Shell } from './commands/completion.ts';
import { addDemo } from './commands/demo/commands.ts';
import { addFleetSteering, addFleetViews } from './commands/fleet/commands.ts';
import { addIncidents } from './commands/incidents/commands.ts';
import { addIntents } from './commands/intents/commands.ts';
import { addLeaseViews, addRevoke } from './commands/leases/commands.ts';
import { addRun } from './commands/run/commands.ts';
import { addSessions } from './commands/sessions/commands.ts';
import { addSlots } from './commands/slots/commands.ts';
import { addTargets } from './commands/targets/commands.ts';
import { addUp } from './commands/up/commands.ts';
import { addDeadLetters, addWorkflows } from './commands/workflows/commands.ts';
import { EXIT, type Exit } from './exit-codes.ts';
import { rootCommand } from './root-command.ts';
import { write } from './ui/output.ts';

/** Builds the program. `onExit` gets the exit code of the command. */
export function buildProgram(onExit: (exit: Exit) => void): Command {
  const { program, perform } = rootCommand(onExit);
  program.commandsGroup(GROUP.run);
  addRun(program, perform);
  addUp(program, perform);
  addDemo(program, perform);
  program.commandsGroup(GROUP.look);
  addLeaseViews(program, perform);
  addFleetViews(program, perform);
  addSlots(program, perform);
  addIncidents(program, perform);
  program.commandsGroup(GROUP.steer);
  addRevoke(program, perform);
  addFleetSteering(program, perform);
  program.commandsGroup(GROUP.work);
  addTargets(program, perform);
  addIntents(program, perform);
  addSessions(program, perform);
  addWorkflows(program, perform);
  addDeadLetters(program, perform);
  program.commandsGroup(GROUP.admin);
  addAdmin(program, perform);
  addCompletion(program, onExit);
  program.helpCommand('help [command]', 'show the help of a command');
  return program;
}

function addCompletion(program: Command, onExit: (exit: Exit) => void): void {
  program
    .command('completion')
    .summary('print a completion script for a shell')
    .description('Prints a completion script for a shell.')
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .addHelpText(
      'after',
      examples('source <(holdfast completion bash)', 'holdfast completion fish | source'),
    )
    .action(async (shell: Shell) => {
      const { completionScript } = await import('./commands/completion.ts');
      write(1, completionScript(program, shell));
      onExit(EXIT.ok);
    });
}
