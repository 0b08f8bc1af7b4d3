/**
 * The commands for targets. Those that change a target also exist under `sessions`, their old name.
 */
import type { Command } from 'commander';
import { examples, type Perform } from '../../command.ts';
import type { AddFlags } from './add.ts';
import type { ChangeFlags } from './change.ts';
import type { TargetListFlags } from './targets.ts';

const load = () => import('./targets.ts');

export function addTargets(program: Command, perform: Perform): void {
  const targets = program
    .command('targets')
    .summary('add, list, show, change, pause, resume and remove targets')
    .description('Targets are what the fleet polls. Each target has one owner among the instances.')
    .helpCommand(false)
    .addHelpText('after', examples('holdfast targets add https://example.com/health'));
  addTargetAdd(targets, perform);
  targets
    .command('ls')
    .summary('list targets with their owner and last result')
    .description('Lists targets with their state, their owner and their last result.')
    .argument('[PREFIX]', 'list only ids that start with this', '')
    .option('--state <states>', 'only these states, separated by commas')
    .addHelpText(
      'after',
      examples(
        'holdfast targets ls',
        'holdfast targets ls --json device-',
        'holdfast targets ls --state paused,unreadable',
      ),
    )
    .action((prefix: string, flags: TargetListFlags) =>
      perform(async (context) => (await load()).listTargets(context, prefix, flags)),
    );
  targets
    .command('get')
    .summary('show one target')
    .description('Shows one target. Exits with 1 if it does not exist.')
    .argument('<ID>', 'id of the target')
    .addHelpText('after', examples('holdfast targets get device-7'))
    .action((id: string) => perform(async (context) => (await load()).showTarget(context, id)));
  addFieldsChange(targets, perform);
  for (const verb of ['pause', 'resume', 'rm'] as const) addTargetChange(targets, perform, verb);
}

/** `isHidden` leaves the command out of help: under its old name. */
export function addTargetAdd(parent: Command, perform: Perform, isHidden = false): void {
  parent
    .command('add', { hidden: isHidden })
    .summary('add targets')
    .description('Adds targets by URL, one that runs a command, or many from a JSON file.')
    .argument('[URL...]', 'addresses to poll, http or https')
    .option('--id <id>', 'id of the target (default: a random UUID)')
    .option('--every <duration>', 'poll interval (default: that of the instances)')
    .option('--timeout <duration>', 'how long one poll may take (default: that of the instances)')
    .option('--command <name>', 'run this command of the instances (runner.commands) for it')
    .option('--data <json>', 'JSON object for the command; @FILE reads a file, @- the input')
    .option('--paused', 'do not poll it until it is resumed')
    .option(
      '--file <path>',
      'JSON list of URLs, or of objects with url, id, every, command, …; - reads standard input',
    )
    .addHelpText(
      'after',
      examples(
        'holdfast targets add https://example.com/health',
        'holdfast targets add --id device-7 --every 30s --timeout 5s http://10.0.0.7/status',
        `holdfast targets add --id phone-17 --command listen --data '{"number":"+49 30 123"}'`,
        'holdfast targets add --file targets.json',
        `echo '["https://example.com"]' | holdfast targets add --file -`,
      ),
    )
    .action((urls: string[], flags: AddFlags) =>
      perform(async (context) => (await import('./add.ts')).addTargets(context, urls, flags)),
    );
}

function addFieldsChange(parent: Command, perform: Perform): void {
  parent
    .command('change')
    .summary('change fields of a target')
    .description(
      'Changes or clears fields of a target. Other fields and its owner stay as they are.',
    )
    .argument('<ID>', 'id of the target')
    .option('--url <url>', 'the URL to poll')
    .option('--every <duration>', 'how often to poll it')
    .option('--timeout <duration>', 'how long one poll may take')
    .option('--command <name>', 'the command that runs for it')
    .option('--data <json>', 'data for its command or handler; @FILE reads a file, @- the input')
    .option('--clear <fields>', 'fields to remove, separated by commas')
    .addHelpText(
      'after',
      examples(
        'holdfast targets change device-7 --every 30s',
        'holdfast targets change device-7 --clear command,timeout',
      ),
    )
    .action((id: string, flags: ChangeFlags) =>
      perform(async (context) => (await import('./change.ts')).changeFields(context, id, flags)),
    );
}

const CHANGES = {
  pause: [
    'stop polling targets until they are resumed',
    'Stops polling targets until they are resumed.',
  ],
  resume: ['poll paused targets again', 'Polls paused targets again.'],
  rm: ['remove targets', 'Removes targets, and their last results.'],
} as const;

export function addTargetChange(
  parent: Command,
  perform: Perform,
  verb: keyof typeof CHANGES,
  isHidden = false,
): void {
  const [summary, description] = CHANGES[verb];
  parent
    .command(verb, { hidden: isHidden })
    .summary(summary)
    .description(description)
    .argument('<ID...>', 'ids of targets')
    .addHelpText('after', examples(`holdfast targets ${verb} device-7 device-8`))
    .action((ids: string[]) =>
      perform(async (context) => (await load()).changeTargets(context, verb, ids)),
    );
}
