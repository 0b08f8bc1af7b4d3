import type { Command } from 'commander';
import { examples, fenceNumber, type Perform } from '../../command.ts';
import type { RevokeFlags } from './leases.ts';

const load = () => import('./leases.ts');

export function addLeaseViews(program: Command, perform: Perform): void {
  program
    .command('ls')
    .summary('list the leases that are held, and their holders')
    .description(
      'Lists every held lease with its holder: your own leases, those of targets (class poll) and those of workflows.',
    )
    .argument('[PREFIX]', 'list only keys that start with this', '')
    .addHelpText('after', examples('holdfast ls', 'holdfast ls --json nightly-'))
    .action((prefix: string) => perform(async (context) => (await load()).ls(context, prefix)));
  program
    .command('get')
    .summary('show the holder of a key')
    .description('Shows the holder of a key. Exits with 1 if the key is free.')
    .argument('<KEY>', 'the key of the lease')
    .addHelpText('after', examples('holdfast get nightly-report'))
    .action((key: string) => perform(async (context) => (await load()).get(context, key)));
}

export function addRevoke(program: Command, perform: Perform): void {
  program
    .command('revoke')
    .summary('end a lease')
    .description(
      'Ends a lease. The key stays blocked until the old holder can no longer act, at most one TTL. ' +
        'With --force it is free at once, and two holders may act for up to one TTL.',
    )
    .argument('<KEY>', 'the key of the lease')
    .requiredOption('--reason <text>', 'recorded in the log that all instances share')
    .option('--force', 'free the key at once (unsafe: see above)')
    .option(
      '--fence <number>',
      "end only the lease with this fence, as 'holdfast ls' shows it (default: the current one)",
      fenceNumber,
    )
    .option('--target', 'KEY is a target; to move it to another instance, use transfer')
    .addHelpText(
      'after',
      examples(
        "holdfast revoke nightly-report --reason 'hangs since noon'",
        "holdfast revoke device-7 --target --reason 'polls the wrong address'",
      ),
    )
    .action((key: string, flags: RevokeFlags) =>
      perform(async (context) => (await load()).revoke(context, key, flags)),
    );
}
