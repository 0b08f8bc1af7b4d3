/**
 * The commands for sessions, which intents start. Targets had this name before: their old commands
 * still work.
 */
import type { Command } from 'commander';
import { examples, type Perform, renamed } from '../../command.ts';
import { addTargetAdd, addTargetChange } from '../targets/commands.ts';
import type { SessionListFlags } from './sessions.ts';

const load = () => import('./sessions.ts');

export function addSessions(program: Command, perform: Perform): void {
  const sessions = program
    .command('sessions')
    .summary('list and show the sessions that intents started')
    .description(
      "Sessions are what intents start and workers run. 'holdfast intents' starts and stops them.",
    )
    .helpCommand(false)
    .addHelpText('after', examples('holdfast sessions ls'));
  sessions
    .command('ls')
    .summary('list sessions with their state, progress and worker')
    .description('Lists sessions, the latest first: state, reason of the end, worker and progress.')
    .argument('[PREFIX]', 'list only ids that start with this', '')
    .option('--kind <kind>', 'only live (channels), vod (recordings), or a declared kind')
    .option('--key <text>', 'with --kind: only this key, channel or recording')
    .option('--state <states>', 'only these states, separated by commas')
    .addHelpText(
      'after',
      examples(
        'holdfast sessions ls',
        'holdfast sessions ls --kind live --state new,starting,running',
        'holdfast sessions ls --kind transcode --key movie-17',
      ),
    )
    .action((prefix: string, flags: SessionListFlags) =>
      perform(async (context) => (await load()).listSessions(context, prefix, flags)),
    );
  sessions
    .command('get')
    .summary('show one session')
    .description('Shows one session. Exits with 1 if it does not exist.')
    .argument('<ID>', 'id of the session')
    .addHelpText('after', examples('holdfast sessions get 0f0e5c9a-51d4-4f7e-9a3b-6d0a1d2c3b4a'))
    .action((id: string) => perform(async (context) => (await load()).showSession(context, id)));
  const before = (verb: string) => renamed(perform, `sessions ${verb}`, `targets ${verb}`);
  addTargetAdd(sessions, before('add'), true);
  for (const verb of ['pause', 'resume', 'rm'] as const)
    addTargetChange(sessions, before(verb), verb, true);
}
