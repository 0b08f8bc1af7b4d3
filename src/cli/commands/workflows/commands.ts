/** The commands for workflows: how they are, what happened to them, and how to end a tenure or try an action again. */
import type { Command } from 'commander';
import { examples, type Perform } from '../../command.ts';
import type { LsFlags, RevokeFlags } from './workflows.ts';

export function addWorkflows(program: Command, perform: Perform): void {
  const load = () => import('./workflows.ts');
  const workflows = program
    .command('workflows')
    .summary('list, show, revoke and remove workflows, and tell what happened to them')
    .description(
      'Workflows, each with one writer: which there are, who holds them, what happened to them.',
    )
    .helpCommand(false);
  workflows
    .command('ls')
    .summary('list them: state, epoch, and who holds each')
    .description(
      'Lists workflows in the order of their ids: state, epoch, actions without a result, results that nobody has read, ' +
        'and the lease that holds each, for how long yet.',
    )
    .option('--held', 'only those that somebody holds now')
    .addHelpText(
      'after',
      examples(
        'holdfast workflows ls',
        'holdfast workflows ls --held',
        'holdfast workflows ls --json',
      ),
    )
    .action((flags: LsFlags) => perform(async (context) => (await load()).ls(context, flags)));
  workflows
    .command('show')
    .summary('show all about one')
    .description('Shows all about one workflow; exits with 1 if there is none.')
    .argument('<ID>')
    .addHelpText('after', examples('holdfast workflows show order-7'))
    .action((id: string) => perform(async (context) => (await load()).show(context, id)));
  workflows
    .command('history')
    .summary('tell what happened to one')
    .description('Tells what happened to a workflow, the oldest first: the last thousand things.')
    .argument('<ID>')
    .addHelpText(
      'after',
      examples('holdfast workflows history order-7', 'holdfast workflows history --json order-7'),
    )
    .action((id: string) => perform(async (context) => (await load()).history(context, id)));
  addEnding(workflows, perform);
}

function addEnding(workflows: Command, perform: Perform): void {
  const load = () => import('./workflows.ts');
  workflows
    .command('revoke')
    .summary('end the tenure of an orchestrator')
    .description(
      'Ends the tenure of an orchestrator, whoever and wherever it is: from now on everything it sends is refused, and the ' +
        'workflow is free. What it emitted and has no result is dropped by the next claim, unless that says otherwise. ' +
        'Exits with 1 if no workflow is in such a tenure.',
    )
    .argument('<LEASE>', 'the id of the lease, or of the workflow')
    .requiredOption('--reason <text>', 'why, for whoever asks')
    .addHelpText(
      'after',
      examples(
        "holdfast workflows revoke order-7 --reason 'decides nonsense since noon'",
        "holdfast workflows revoke 0f0e5c9a-51d4-4f7e-9a3b-6d0a1d2c3b4a --reason 'wrong version'",
      ),
    )
    .action((named: string, flags: RevokeFlags) =>
      perform(async (context) => (await load()).revoke(context, named, flags)),
    );
  workflows
    .command('rm')
    .summary('remove one that nobody holds')
    .description(
      'Removes a workflow with its actions, results and history. Refused, with 75, while somebody holds it.',
    )
    .argument('<ID>')
    .addHelpText('after', examples('holdfast workflows rm order-7'))
    .action((id: string) => perform(async (context) => (await load()).rm(context, id)));
}

export function addDeadLetters(program: Command, perform: Perform): void {
  const load = () => import('./dead-letters.ts');
  const letters = program
    .command('deadletters')
    .summary('list, retry and drop actions that failed too often')
    .description(
      'Actions that were tried as often as they may be. Their workflows were told of it long ago, and go on.',
    )
    .helpCommand(false);
  letters
    .command('ls')
    .summary('list them: of which workflow, and why')
    .description('Lists dead letters: of each target the oldest first.')
    .argument('[TARGET]', 'only those of this processor')
    .addHelpText(
      'after',
      examples('holdfast deadletters ls', 'holdfast deadletters ls --json store'),
    )
    .action((target: string | undefined) =>
      perform(async (context) => (await load()).ls(context, target)),
    );
  letters
    .command('retry')
    .summary('have their workflows emit them anew')
    .description(
      'Has the workflow of each emit it anew: at once if somebody holds it, else with its next claim.',
    )
    .argument('<ID...>', 'as ls shows them')
    .addHelpText('after', examples('holdfast deadletters retry store/17'))
    .action((ids: string[]) => perform(async (context) => (await load()).retry(context, ids)));
  letters
    .command('drop')
    .summary('throw them away')
    .description('Throws dead letters away.')
    .argument('<ID...>', 'as ls shows them')
    .addHelpText('after', examples('holdfast deadletters drop store/17 store/18'))
    .action((ids: string[]) => perform(async (context) => (await load()).drop(context, ids)));
}
