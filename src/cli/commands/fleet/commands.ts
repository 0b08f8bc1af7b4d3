/** The commands for instances that share targets: the instance itself, who does what, and why. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { LOG_LEVELS } from '../../../telemetry/levels.ts';
import { examples, type Perform } from '../../command.ts';
import type { UpFlags } from '../up/up.ts';
import type { DrainFlags } from './drain.ts';
import type { MapFlags } from './map.ts';
import type { TransferFlags } from './transfer.ts';
import type { WatchFlags } from './watch.ts';

export function addUp(program: Command, perform: Perform): void {
  program
    .command('up')
    .summary(
      'run one instance: it answers requests, polls its share of the targets, and runs sessions',
    )
    .description(
      'Runs one instance of a fleet: it answers requests over HTTP, polls its share of the sessions in the store, runs what ' +
        'intents have started, takes over from instances that stop or die, and hands everything over when it is told to stop ' +
        '(Ctrl-C, SIGTERM). While ' +
        'the store is away it goes on trying. Logs are JSON, or words on a terminal. holdfast.config.mjs can say more: ' +
        'docs/cli.md.',
    )
    .option('--roles <roles>', 'what it does, with commas (default: api,poller,worker)', words)
    .option('--host <address>', 'where the API listens (default: 127.0.0.1)')
    .option('--port <number>', 'and on which port (default: 4747, or a free one)', whole)
    .option('--name <text>', "readable part of the instance's id (default: the host's name)")
    .option('--weight <number>', 'share of the targets, relative to others (default: 1)', whole)
    .option('--every <duration>', 'how often to poll a target that does not say (default: 10s)')
    .option(
      '--ttl <duration>',
      'how long a lease lasts without a renewal: after a crash, this long until another takes over (default: 30s)',
    )
    .option(
      '--worker-name <name>',
      'its own among all workers, the same at every start: frees at once what it held when it was killed (HOLDFAST_WORKER_NAME; default: none)',
    )
    .addOption(
      new Option('--log-level <level>', 'how much to say').choices(LOG_LEVELS).default('info'),
    )
    .option(
      '--stop-within <duration>',
      'how long polls and sessions may take to end on stopping',
      '10s',
    )
    .addHelpText(
      'after',
      examples(
        'holdfast up',
        'HOLDFAST_STORE=redis://redis.internal:6379 holdfast up --name api --weight 2',
        'holdfast up --roles poller --config ./poller.config.mjs --log-level warn',
        'HOLDFAST_API_TOKEN=… holdfast up --roles api --host 0.0.0.0 --port 8080',
        'holdfast up --roles worker --worker-name box-1',
      ),
    )
    .action((flags: UpFlags) =>
      perform(async (context) => (await import('../up/up.ts')).up(context, flags)),
    );
}

export function addFleet(program: Command, perform: Perform): void {
  program
    .command('members')
    .summary('list the instances that share the targets')
    .description('Lists the instances that share the targets, what each owns and what it should.')
    .addHelpText('after', examples('holdfast members', 'holdfast members --json'))
    .action(() => perform(async (context) => (await import('./members.ts')).members(context)));
  program
    .command('map')
    .summary('draw who owns what')
    .description('Draws who owns what: a bar for each instance, and its targets.')
    .option('--all', 'name every target, however many there are')
    .addHelpText('after', examples('holdfast map', 'holdfast map --all', 'watch holdfast map'))
    .action((flags: MapFlags) =>
      perform(async (context) => (await import('./map.ts')).map(context, flags)),
    );
  program
    .command('explain')
    .summary('say why a target is where it is, and what happened to it')
    .description('Says why a target is where it is, and what happened to it lately.')
    .argument('<TARGET>')
    .addHelpText('after', examples('holdfast explain device-7'))
    .action((target: string) =>
      perform(async (context) => (await import('./explain.ts')).explain(context, target)),
    );
  addDraining(program, perform);
  addMoving(program, perform);
  addWatch(program, perform);
  addTop(program, perform);
}

function addDraining(program: Command, perform: Perform): void {
  const member = 'its id, or as much of its name as is unique';
  program
    .command('drain')
    .summary('have an instance hand everything over')
    .description(
      'Has an instance hand over everything it owns, and take nothing new. Waits until it owns nothing. The order stays ' +
        'until it is taken back with undrain, or the instance ends.',
    )
    .argument('<MEMBER>', member)
    .option('--no-wait', 'give the order, and do not wait')
    .addHelpText('after', examples('holdfast drain api-7fd8c9a1', 'holdfast drain --no-wait api'))
    .action((name: string, flags: DrainFlags) =>
      perform(async (context) => (await import('./drain.ts')).drain(context, name, flags)),
    );
  program
    .command('undrain')
    .summary('have it take part again')
    .description('Takes back a drain: the instance gets its share again.')
    .argument('<MEMBER>', member)
    .addHelpText('after', examples('holdfast undrain api-7fd8c9a1'))
    .action((name: string) =>
      perform(async (context) => (await import('./drain.ts')).undrain(context, name)),
    );
}

function addMoving(program: Command, perform: Perform): void {
  program
    .command('transfer')
    .summary('move a target to an instance, for good')
    .description(
      'Has the owner of a target hand it to another instance, when the poll in flight has ended, and waits until it is there. It stays ' +
        'there, and another target goes the other way where that is needed for an even share, until unpin, or until that instance ends.',
    )
    .argument('<TARGET>')
    .argument('<MEMBER>', 'its id, or as much of its name as is unique')
    .option('--reason <text>', 'why, for those who come after')
    .option('--no-wait', 'give the order, and do not wait')
    .addHelpText(
      'after',
      examples(
        'holdfast transfer device-7 api-7fd8c9a1',
        "holdfast transfer device-7 api --reason 'nearer to it' --no-wait",
      ),
    )
    .action((target: string, member: string, flags: TransferFlags) =>
      perform(async (context) =>
        (await import('./transfer.ts')).transfer(context, target, member, flags),
      ),
    );
  program
    .command('unpin')
    .summary('let it move again')
    .description('Takes back a transfer: the target is placed as all the others are again.')
    .argument('<TARGET>')
    .addHelpText('after', examples('holdfast unpin device-7'))
    .action((target: string) =>
      perform(async (context) => (await import('./transfer.ts')).unpin(context, target)),
    );
}

function addWatch(program: Command, perform: Perform): void {
  program
    .command('watch')
    .summary('show what happens, as it happens')
    .description('Shows what happens to all instances, as it happens, until Ctrl-C.')
    .option('--target <id>', 'only what is about this target')
    .option('--member <member>', 'only what is about this instance')
    .option('--event <name>', "only these events: 'lease.lost', or 'lease' for all that begin so")
    .option('--since <duration>', 'begin with what happened that long ago')
    .addHelpText(
      'after',
      examples(
        'holdfast watch',
        'holdfast watch --since 5m --event lease.lost',
        'holdfast watch --target device-7 --json',
      ),
    )
    .action((flags: WatchFlags) =>
      perform(async (context) => (await import('./watch.ts')).watch(context, flags)),
    );
}

function addTop(program: Command, perform: Perform): void {
  program
    .command('top')
    .summary('watch the whole fleet on one screen')
    .description(
      'Shows the instances, what is not as it should be, how much moves and what happened last, on a whole screen, as it ' +
        'changes, until q. Elsewhere than on a terminal it shows all that once; with --json, who owns what.',
    )
    .addHelpText(
      'after',
      `\nKeys: q quits, / filters, s changes the order of the instances, p stands still, ? helps.\n${examples(
        'holdfast top',
        'holdfast top | head -3',
        'holdfast top --json',
      )}`,
    )
    .action(() => perform(async (context) => (await import('../top/top.ts')).top(context)));
}

function words(text: string): string[] {
  return text.split(',');
}

function whole(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It is a whole number.');
  return Number(text);
}
