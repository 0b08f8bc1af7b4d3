import type { Command } from 'commander';
import { examples, type Perform } from '../../command.ts';

export function addSlots(program: Command, perform: Perform): void {
  program
    .command('slots')
    .summary('list the slots of the configured pools, and their holders')
    .description(
      'Lists the slots of the pools in the configuration (resources): free, or held by which session on which worker, ' +
        'with which fence, and for how long without a renewal.',
    )
    .argument('[POOL]', 'list only this pool')
    .addHelpText('after', examples('holdfast slots', 'holdfast slots tuners --json'))
    .action((pool: string | undefined) =>
      perform(async (context) => (await import('./slots.ts')).slots(context, pool)),
    );
}
