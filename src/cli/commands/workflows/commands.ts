import type { Command } from 'commander';
import { examples, type Perform } from '../../command.ts';
import type { SignalFlags, StartFlags } from './functions.ts';
import type { LsFlags, RevokeFlags } from './workflows.ts';

export function addWorkflows(program: Command, perform: Perform): void {
  const load = () => import('./workflows.ts');
  const workflows = program
    .command('workflows')
    .summary('start, signal, list, show, revoke and remove workflows')
    .description(
      'Workflows are work of many steps. Each workflow has one orchestrator that writes it.',
    )
    .helpCommand(false)
    .addHelpText('after', examples('holdfast workflows ls'));
  workflows
    .command('ls')
    .summary('list workflows with their state, epoch and lease')
    .description(
      'Lists workflows by id: state, epoch, actions without a result, unread results, and the lease with its time left.',
    )
    .option('--held', 'only workflows that are held now')
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
    .summary('show one workflow')
    .description(
      'Shows one workflow, with the steps of its function and what it waits for. Exits with 1 if it does not exist.',
    )
    .argument('<ID>', 'id of the workflow')
    .addHelpText('after', examples('holdfast workflows show order-7'))
    .action((id: string) => perform(async (context) => (await load()).show(context, id)));
  workflows
    .command('history')
    .summary('print the history of a workflow')
    .description("Prints the last thousand entries of a workflow's history, the oldest first.")
    .argument('<ID>', 'id of the workflow')
    .addHelpText(
      'after',
      examples('holdfast workflows history order-7', 'holdfast workflows history --json order-7'),
    )
    .action((id: string) => perform(async (context) => (await load()).history(context, id)));
  addFunctions(workflows, perform);
  addEnding(workflows, perform);
}

function addFunctions(workflows: Command, perform: Perform): void {
  const load = () => import('./functions.ts');
  workflows
    .command('start')
    .summary('start a workflow of a function, or find it')
    .description(
      'Starts a workflow. Any instance that runs the function takes it. A workflow of this id that exists is left as it is.',
    )
    .argument('<FUNCTION>', 'name of the function')
    .argument('<ID>', 'id of the workflow')
    .option('--input <json>', 'the input as JSON, or @FILE; default null')
    .addHelpText(
      'after',
      examples(
        'holdfast workflows start fulfil order-7 --input @order.json',
        `holdfast workflows start fulfil order-8 --input '{"item":"tea"}'`,
      ),
    )
    .action((name: string, id: string, flags: StartFlags) =>
      perform(async (context) => (await load()).start(context, name, id, flags)),
    );
  workflows
    .command('signal')
    .summary('send a signal to a workflow')
    .description(
      'Sends a signal. It is kept until a line of the workflow waits for it. Exits with 1 if the workflow does not exist.',
    )
    .argument('<ID>', 'id of the workflow')
    .argument('<NAME>', 'name of the signal')
    .option('--value <json>', 'the value as JSON, or @FILE; default null')
    .addHelpText(
      'after',
      examples(
        'holdfast workflows signal order-7 delivered',
        `holdfast workflows signal order-7 approved --value '{"by":"ada"}'`,
      ),
    )
    .action((id: string, name: string, flags: SignalFlags) =>
      perform(async (context) => (await load()).signal(context, id, name, flags)),
    );
  workflows
    .command('restart')
    .summary('run the function of a failed workflow again')
    .description(
      'Runs the function again, with all its tries. Steps that are kept are not taken again.',
    )
    .argument('<ID>', 'id of the workflow')
    .addHelpText('after', examples('holdfast workflows restart order-7'))
    .action((id: string) => perform(async (context) => (await load()).restart(context, id)));
}

function addEnding(workflows: Command, perform: Perform): void {
  const load = () => import('./workflows.ts');
  workflows
    .command('revoke')
    .summary('revoke the lease of an orchestrator')
    .description(
      'Revokes the lease of an orchestrator: everything it sends from now on is refused, and the workflow is free. ' +
        'The next claim drops actions without a result, unless it sets resume: true. Exits with 1 if the lease does not exist.',
    )
    .argument('<LEASE>', 'id of the lease, or of the workflow')
    .requiredOption('--reason <text>', 'recorded in the log that all instances share')
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
    .summary('remove a workflow that is not held')
    .description(
      'Removes a workflow with its actions, results and history. Exits with 75 while it is held.',
    )
    .argument('<ID>', 'id of the workflow')
    .addHelpText('after', examples('holdfast workflows rm order-7'))
    .action((id: string) => perform(async (context) => (await load()).rm(context, id)));
}

export function addDeadLetters(program: Command, perform: Perform): void {
  const load = () => import('./dead-letters.ts');
  const letters = program
    .command('deadletters')
    .summary('list, retry and drop actions that failed too often')
    .description(
      'Dead letters are actions that failed in every try. Their workflows have the failure as a result, and continue.',
    )
    .helpCommand(false)
    .addHelpText('after', examples('holdfast deadletters ls'));
  letters
    .command('ls')
    .summary('list dead letters with their workflow and reason')
    .description('Lists dead letters by processor, the oldest first.')
    .argument('[TARGET]', 'list only those of this processor')
    .addHelpText(
      'after',
      examples('holdfast deadletters ls', 'holdfast deadletters ls --json store'),
    )
    .action((target: string | undefined) =>
      perform(async (context) => (await load()).ls(context, target)),
    );
  letters
    .command('retry')
    .summary('retry dead letters')
    .description(
      'Makes the workflow emit the action again: at once if it is held, else with its next claim.',
    )
    .argument('<ID...>', 'ids as ls shows them')
    .addHelpText('after', examples('holdfast deadletters retry store/17'))
    .action((ids: string[]) => perform(async (context) => (await load()).retry(context, ids)));
  letters
    .command('drop')
    .summary('delete dead letters')
    .description('Deletes dead letters.')
    .argument('<ID...>', 'ids as ls shows them')
    .addHelpText('after', examples('holdfast deadletters drop store/17 store/18'))
    .action((ids: string[]) => perform(async (context) => (await load()).drop(context, ids)));
}
