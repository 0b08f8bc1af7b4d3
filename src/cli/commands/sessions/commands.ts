/** The commands for sessions: what there is to poll, and what intents have started. */
import { type Command, Option } from 'commander';
import { TARGET_KINDS } from '../../../fleet/targets/target-record.ts';
import { examples, type Perform } from '../../command.ts';
import type { AddFlags } from './add.ts';
import type { LsFlags } from './sessions.ts';

export function addSessions(program: Command, perform: Perform): void {
  const sessions = program
    .command('sessions')
    .summary('add, list, show, pause, resume and remove what is polled; list and show what runs')
    .description(
      'What there is to poll: add it, list it, show it, pause it, resume it, remove it. What intents have started: list it, show it.',
    )
    .helpCommand(false);
  sessions
    .command('add')
    .summary('add something to poll')
    .description('Adds sessions to poll: by URL, or many from a file of JSON.')
    .argument('[URL...]', 'what to poll, over http or https')
    .option('--id <id>', 'its id (default: a random UUID)')
    .option('--every <duration>', 'how often to poll it (default: as the instances say)')
    .option('--paused', 'do not poll it before it is resumed')
    .option('--file <path>', 'a JSON list of URLs or of objects with url, id, every, …; - is stdin')
    .addHelpText(
      'after',
      examples(
        'holdfast sessions add https://example.com/health',
        'holdfast sessions add --id device-7 --every 30s http://10.0.0.7/status',
        'holdfast sessions add --file targets.json',
        'echo \'[{"id":"a","url":"https://example.com"}]\' | holdfast sessions add --file -',
      ),
    )
    .action((urls: string[], flags: AddFlags) =>
      perform(async (context) => (await import('./add.ts')).add(context, urls, flags)),
    );
  addLooking(sessions, perform);
  addChanging(sessions, perform);
}

function addLooking(sessions: Command, perform: Perform): void {
  const load = () => import('./sessions.ts');
  sessions
    .command('ls')
    .summary('list them: who polls or runs each, and what came of it')
    .description(
      'Lists sessions: of those that are polled who does it, and what the last poll gave; of those that an intent has ' +
        'started, the latest first, how far each is, why it ended, and who runs it.',
    )
    .argument('[PREFIX]', 'only ids that begin so', '')
    .addOption(
      new Option('--kind <kind>', 'what is polled, channels, or recordings')
        .choices(TARGET_KINDS)
        .default('poll'),
    )
    .option('--state <states>', 'only those in one of these states, with commas between them')
    .addHelpText(
      'after',
      examples(
        'holdfast sessions ls',
        'holdfast sessions ls --json device-',
        'holdfast sessions ls --kind live --state new,starting,running',
      ),
    )
    .action((prefix: string, flags: LsFlags) =>
      perform(async (context) => (await load()).ls(context, prefix, flags)),
    );
  sessions
    .command('get')
    .summary('show all about one')
    .description('Shows all about one session; exits with 1 if there is none.')
    .argument('<ID>')
    .addHelpText('after', examples('holdfast sessions get device-7'))
    .action((id: string) => perform(async (context) => (await load()).get(context, id)));
}

function addChanging(sessions: Command, perform: Perform): void {
  const load = () => import('./sessions.ts');
  for (const [name, summary] of [
    ['pause', 'stop polling, until it is resumed'],
    ['resume', 'poll again'],
    ['rm', 'remove'],
  ] as const)
    sessions
      .command(name)
      .summary(summary)
      .description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`)
      .argument('<ID...>')
      .addHelpText('after', examples(`holdfast sessions ${name} device-7 device-8`))
      .action((ids: string[]) =>
        perform(async (context) => (await load()).change(context, name, ids)),
      );
}
