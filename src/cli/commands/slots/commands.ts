/** The command for what workers share out. */
import type { Command } from 'commander';
import { examples, type Perform } from '../../command.ts';

export function addSlots(program: Command, perform: Perform): void {
  program
    .command('slots')
    .summary('show who has which slot')
    .description(
      'Shows the slots of the pools that are configured (resources): which are free, and which session has the others, on ' +
        'which worker, under which fence, and when that runs out unless it is renewed.',
    )
    .argument('[POOL]', 'only of this pool')
    .addHelpText('after', examples('holdfast slots', 'holdfast slots tuners --json'))
    .action((pool: string | undefined) =>
      perform(async (context) => (await import('./slots.ts')).slots(context, pool)),
    );
}
