import type { Command } from 'commander';
import { examples, type Perform } from '../../command.ts';
import type { MaxTtlFlags } from './max-ttl.ts';
import type { StoreInstallFlags } from './store.ts';

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
  addStore(program, perform);
}

function addStore(program: Command, perform: Perform): void {
  const store = program
    .command('store')
    .summary('install, show or remove the tables in PostgreSQL')
    .description(
      'Installs, shows or removes the tables of a PostgreSQL store. Without an address it uses the configured store.',
    );
  store
    .command('install [address]')
    .summary('make the schema, and let a role use it')
    .description(
      'Makes the schema where it is missing. Run it once as a role that may CREATE in the database. With --grant, another role may use it: it gets USAGE and EXECUTE, and no right on a table.',
    )
    .option('--grant <role>', 'the role of your application')
    .addHelpText('after', examples('holdfast store install postgres://admin@db/app --grant app'))
    .action((address: string | undefined, flags: StoreInstallFlags) =>
      perform(async (context) => (await import('./store.ts')).install(context, address, flags)),
    );
  store
    .command('status [address]')
    .summary('show version, size and timeline')
    .description(
      'Shows the version, size and timeline of the schema. Exits with 1 if it is not installed.',
    )
    .addHelpText('after', examples('holdfast store status'))
    .action((address: string | undefined) =>
      perform(async (context) => (await import('./store.ts')).status(context, address)),
    );
  store
    .command('uninstall [address]')
    .summary('drop the schema')
    .description(
      'Drops the schema with all that the store keeps. Refuses while a lease is held, so stop every process of the store first.',
    )
    .option('--yes', 'do it')
    .addHelpText('after', examples('holdfast store uninstall postgres://admin@db/app --yes'))
    .action((address: string | undefined, flags: { yes?: boolean }) =>
      perform(async (context) => (await import('./store.ts')).uninstall(context, address, flags)),
    );
}
