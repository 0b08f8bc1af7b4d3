/** The commands that say what is wanted: that something is started, or that nobody needs it any more. */
import type { Command } from 'commander';
import { examples, type Perform } from '../../command.ts';
import type { StartFlags } from './start.ts';
import type { StopFlags } from './stop.ts';

export function addIntents(program: Command, perform: Perform): void {
  const intents = program
    .command('intents')
    .summary('start and stop what workers run')
    .description(
      'Says what is to be run, or is not needed any more. It is written into the store; workers do it. ' +
        "'holdfast sessions ls --kind live' shows what came of it.",
    )
    .helpCommand(false);
  const client =
    'who wants it: a session is stopped when the last one who wanted it does not any more';
  intents
    .command('start')
    .summary('have a channel or a recording run')
    .description(
      'Has a channel run, or a recording. Where the same has been started already and has not ended, that session is ' +
        'given, and nothing is started twice.',
    )
    .argument('<REF>', 'the channel; with --recording, the id of the recording')
    .option('--recording', 'it is a recording, and no channel')
    .option('--at <duration>', 'where in the recording to begin (default: 0s)')
    .option('--profile <id>', 'how it is to be run (default: default)')
    .option('--client <id>', client, 'cli')
    .option('--tenant <id>', 'whose it is (default: default)')
    .option('--wait', 'wait until it runs; exits with 1 if it ends instead')
    .addHelpText(
      'after',
      examples(
        'holdfast intents start 1:0:19:283D:3FB:1:C00000:0:0:0:',
        'holdfast intents start --wait --profile hd channel-7',
        'holdfast intents start --recording --at 12m rec-2026-11-14',
      ),
    )
    .action((ref: string, flags: StartFlags) =>
      perform(async (context) => (await import('./start.ts')).start(context, ref, flags)),
    );
  intents
    .command('stop')
    .summary('say that a session is not needed any more')
    .description(
      'Says that a client does not need a session any more. It is stopped when none is left that does, or with --force at once.',
    )
    .argument('<SESSION>', 'its id')
    .option('--client <id>', 'who does not need it any more', 'cli')
    .option('--tenant <id>', 'whose it is (default: default)')
    .option('--force', 'stop it, whoever else needs it')
    .addHelpText(
      'after',
      examples(
        'holdfast intents stop 0f0e5c9a-51d4-4f7e-9a3b-6d0a1d2c3b4a',
        'holdfast intents stop --force 0f0e5c9a-51d4-4f7e-9a3b-6d0a1d2c3b4a',
      ),
    )
    .action((id: string, flags: StopFlags) =>
      perform(async (context) => (await import('./stop.ts')).stop(context, id, flags)),
    );
}
