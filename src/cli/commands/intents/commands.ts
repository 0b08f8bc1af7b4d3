import type { Command } from 'commander';
import { examples, type Perform } from '../../command.ts';
import type { StartFlags } from './start.ts';
import type { StopFlags } from './stop.ts';

export function addIntents(program: Command, perform: Perform): void {
  const intents = program
    .command('intents')
    .summary('start and stop sessions')
    .description(
      'Asks for sessions to be started or stopped. The store keeps the request, and a worker carries it out. ' +
        "'holdfast sessions ls' shows the result.",
    )
    .helpCommand(false)
    .addHelpText('after', examples('holdfast intents start channel-7'));
  const client = 'id of the client that needs it; a session stops when no client needs it any more';
  intents
    .command('start')
    .summary('start a channel, a recording, or work of a declared kind')
    .description(
      'Starts a session for a channel or a recording, or with --kind of a kind that holdfast.config.mjs declares. If the ' +
        'same session runs already, the client joins it, and nothing is started twice.',
    )
    .argument('[REF]', 'the channel, or with --recording the id of the recording')
    .option('--kind <kind>', 'start a session of this declared kind')
    .option('--key <text>', 'with --kind: your name for the work')
    .option('--params <json>', 'with --kind: its params as JSON; @FILE reads a file, @- the input')
    .option('--recording', 'REF is a recording, not a channel')
    .option('--at <duration>', 'position in the recording to start at (default: 0s)')
    .option('--profile <id>', 'profile of the session (default: default)')
    .option('--client <id>', client, 'cli')
    .option('--tenant <id>', 'tenant that owns the session (default: default)')
    .option('--wait', 'wait until the session runs; exits with 1 if it ends instead')
    .addHelpText(
      'after',
      examples(
        'holdfast intents start 1:0:19:283D:3FB:1:C00000:0:0:0:',
        'holdfast intents start --wait --profile hd channel-7',
        'holdfast intents start --recording --at 12m rec-2026-11-14',
        'holdfast intents start --kind transcode --key movie-17 --params @job.json',
      ),
    )
    .action((ref: string | undefined, flags: StartFlags) =>
      perform(async (context) => (await import('./start.ts')).start(context, ref, flags)),
    );
  intents
    .command('stop')
    .summary('stop a session that a client no longer needs')
    .description(
      'Says that a client no longer needs a session. The session stops when no client needs it, or at once with --force.',
    )
    .argument('[SESSION]', 'id of the session')
    .option('--kind <kind>', 'with --key: stop the open sessions of this kind')
    .option('--key <text>', 'with --kind: the key of the sessions')
    .option('--client <id>', 'id of the client that no longer needs it', 'cli')
    .option('--tenant <id>', 'tenant that owns the session (default: default)')
    .option('--force', 'stop the session even if other clients need it')
    .addHelpText(
      'after',
      examples(
        'holdfast intents stop 0f0e5c9a-51d4-4f7e-9a3b-6d0a1d2c3b4a',
        'holdfast intents stop --force 0f0e5c9a-51d4-4f7e-9a3b-6d0a1d2c3b4a',
        'holdfast intents stop --kind transcode --key movie-17',
      ),
    )
    .action((id: string | undefined, flags: StopFlags) =>
      perform(async (context) => (await import('./stop.ts')).stop(context, id, flags)),
    );
}
