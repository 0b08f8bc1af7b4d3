/** The command for those who want to see it first. */
import { type Command, InvalidArgumentError } from 'commander';
import { examples, type Perform } from '../../command.ts';
import type { DemoFlags } from './demo.ts';

export function addDemo(program: Command, perform: Perform): void {
  program
    .command('demo')
    .summary('see it: three instances to kill and freeze, and the page to watch it on')
    .description(
      'Runs three instances that share a dozen made-up weather stations, a workflow whose late writers are refused, and a few ' +
        'sessions; and serves the page on which all of it can be watched, and the instances killed, frozen and thawed. Everything is ' +
        'real, and everything is gone afterwards (Ctrl-C): it has a new embedded store of its own, whatever environment and ' +
        'configuration say. With --store it is in that one instead, under keys that begin with demo-; there the log of what happened and ' +
        'a few small keys stay.',
    )
    .option('--port <number>', 'where the page is (default: 4747, or a free one)', port)
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

function port(text: string): number {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535)
    throw new InvalidArgumentError('It is a number from 0 to 65535.');
  return Number(text);
}
