import type { Command } from 'commander';
import { examples, type Perform, wholeNumber } from '../../command.ts';
import type { DemoFlags } from './demo.ts';

export function addDemo(program: Command, perform: Perform): void {
  program
    .command('demo')
    .summary('see a fleet at work: kill and freeze its instances on a page')
    .description(
      'Runs three instances that share a dozen made-up weather stations, a workflow that refuses late writers, and a few ' +
        'sessions. Its page shows all of it, and kills, freezes and thaws the instances. Everything is real. It uses a new ' +
        'embedded store, whatever the environment and the configuration name, and Ctrl-C deletes it. With --store it uses ' +
        'that store, with keys that start with demo-; the log and a few small keys stay there.',
    )
    .option(
      '--port <number>',
      'port of the page (default: 4747, or a free one)',
      wholeNumber(0, 65_535),
    )
    .addHelpText(
      'after',
      examples(
        'holdfast demo',
        'holdfast demo --store redis://localhost:6379',
        'holdfast demo --port 8080 --json',
      ),
    )
    .action((flags: DemoFlags) =>
      perform(async (context) => (await import('./demo.ts')).demo(context, flags)),
    );
}
