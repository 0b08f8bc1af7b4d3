import type { Command } from 'commander';
import { examples, type Perform } from '../../command.ts';
import type { MaxTtlFlags } from './max-ttl.ts';

export function addAdmin(program: Command, perform: Perform): void {
  program
    .command('doctor')
    .summary('check the store and the fleet')
    .description(
      'Checks whether the store is fit for leases, how far away it is, and how its instances are. Exits with 1 if it is not fit.',
    )
    .addHelpText('after', examples('holdfast doctor', 'holdfast doctor --json'))
    .action(() => perform(async (context) => (await import('./doctor.ts')).doctor(context)));
  program
    .command('max-ttl')
    .summary('show or change the longest TTL of leases')
    .description(
      'Shows the longest TTL that the store allows. With options it changes them. That works only while no lease is held, so stop every process of the store first.',
    )
    .option('--lease <time>', 'for leases, pools and commands')
    .option('--poll <time>', 'for targets of the fleet')
    .option('--workflow <time>', 'for workflows')
    .addHelpText('after', examples('holdfast max-ttl', 'holdfast max-ttl --lease 2m'))
    .action((flags: MaxTtlFlags) =>
      perform(async (context) => (await import('./max-ttl.ts')).maxTtl(context, flags)),
    );
}
