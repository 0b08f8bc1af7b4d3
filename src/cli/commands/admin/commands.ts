import type { Command } from 'commander';
import { examples, type Perform } from '../../command.ts';
import type { FenceFlags } from './fence.ts';
import type { MaxTtlFlags } from './max-ttl.ts';
import type { StoreInstallFlags } from './store.ts';
import type { StoreCopyFlags } from './store-copy.ts';

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
  addFence(program, perform);
}

function addStore(program: Command, perform: Perform): void {
  const store = program
    .command('store')
    .summary('copy a store, or administer the tables in PostgreSQL')
    .description(
      'Copies a store to another. Installs, shows, upgrades or removes the tables of a PostgreSQL store: without an address, those of the configured store.',
    );
  store
    .command('copy <FROM> <TO>')
    .summary('copy everything that lasts to an empty store')
    .description(
      'Copies targets, records, fences, workflows, sessions and dead letters from one store to another, and compares both. Both have the same prefix. Stop every process of both first: live instances, leases and claims are refused. TO must be empty. Until the copy is complete, no Holdfast opens TO; if the copy is interrupted, run it again. FROM is not changed. Leases, and the history of events, are not copied.',
    )
    .option('--dry-run', 'check both stores and count, without writing')
    .addHelpText(
      'after',
      examples(
        'holdfast store copy sqlite:.holdfast/holdfast.db postgres://app@db/app --dry-run',
        'holdfast store copy redis://old:6379 postgres://app@db/app',
      ),
    )
    .action((from: string, to: string, flags: StoreCopyFlags) =>
      perform(async (context) => (await import('./store-copy.ts')).copy(context, from, to, flags)),
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
    .command('upgrade [address]')
    .summary('bring an older schema to this version')
    .description(
      'Brings the schema of an older Holdfast to the version of this one, in one transaction. Roles keep their rights, and tables their fences. Refuses a newer schema, and while leases are held or instances are alive: stop every process of the store first. Run it as the role that owns the schema.',
    )
    .addHelpText('after', examples('holdfast store upgrade postgres://admin@db/app'))
    .action((address: string | undefined) =>
      perform(async (context) => (await import('./store.ts')).upgrade(context, address)),
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

function addFence(program: Command, perform: Perform): void {
  const load = () => import('./fence.ts');
  const fence = program
    .command('fence')
    .summary('let only lease holders write a table in PostgreSQL')
    .description(
      "Puts a trigger on a table in the database of the store. The table then refuses writes of transactions without a live lease. A transaction has one after guard(tx), or after SET LOCAL holdfast.lease = 'key:fence'.",
    );
  const schema = ['--schema <name>', "the table's schema (default: public)"] as const;
  fence
    .command('add <TABLE>')
    .summary('fence a table')
    .description(
      'Fences a table: INSERT, UPDATE, DELETE and TRUNCATE need a live lease from now on, others fail with SQLSTATE HF001 or HF003. A second call changes the key. Run it as a role that has TRIGGER on the table.',
    )
    .option(...schema)
    .option('--key <key>', "the lease that is needed; 'invoice-*' for all keys that begin so")
    .addHelpText(
      'after',
      examples(
        'holdfast fence add public.orders',
        'holdfast fence add invoices --key invoice-run',
        'PGOPTIONS="-c holdfast.lease=$HOLDFAST_LEASE_KEY:$HOLDFAST_FENCE" psql -f nightly.sql',
      ),
    )
    .action((name: string, flags: FenceFlags) =>
      perform(async (context) => (await load()).add(context, name, flags)),
    );
  fence
    .command('rm <TABLE>')
    .summary('remove the fence of a table')
    .description('Removes the fence of a table. Exits with 1 if it has none.')
    .option(...schema)
    .addHelpText('after', examples('holdfast fence rm public.orders'))
    .action((name: string, flags: FenceFlags) =>
      perform(async (context) => (await load()).rm(context, name, flags)),
    );
  fence
    .command('ls')
    .summary('list the fenced tables')
    .description('Lists the fenced tables, the keys that they need, and since when.')
    .addHelpText('after', examples('holdfast fence ls', 'holdfast fence ls --json'))
    .action(() => perform(async (context) => (await load()).ls(context)));
}
