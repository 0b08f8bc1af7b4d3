import type { Command } from 'commander';
import { examples, type Perform } from '../../command.ts';
import type { DrainFlags } from './drain.ts';
import type { MapFlags } from './map.ts';
import type { TransferFlags } from './transfer.ts';
import type { WatchFlags } from './watch.ts';

const INSTANCE = 'id of the instance, or the start of its name if that is unique';

export function addFleetViews(program: Command, perform: Perform): void {
  program
    .command('members')
    .summary('list the instances of the fleet')
    .description('Lists the instances that share the targets: what each owns, and its share.')
    .addHelpText('after', examples('holdfast members', 'holdfast members --json'))
    .action(() => perform(async (context) => (await import('./members.ts')).members(context)));
  program
    .command('map')
    .summary('draw which instance owns which targets')
    .description('Draws a bar for each instance, and the targets that it owns.')
    .option('--all', 'name every target, however many there are')
    .addHelpText('after', examples('holdfast map', 'holdfast map --all', 'watch holdfast map'))
    .action((flags: MapFlags) =>
      perform(async (context) => (await import('./map.ts')).map(context, flags)),
    );
  program
    .command('explain')
    .summary('explain why a target has its owner, and what happened to it')
    .description('Explains why a target has its owner, and lists its latest events.')
    .argument('<TARGET>', 'id of the target')
    .addHelpText('after', examples('holdfast explain device-7'))
    .action((target: string) =>
      perform(async (context) => (await import('./explain.ts')).explain(context, target)),
    );
  program
    .command('top')
    .summary('watch the whole fleet on one screen')
    .description(
      'Shows the instances, problems, movements and the latest events on a full screen until you press q. ' +
        'Without a terminal it prints this once; with --json, it prints which instance owns what.',
    )
    .addHelpText(
      'after',
      '\nKeys: q quits, / filters, s sorts the instances, p pauses, ? shows help.\n' +
        examples('holdfast top', 'holdfast top | head -3', 'holdfast top --json'),
    )
    .action(() => perform(async (context) => (await import('../top/top.ts')).top(context)));
  program
    .command('watch')
    .summary('print events of all instances as they happen')
    .description('Prints the events of all instances as they happen, until Ctrl-C.')
    .option('--target <id>', 'only events about this target')
    .option('--member <member>', 'only events about this instance')
    .option('--event <name>', "only these events: 'lease.lost', or 'lease' for all of lease.*")
    .option('--since <duration>', 'start with the events of this past time')
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

export function addFleetSteering(program: Command, perform: Perform): void {
  program
    .command('drain')
    .summary('make an instance hand over its targets')
    .description(
      'Makes an instance hand over all of its targets and take no new ones. Waits until it owns none. ' +
        'The instance stays drained until undrain, or until it ends.',
    )
    .argument('<MEMBER>', INSTANCE)
    .option('--no-wait', 'return at once')
    .addHelpText('after', examples('holdfast drain api-7fd8c9a1', 'holdfast drain --no-wait api'))
    .action((name: string, flags: DrainFlags) =>
      perform(async (context) => (await import('./drain.ts')).drain(context, name, flags)),
    );
  program
    .command('undrain')
    .summary('undo a drain')
    .description('Undoes a drain: the instance gets its share of the targets again.')
    .argument('<MEMBER>', INSTANCE)
    .addHelpText('after', examples('holdfast undrain api-7fd8c9a1'))
    .action((name: string) =>
      perform(async (context) => (await import('./drain.ts')).undrain(context, name)),
    );
  program
    .command('transfer')
    .summary('move a target to an instance, and keep it there')
    .description(
      'Makes the owner of a target hand it to another instance after the current poll, and waits for that. ' +
        'The target stays there until unpin, or until that instance ends. Another target may move the other way to keep ' +
        'the shares even.',
    )
    .argument('<TARGET>', 'id of the target')
    .argument('<MEMBER>', INSTANCE)
    .option('--reason <text>', 'recorded in the log that all instances share')
    .option('--no-wait', 'return at once')
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
    .summary('undo a transfer')
    .description('Undoes a transfer: the target may move again like all others.')
    .argument('<TARGET>', 'id of the target')
    .addHelpText('after', examples('holdfast unpin device-7'))
    .action((target: string) =>
      perform(async (context) => (await import('./transfer.ts')).unpin(context, target)),
    );
}
